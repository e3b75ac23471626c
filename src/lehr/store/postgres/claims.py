"""The register of claims in a PostgreSQL database, by host, for all stores in it.

A store keeps one partition, so the register is separate: it has a schema of its own, `lehr_claims`, which the
first process creates. It identifies a store by its schema, however the server is named. Claims are taken in
one transaction under a lock per host, over a dedicated connection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping

import psycopg

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Holder, NoRegisterError
from lehr.store.claims import Claimed, Owner, holding, refused
from lehr.store.postgres.address import REGISTER, Address
from lehr.store.postgres.connections import Connection, Connector, alive
from lehr.store.postgres.errors import message_of, translated
from lehr.store.postgres.locks import lock_key

_STOPPED_AFTER = "10s"
"""How long a process that is stopped while it takes claims keeps the host's lock."""

_TABLES = f"""
CREATE TABLE IF NOT EXISTS {REGISTER}.claim (
    host text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    store text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    asset text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, host)
);
CREATE INDEX IF NOT EXISTS claim_of ON {REGISTER}.claim (store, partition, asset, host);
CREATE TABLE IF NOT EXISTS {REGISTER}.moved (
    host text COLLATE "C" NOT NULL,
    store text COLLATE "C" NOT NULL,
    partition text COLLATE "C" NOT NULL,
    asset text COLLATE "C" NOT NULL,
    PRIMARY KEY (host, store, partition, asset)
);
"""
# Read catalogues instead of resolving names: another role's schema may be inaccessible.
_HAS_TABLE = """EXISTS (SELECT FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname = {schema} AND t.relname = {table})"""
_MADE = " AND ".join(
    _HAS_TABLE.format(schema=f"'{REGISTER}'", table=f"'{table}'") for table in ("claim", "moved")
)
_THERE = _HAS_TABLE.format(schema="c.store", table="'partition'")
_CLAIM = f"{REGISTER}.claim"
_MOVED = f"{REGISTER}.moved"
_OURS = "host = %s AND store = %s AND partition = %s"
_HOLDERS = f"""SELECT name, store, partition, state, asset, {_THERE}
    FROM {_CLAIM} c WHERE host = %s AND name = ANY(%s)"""  # noqa: S608 - here as below, made of our own names
_TAKE = f"""INSERT INTO {_CLAIM} (host, store, partition, state, asset, name)
    SELECT %s, %s, %s, %s, asset, name FROM unnest(%s::text[], %s::text[]) AS wanted (asset, name)
    ON CONFLICT (name, host) DO UPDATE
    SET store = excluded.store, partition = excluded.partition, state = excluded.state, asset = excluded.asset
"""  # noqa: S608
_HELD = f"SELECT asset, name FROM {_CLAIM} WHERE {_OURS} AND asset = ANY(%s)"  # noqa: S608
_NOTE_MOVED = f"""INSERT INTO {_MOVED} SELECT DISTINCT host, store, partition, asset
    FROM {_CLAIM} WHERE {_OURS} AND asset = ANY(%s) AND NOT name = ANY(%s)
    ON CONFLICT DO NOTHING"""  # noqa: S608
_ASSETS = f"SELECT DISTINCT asset FROM {_CLAIM} WHERE {_OURS}"  # noqa: S608
_RELEASE = [f"DELETE FROM {table} WHERE {_OURS} AND asset = ANY(%s)" for table in (_CLAIM, _MOVED)]  # noqa: S608
_RELEASE_NAMES = f"""DELETE FROM {_CLAIM} c USING unnest(%s::text[], %s::text[]) AS given_up (asset, name)
    WHERE {_OURS} AND c.asset = given_up.asset AND c.name = given_up.name"""  # noqa: S608
_FORGET_MOVED = f"""DELETE FROM {_MOVED} WHERE (host, store, partition, asset)
    NOT IN (SELECT host, store, partition, asset FROM {_CLAIM})"""  # noqa: S608


class ClaimTable:
    """`lehr.store.claims.Register` in the database of `address`, created when first needed.

    An owner is gone when its store is no longer in the database. Its state folder does not count: other users
    cannot read it, and containers with the same host name have different files.

    Args:
        host: the host whose claims these are.
        read_only: only read the register, and do not create it.
    """

    def __init__(self, address: Address, host: str, *, read_only: bool = False) -> None:
        self._address = address
        self._host = host
        self._read_only = read_only
        self._connector = Connector(address)
        self._open: Connection | None = None

    def known(self, owner: Owner) -> bool:
        with self._session() as db:
            found = db.execute(_bytes(f"SELECT FROM {_CLAIM} WHERE {_OURS} LIMIT 1"), self._key(owner))
            return found.fetchone() is not None

    def holders(self, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        with self._session() as db:
            return self._holders(db, owner, names)

    def holding(self, owner: Owner, names: Mapping[AssetId, Collection[str]]) -> set[AssetId]:
        with self._session() as db:
            return holding(db.execute(_bytes(_HELD), (*self._key(owner), list(names))), names)

    def take(
        self,
        owner: Owner,
        names: Mapping[AssetId, Collection[str]],
        *,
        only: bool,
        free: bool,
        over: Collection[AssetId] = (),
    ) -> dict[str, Holder]:
        with self._transaction() as db:
            wanted = [(id, name) for id, claimed in names.items() for name in claimed]
            holders = self._holders(db, owner, [name for _, name in wanted])
            others = refused(holders, names, over)
            if others and not free:
                return others
            if only:
                self._release(db, owner, list(names))
            taken = [(id, name) for id, name in wanted if name not in others]
            values = (*self._key(owner), owner.state, [id for id, _ in taken], [name for _, name in taken])
            db.execute(_bytes(_TAKE), values)
            if not only:
                noted = (*self._key(owner), list(names), [name for _, name in taken])
                db.execute(_bytes(_NOTE_MOVED), noted)
            return others

    def assets(self, owner: Owner) -> set[AssetId]:
        with self._session() as db:
            held = db.execute(_bytes(_ASSETS), self._key(owner))
            return {AssetId(asset) for (asset,) in held}

    def moved(self, owner: Owner) -> set[AssetId]:
        with self._session() as db:
            moved = db.execute(_bytes(f"SELECT asset FROM {_MOVED} WHERE {_OURS}"), self._key(owner))  # noqa: S608
            return {AssetId(asset) for (asset,) in moved}

    def release(self, owner: Owner, names: Mapping[AssetId, Collection[str] | None]) -> None:
        whole = [id for id, given_up in names.items() if given_up is None]
        some = [(id, name) for id, given_up in names.items() for name in given_up or ()]
        with self._transaction() as db:
            self._release(db, owner, whole)
            values = ([id for id, _ in some], [name for _, name in some], *self._key(owner))
            db.execute(_bytes(_RELEASE_NAMES), values)

    def all(self) -> list[Claimed]:
        """All claims of the host, by name, after removing those of stores that are gone."""
        with self._transaction() as db:
            db.execute(_bytes(f"DELETE FROM {_CLAIM} c WHERE host = %s AND NOT {_THERE}"), [self._host])  # noqa: S608
            db.execute(_bytes(_FORGET_MOVED))
            rows = db.execute(
                _bytes(f"SELECT name, partition, state, asset FROM {_CLAIM} WHERE host = %s ORDER BY name"),  # noqa: S608
                [self._host],
            )
            return [
                Claimed(name, Holder(Partition(partition), state, AssetId(asset)))
                for name, partition, state, asset in rows
            ]

    def release_state(self, state: str) -> set[str]:
        """Release all claims made from a state folder of the host. Returns the names."""
        with self._transaction() as db:
            released = db.execute(
                _bytes(f"DELETE FROM {_CLAIM} WHERE host = %s AND state = %s RETURNING name"),  # noqa: S608
                (self._host, state),
            )
            return {name for (name,) in released}

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _release(self, db: Connection, owner: Owner, assets: list[AssetId]) -> None:
        for statement in _RELEASE:
            db.execute(_bytes(statement), (*self._key(owner), assets))

    def _key(self, owner: Owner) -> tuple[str, str, str]:
        return self._host, self._address.schema, owner.partition

    def _holders(self, db: Connection, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        found: dict[str, Holder] = {}
        for name, store, partition, state, asset, there in db.execute(
            _bytes(_HOLDERS), (self._host, list(names))
        ):
            ours = (store, partition) == (self._address.schema, owner.partition)
            if ours or there:  # the asset that takes the others overwrites them
                found[name] = Holder(Partition(partition), state, AssetId(asset), ours)
        return found

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._session() as db, db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key(f"claims of {self._host}")])
            yield db

    @contextlib.contextmanager
    def _session(self) -> Iterator[Connection]:
        try:
            with translated(self._address), self._explained():
                yield self._connected()
        except NoRegisterError:
            raise
        except LehrError as error:
            raise TransientError(
                f"the register of claims in {self._address.place} cannot be used",
                code="STO116",
                why=str(error),
                fix=error.fix,
            ) from error

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain what is missing, and which privilege a role lacks."""
        try:
            yield
        except psycopg.errors.UndefinedTable as error:
            self.close()  # a new connection creates it
            raise TransientError(
                f"a table in schema {REGISTER} is gone",
                code="STO117",
                why="it was dropped",
                fix="Lehr creates it again automatically",
            ) from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise StalledError(
                f"this role has no access to schema {REGISTER}",
                code="STO118",
                why=message_of(error),
                fix=f"have its owner grant this role USAGE on schema {REGISTER}, and SELECT, INSERT, UPDATE,"
                f" DELETE on all tables in it; if there is none, grant CREATE on the database",
            ) from error

    def _connected(self) -> Connection:
        if self._open is not None and alive(self._open):
            return self._open
        self.close()
        made = self._connector.connect()
        try:
            self._prepare(made)
        except BaseException:
            made.close()
            raise
        self._open = made
        return made

    def _prepare(self, db: Connection) -> None:
        # All statements look up by a key: planning each again takes longer than executing it.
        db.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, false),"
            " set_config('plan_cache_mode', 'force_generic_plan', false)",
            [_STOPPED_AFTER],
        )
        if self._is_made(db):
            return
        if self._read_only:
            raise NoRegisterError(
                "there is no register of claims yet",
                code="STO119",
                why=f"no `lehr run` has created it in {self._address.place}",
            )
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("tables of claims")])
            if self._is_made(db):
                return
            # Check first: CREATE SCHEMA needs privileges on the database even if the schema exists.
            if db.execute("SELECT FROM pg_namespace WHERE nspname = %s", [REGISTER]).fetchone() is None:
                db.execute(_bytes(f"CREATE SCHEMA {REGISTER}"))
            db.execute(_bytes(_TABLES))

    def _is_made(self, db: Connection) -> bool:
        return db.execute(_bytes(f"SELECT {_MADE}")).fetchone() == (True,)


def _bytes(statement: str) -> bytes:
    """A statement that is not a literal, in a form that the driver accepts."""
    return statement.encode()

"""The register of claims, in a file shared by all control planes of one user on one host.

Each call that takes claims is one transaction that holds the file's write lock from its beginning, so of two
concurrent claims to the same thing one is refused. Readers wait for nothing. A crash leaves the file as it
was before a call, or after it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import json

from lehr.base.errors import TransientError, raised_as
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Holder, NoRegisterError
from lehr.store.claims import Claimed, Owner, holding, refused
from lehr.store.sqlite.connection import use_log

_BUSY_SECONDS = 5.0
_TABLE = """CREATE TABLE IF NOT EXISTS claim (
    name TEXT PRIMARY KEY,
    store TEXT NOT NULL,
    partition TEXT NOT NULL,
    state TEXT NOT NULL,
    asset TEXT NOT NULL
) WITHOUT ROWID"""
_INDEX = "CREATE INDEX IF NOT EXISTS claim_of ON claim (store, partition, asset)"
_MOVED = """CREATE TABLE IF NOT EXISTS moved (
    store TEXT NOT NULL,
    partition TEXT NOT NULL,
    asset TEXT NOT NULL,
    PRIMARY KEY (store, partition, asset)
) WITHOUT ROWID"""
# Claims lost in a crash of the machine are taken again before the next push.
_MAKE = ("PRAGMA synchronous = NORMAL", _TABLE, _INDEX, _MOVED)
_OURS = "store = ? AND partition = ?"
_LISTED = "IN (SELECT value FROM json_each(CAST(? AS TEXT)))"
# Each of these returns one document: the module gives up the interpreter lock for each row.
_FIND = f"""SELECT json_group_array(json_array(name, store, partition, state, asset))
    FROM claim WHERE name {_LISTED}"""  # noqa: S608 - here as below, made of our own words
_HELD = f"""SELECT json_group_array(json_array(asset, name))
    FROM claim WHERE {_OURS} AND asset {_LISTED}"""  # noqa: S608
_ASSETS = f"SELECT json_group_array(DISTINCT asset) FROM claim WHERE {_OURS}"  # noqa: S608
_NOTE_MOVED = f"""INSERT OR IGNORE INTO moved SELECT store, partition, asset
    FROM claim WHERE {_OURS} AND asset {_LISTED} AND NOT name {_LISTED}"""  # noqa: S608
_FORGET_MOVED = """DELETE FROM moved
    WHERE (store, partition, asset) NOT IN (SELECT store, partition, asset FROM claim)"""


class ClaimFile:
    """`lehr.store.claims.Register` in a SQLite file, created when first needed.

    Args:
        there: whether a state folder still exists.
        read_only: only read the register, and do not create it.
    """

    def __init__(self, path: Path, there: Callable[[str], bool], *, read_only: bool = False) -> None:
        self._path = path
        self._there = there
        self._read_only = read_only
        self._open: sqlite3.Connection | None = None
        self._open_inode = 0

    def known(self, owner: Owner) -> bool:
        with self._transaction("DEFERRED") as db:
            found = db.execute(f"SELECT 1 FROM claim WHERE {_OURS} LIMIT 1", _key(owner))  # noqa: S608
            return found.fetchone() is not None

    def holders(self, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        with self._transaction("DEFERRED") as db:
            return self._holders(db, owner, names)

    def holding(self, owner: Owner, names: Mapping[AssetId, Collection[str]]) -> set[AssetId]:
        with self._transaction("DEFERRED") as db:
            [rows] = db.execute(_HELD, (*_key(owner), _list(names))).fetchone()
        return holding(json.decode(rows), names)

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
            wanted = [name for claimed in names.values() for name in claimed]
            holders = self._holders(db, owner, wanted)
            others = refused(holders, names, over)
            if others and not free:
                return others
            if only:
                self._release(db, owner, names)
            rows = [
                (name, owner.store, owner.partition, owner.state, id)
                for id, claimed in names.items()
                for name in claimed
                if name not in others
                and (only or holders.get(name) != Holder(owner.partition, owner.state, id, ours=True))
            ]
            db.executemany("INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?)", rows)
            if not only:
                taken = [name for name in wanted if name not in others]
                db.execute(_NOTE_MOVED, (*_key(owner), _list(names), _list(taken)))
            return others

    def assets(self, owner: Owner) -> set[AssetId]:
        with self._transaction("DEFERRED") as db:
            [assets] = db.execute(_ASSETS, _key(owner)).fetchone()
        return set(json.decode(assets, type=list[AssetId]))

    def moved(self, owner: Owner) -> set[AssetId]:
        with self._transaction("DEFERRED") as db:
            moved = db.execute(f"SELECT asset FROM moved WHERE {_OURS}", _key(owner))  # noqa: S608
            return {AssetId(asset) for (asset,) in moved}

    def release(self, owner: Owner, names: Mapping[AssetId, Collection[str] | None]) -> None:
        with self._transaction() as db:
            self._release(db, owner, [id for id, given_up in names.items() if given_up is None])
            db.executemany(
                f"DELETE FROM claim WHERE name = ? AND {_OURS} AND asset = ?",  # noqa: S608
                ((name, *_key(owner), id) for id, given_up in names.items() for name in given_up or ()),
            )

    def all(self) -> list[Claimed]:
        """All claims, by name, after removing those of states that are gone."""
        with self._transaction() as db:
            for (state,) in db.execute("SELECT DISTINCT state FROM claim").fetchall():
                if not self._there(state):
                    db.execute("DELETE FROM claim WHERE state = ?", (state,))
            db.execute(_FORGET_MOVED)
            rows = db.execute("SELECT name, partition, state, asset FROM claim ORDER BY name")
            return [
                Claimed(name, Holder(Partition(partition), state, AssetId(asset)))
                for name, partition, state, asset in rows
            ]

    def release_state(self, state: str) -> set[str]:
        """Release all claims made from a state folder. Returns the names."""
        with self._transaction() as db:
            released = db.execute("DELETE FROM claim WHERE state = ? RETURNING name", (state,))
            return {name for (name,) in released}

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _release(self, db: sqlite3.Connection, owner: Owner, assets: Collection[AssetId]) -> None:
        for table in ("claim", "moved"):
            db.executemany(
                f"DELETE FROM {table} WHERE {_OURS} AND asset = ?",  # noqa: S608
                ((*_key(owner), id) for id in assets),
            )

    def _holders(self, db: sqlite3.Connection, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        found: dict[str, Holder] = {}
        there = functools.cache(self._there)
        [rows] = db.execute(_FIND, (_list(names),)).fetchone()
        for name, store, partition, state, asset in json.decode(rows):
            ours = (store, partition) == _key(owner)
            if not ours and not there(state):
                continue  # the asset that takes it overwrites it
            found[name] = Holder(Partition(partition), state, AssetId(asset), ours)
        return found

    @contextlib.contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        what = f"the register of claims {self._path} cannot be used"
        fix = "check its disk; if the file is damaged, remove it: Lehr creates it again"
        with raised_as(TransientError, what, code="STO140", fix=fix, on=(sqlite3.Error, OSError)):
            db = self._connection()
            db.execute(f"BEGIN {kind}")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _connection(self) -> sqlite3.Connection:
        if self._open is not None and self._is_same_file(self._open_inode):
            return self._open
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._read_only and not self._path.exists():
            raise NoRegisterError(
                "there is no register of claims yet",
                code="STO141",
                why=f"no `lehr run` has created {self._path}",
            )
        if self._read_only:
            made = self._connect("ro")
        else:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            made = self._connect("rw")
        self._open, self._open_inode = made, self._path.stat().st_ino
        return made

    def _connect(self, mode: str) -> sqlite3.Connection:
        made = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        try:
            if mode != "ro":
                use_log(made)
                for statement in _MAKE:
                    made.execute(statement)
        except BaseException:
            made.close()
            raise
        return made

    def _is_same_file(self, inode: int) -> bool:
        """Whether the file still exists: if not, others would create a new one without these rows."""
        try:
            return self._path.stat().st_ino == inode
        except FileNotFoundError:
            return False


def _key(owner: Owner) -> tuple[str, str]:
    return owner.store, owner.partition


def _list(items: Iterable[str]) -> bytes:
    return json.encode(list(items))

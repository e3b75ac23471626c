"""Rules of the plugin `lehr.DatabaseSchema`, on a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, LiteralString

import msgspec
import pytest

from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.diff import NO_DIFF, Diff
from lehr.model.operation import Outcome, Progress, Result
from lehr.model.types import Registry
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, Column, DatabaseSchema, Index, Table
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.codes import raises
from tests.postgres import PostgresServer

REGISTRY = Registry(TYPES)
DATABASE = "plays"
_numbers = itertools.count(1)

ID = Column("bigint", nullable=False)
TITLE = Column("text", nullable=False)
PLAYS = Table({"id": ID, "title": TITLE}, ["id"])


class QuickClock(SystemClock):
    """Does not let the watch wait for seconds."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, 0.02))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with contextlib.closing(PostgresServer()) as running:
        running.start()
        running.run(f"CREATE DATABASE {DATABASE}")
        yield running


class Site:
    """A schema of its own in the server's database, and what tests do with it."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.schema = f"s{next(_numbers)}"
        self.plugin = DatabasePlugin(Path("/"), Inline(), QuickClock())

    def intent(self, table: Table | None = PLAYS, version: int = 1, **fields: Any) -> DatabaseSchema:
        tables = {} if table is None else {"plays": table}
        known = {"connection": self.server.url(DATABASE), "schema": self.schema, "tables": tables, **fields}
        return DatabaseSchema(version=version, **known)

    def diff(self, intent: DatabaseSchema) -> Diff:
        asset = asset_of(intent)
        return asyncio.run(self.plugin.diff(target_of(asset), FixedReader([asset], REGISTRY)))

    def push(self, intent: DatabaseSchema, approved: Diff = NO_DIFF) -> Outcome:
        asset = asset_of(intent)
        target = target_of(asset)
        call = self.plugin.push(target, FixedReader([asset], REGISTRY), push_of(target, diff=approved))
        return asyncio.run(call)

    def apply(self, intent: DatabaseSchema) -> None:
        """Approve what differs, push it, and see that nothing differs then."""
        assert self.push(intent, self.diff(intent)).result is Result.DONE
        assert self.diff(intent).changes == ()

    def sql(self, query: LiteralString, *values: object) -> list[Any]:
        """Run a statement in the schema."""
        with self.server.connect(DATABASE) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", [self.schema])
            cursor = connection.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []

    def everything(self) -> object:
        """All of the schema that the plugin could touch."""
        return self.sql(
            "SELECT c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
            " pg_get_expr(d.adbin, d.adrelid), x.indisvalid, pg_get_indexdef(c.oid)"
            " FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
            " AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
            " LEFT JOIN pg_index x ON x.indexrelid = c.oid"
            " WHERE c.relnamespace = to_regnamespace(%s) ORDER BY 1, 3",
            self.schema,
        ), (self.sql("SELECT version FROM lehr_schema") if self.has("lehr_schema") else None)

    def drop_index(self) -> None:
        self.sql("DROP INDEX by_title")

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """The database lets nobody in."""
        self.server.run(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false")
        yield
        self.server.run(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true")

    def has(self, name: str) -> bool:
        return self.sql("SELECT to_regclass(%s)", f"{self.schema}.{name}")[0][0] is not None


@pytest.fixture
def site(server: PostgresServer) -> Site:
    return Site(server)


def asset_of(intent: DatabaseSchema) -> Asset:
    return make_asset(AssetId("database/schema"), DATABASE_SCHEMA, intent, {})


def with_columns(**columns: Column) -> Table:
    return Table({**PLAYS.columns, **columns}, ["id"])


def with_index(*columns: str, unique: bool = False) -> Table:
    return Table(PLAYS.columns, ["id"], {"by_title": Index(list(columns), unique)})


def paths(found: Diff) -> list[str]:
    return [change.path for change in found.changes]


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("database", 2)], ids=["inline", "threads"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, blocking: Callable[[], Blocking], site: Site) -> None:
    author = Column("varchar(20)", default="'unknown'")
    index = {"by_title": Index(["title"])}
    subject = Subject(
        make=lambda: DatabasePlugin(Path("/"), blocking(), SystemClock()),
        registry=REGISTRY,
        asset=asset_of(site.intent(Table({**PLAYS.columns, "author": author}, ["id"], index))),
        changed=asset_of(
            site.intent(
                Table(
                    {**PLAYS.columns, "author": Column("varchar(20)", default="'nobody'")},
                    ["id"],
                    {"by_title": Index(["title", "author"], unique=True)},
                ),
                version=2,
            )
        ),
        disturb=site.drop_index,
        observe=site.everything,
        troubles=(site.closed,),
        query=(site.server.url(DATABASE), f"{site.schema}.*"),
    )
    asyncio.run(rule(subject))


EVERY_TYPE = Table(
    {
        "id": Column("bigserial"),
        "a": Column("int", default=-1),
        "b": Column("int8", default=5_000_000_000),
        "c": Column("decimal(10, 2)", default="1.50"),
        "d": Column("varchar (20)", default="'it''s'"),
        "e": Column("char(3)", default="'a'"),
        "f": Column("timestamp(3) with time zone", default="CURRENT_TIMESTAMP"),
        "g": Column("timestamptz", default="'2020-01-01'"),
        "h": Column("bool", nullable=False, default=False),
        "i": Column("float8", default=-1.5),
        "j": Column("jsonb", default='\'{"b":1,  "a":2}\''),
        "k": Column("uuid", default="gen_random_uuid()"),
        "l": Column("date", default="current_date"),
        "m": Column("text[]", default="'{}'"),
        "n": Column("numeric", default="1e3"),
        "o": Column("text", default="null"),
        "p": Column("interval day to second", default="'1 day'"),
        "q": Column("smallserial"),
        "r": Column("bytea", default="'abc'"),
        "s": Column("boolean", default="'yes'"),
        "t": Column("real", default=0),
        "u": Column("timestamp", default="now()"),
    },
    ["id"],
    {"every_a": Index(["a", "b"]), "every_d": Index(["d"], unique=True)},
)


def test_what_was_applied_is_no_difference_however_it_is_written(site: Site) -> None:
    site.apply(site.intent(EVERY_TYPE))


def test_what_another_hand_has_made_is_no_difference_if_it_is_the_same(site: Site) -> None:
    site.sql("CREATE SCHEMA " + site.schema)  # type: ignore[arg-type, unused-ignore]
    site.sql(
        "CREATE TABLE plays (n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title varchar DEFAULT NULL,"
        " price numeric(8,2) DEFAULT 0.0, UNIQUE (title), CHECK (price >= 0))"
    )
    site.sql("CREATE INDEX cheap ON plays (price) WHERE price < 10")
    columns = {"n": Column("serial"), "title": Column("varchar"), "price": Column("numeric(8,2)", default=0)}
    assert paths(site.diff(site.intent(Table(columns, ["n"])))) == ["version"]
    declared = Table(columns, ["n"], {"plays_title_key": Index(["title"], unique=True)})
    site.apply(site.intent(declared))


def test_a_new_column_comes_with_its_version(site: Site) -> None:
    site.apply(site.intent())
    site.sql("INSERT INTO plays VALUES (1, 'Hamlet')")
    after = site.intent(with_columns(author=Column("text", nullable=False, default="'anon'")), version=2)
    found = site.diff(after)
    assert paths(found) == ["tables/plays/columns/author", "version"]
    assert not found.effects.destructive
    assert (found.effects.version_from, found.effects.version_to) == ("1", "2")
    site.apply(after)
    assert site.sql("SELECT author FROM plays") == [("anon",)]


def test_a_change_is_whole_or_not_at_all(site: Site) -> None:
    site.apply(site.intent())
    site.sql("INSERT INTO plays VALUES (1, 'Hamlet')")
    before = site.everything()
    columns = {"a": Column("text"), "b": Column("text", nullable=False)}
    with raises("DBS121", StalledError) as caught:
        site.push(site.intent(with_columns(**columns), version=2))
    assert "default" in caught.value.fix
    assert site.everything() == before


def test_older_intent_needs_approval_and_until_then_nothing_is_taken_away(site: Site) -> None:
    old, new = site.intent(version=1), site.intent(with_columns(author=Column("text")), version=2)
    site.apply(new)
    found = site.diff(old)
    assert found.effects.destructive
    assert (found.effects.version_from, found.effects.version_to) == ("2", "1")
    with raises("DBS109", TransientError):
        site.push(old)
    assert site.diff(new).empty
    site.apply(old)


def test_an_approval_is_for_exactly_what_was_shown(site: Site) -> None:
    site.apply(site.intent())
    site.sql("ALTER TABLE plays ADD COLUMN a text")
    shown = site.diff(site.intent())
    assert shown.digest() == site.diff(site.intent()).digest()
    site.sql("ALTER TABLE plays ADD COLUMN b text")
    with raises("DBS109", TransientError):
        site.push(site.intent(), shown)
    assert paths(site.diff(site.intent())) == ["tables/plays/columns/a", "tables/plays/columns/b"]
    site.apply(site.intent())


def test_tables_that_are_not_declared_are_not_touched_and_absent_ones_are_dropped(site: Site) -> None:
    site.apply(site.intent())
    assert site.diff(site.intent(None)).empty
    gone = site.intent(Table(absent=True))
    assert site.diff(gone).effects.destructive
    site.apply(gone)
    assert not site.has("plays")


def test_what_others_depend_on_is_not_dropped(site: Site) -> None:
    site.apply(site.intent(with_columns(author=Column("text"))))
    site.sql("CREATE VIEW authors AS SELECT author FROM plays")
    found = site.diff(site.intent())
    with raises("DBS121", StalledError, match="depend"):
        site.push(site.intent(), found)
    assert site.has("authors")


def test_a_name_that_is_sql_is_dropped_as_a_name(site: Site) -> None:
    site.apply(site.intent())
    site.sql("CREATE TABLE precious (id integer)")
    site.sql('ALTER TABLE plays ADD COLUMN "x"" , DROP COLUMN title; DROP TABLE precious; --" text')
    site.apply(site.intent())
    assert site.has("precious")


def test_a_type_that_is_sql_reaches_nothing(site: Site) -> None:
    for type in ("text check (true)", "nonsense", "integer with (a)"):
        with contextlib.suppress(ValueError), raises("DBS121", StalledError):
            site.diff(site.intent(with_columns(author=Column(type))))


def test_types_are_changed_and_what_may_not_fit_needs_approval(site: Site) -> None:
    site.apply(site.intent(with_columns(year=Column("text", default="'1600'"))))
    wider = site.intent(with_columns(year=Column("integer", default=1600)))
    found = site.diff(wider)
    assert found.effects.destructive
    site.apply(wider)
    rewritten = site.intent(with_columns(year=Column("bigint", default=1600)))
    assert site.diff(rewritten).effects.disruptive
    assert not site.diff(rewritten).effects.destructive
    site.apply(rewritten)


def test_rows_that_do_not_fit_stall_and_are_not_shown(site: Site) -> None:
    site.apply(site.intent(with_columns(year=Column("text"))))
    site.sql("INSERT INTO plays VALUES (1, 'Hamlet', 'hunter2'), (2, 'Hamlet', '1')")
    narrower = site.intent(with_columns(year=Column("integer")))
    with raises("DBS121", StalledError) as caught:
        site.push(narrower, site.diff(narrower))
    assert "hunter2" not in str(caught.value)
    unique = site.intent(
        Table({**PLAYS.columns, "year": Column("text")}, ["id"], {"once": Index(["title"], unique=True)})
    )
    with raises("DBS121", StalledError) as caught:
        site.push(unique)
    assert "Hamlet" not in str(caught.value)


def test_whoever_holds_the_table_makes_a_push_give_up_soon(site: Site) -> None:
    site.apply(site.intent())
    with site.server.connect(DATABASE) as other, other.transaction():
        other.execute("SELECT FROM pg_class")
        other.execute(f"LOCK TABLE {site.schema}.plays IN ACCESS SHARE MODE")
        with raises("DBS120", TransientError, match="lock"):
            site.push(site.intent(with_columns(author=Column("text"))))
    site.apply(site.intent(with_columns(author=Column("text"))))


def test_one_push_at_a_time_also_of_another_process(site: Site) -> None:
    site.apply(site.intent())
    with site.server.connect(DATABASE) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [f"lehr {site.schema}"])
        with raises("DBS110", TransientError):
            site.push(site.intent(version=2))
    site.apply(site.intent(version=2))


def test_an_interrupted_build_of_an_index_is_found_and_begun_again(site: Site) -> None:
    site.apply(site.intent())
    site.sql("INSERT INTO plays VALUES (1, 'Hamlet'), (2, 'Hamlet')")
    intent = site.intent(with_index("title", unique=True), version=2)
    with raises("DBS121", StalledError):
        site.push(intent)
    found = site.diff(intent)
    assert "unfinished" in found.changes[0].observed
    assert found.effects.version_from == "1"
    site.sql("DELETE FROM plays WHERE id = 2")
    site.apply(intent)


def test_an_index_is_built_while_rows_are_written(site: Site) -> None:
    site.apply(site.intent())
    with site.server.connect(DATABASE) as writer:
        writer.execute("SELECT set_config('search_path', %s, false)", [site.schema])
        writer.execute("SET lock_timeout = '50ms'")
        asset = asset_of(site.intent(with_index("title"), version=2))
        plugin = DatabasePlugin(Path("/"), Threads("database", 2), SystemClock())

        async def build() -> Outcome:
            target = target_of(asset)
            return await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target))

        async def write_and_build() -> Outcome:
            building = asyncio.ensure_future(build())
            with writer.transaction():
                # The build waits for this transaction, and this transaction does not wait for it.
                writer.execute("INSERT INTO plays VALUES (1, 'Hamlet')")
                await begun(site)
                writer.execute("INSERT INTO plays VALUES (2, 'Othello')")
                assert not building.done()
            return await building

        assert asyncio.run(write_and_build()).result is Result.DONE
    assert site.diff(site.intent(with_index("title"), version=2)).empty


def test_close_ends_a_build_that_would_last(site: Site) -> None:
    site.apply(site.intent())
    asset = asset_of(site.intent(with_index("title"), version=2))
    plugin = DatabasePlugin(Path("/"), Threads("database", 2), SystemClock())

    async def close_while_building() -> None:
        target = target_of(asset)
        push = push_of(target)
        pushing = asyncio.ensure_future(plugin.push(target, FixedReader([asset], REGISTRY), push))
        await begun(site)
        assert await plugin.status(push.operation) is Progress.RUNNING
        await plugin.close()
        with pytest.raises(TransientError):
            await pushing
        assert await plugin.status(push.operation) is Progress.ENDED

    with site.server.connect(DATABASE) as writer, writer.transaction():
        writer.execute(f"LOCK TABLE {site.schema}.plays IN ROW EXCLUSIVE MODE")
        writer.execute(f"INSERT INTO {site.schema}.plays VALUES (1, 'Hamlet')")
        asyncio.run(close_while_building())


PUSH = """
import asyncio, sys
from pathlib import Path
import msgspec
from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.asset import AssetId, make_asset
from lehr.model.types import Registry
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, DatabaseSchema
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.testing.plugins import FixedReader, push_of, target_of
asset = make_asset(AssetId("db"), DATABASE_SCHEMA, msgspec.json.decode(sys.argv[1], type=DatabaseSchema), {})
target, reader = target_of(asset), FixedReader([asset], Registry(TYPES))
asyncio.run(DatabasePlugin(Path("/"), Inline(), SystemClock()).push(target, reader, push_of(target)))
"""


def test_what_a_killed_process_had_begun_ends_and_lets_no_other_push_begin_before(site: Site) -> None:
    site.apply(site.intent())
    intent = site.intent(with_index("title"), version=2)
    with contextlib.closing(site.server.connect(DATABASE)) as writer:
        writer.execute("BEGIN")
        writer.execute(f"INSERT INTO {site.schema}.plays VALUES (1, 'Hamlet')")
        child = subprocess.Popen([sys.executable, "-c", PUSH, msgspec.json.encode(intent).decode()])
        asyncio.run(begun(site))
        with raises("DBS110", TransientError):
            site.push(intent)
        child.kill()
        child.wait()
        asyncio.run(ended(site))
    site.apply(intent)


def test_a_database_is_made_only_when_that_is_asked_for(site: Site) -> None:
    connection = site.server.url(f"new_{site.schema}")
    with raises("DBS103", StalledError):
        site.diff(site.intent(connection=connection))
    intent = site.intent(connection=connection, create_database=True)
    found = site.diff(intent)
    assert paths(found) == ["database", "version"]
    assert (found.effects.version_from, found.effects.version_to) == ("0", "1")
    site.apply(intent)


def test_a_server_that_lets_nobody_in_stalls(site: Site) -> None:
    connection = site.server.url(DATABASE).replace("plays@", "nobody@")
    with raises("DBS118", StalledError, match="nobody"):
        site.diff(site.intent(connection=connection))


def test_a_socket_whose_path_is_too_long_stalls(site: Site) -> None:
    with raises("DBS115", StalledError, match="107"):
        site.diff(site.intent(connection=f"postgresql:///plays?host=/{'x' * 120}"))


def test_a_view_by_the_name_of_a_table_stalls(site: Site) -> None:
    site.apply(site.intent(None))
    site.sql("CREATE VIEW plays AS SELECT 1 AS id")
    with raises("DBS111", StalledError):
        site.diff(site.intent())


def test_a_table_for_the_version_that_is_not_lehrs_stalls(site: Site) -> None:
    site.apply(site.intent())
    site.sql("ALTER TABLE lehr_schema RENAME COLUMN version TO other")
    with raises("DBS121", StalledError):
        site.diff(site.intent())


def test_a_version_that_was_lost_is_written_again(site: Site) -> None:
    site.apply(site.intent(version=3))
    site.sql("DROP TABLE lehr_schema")
    found = site.diff(site.intent(version=3))
    assert found.effects.version_from == "0"
    site.apply(site.intent(version=3))


def test_a_driver_that_is_not_installed_stalls_and_says_how_to_get_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "lehr.plugins.database.postgres", raising=False)
    monkeypatch.delattr("lehr.plugins.database.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with raises("DBS102", StalledError):
        site.diff(site.intent())


async def begun(site: Site) -> None:
    """Returns when the build of the index has begun."""
    for _ in range(2000):
        if site.has("by_title"):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the build of the index does not begin")


async def ended(site: Site) -> None:
    """Returns when nobody holds the lock of a push."""
    for _ in range(2000):
        if not site.sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the build of the index does not end")


async def hint(hints: AsyncIterator[AssetKey]) -> AssetKey:
    return await asyncio.wait_for(anext(hints), 30)


def test_watch_tells_of_a_dropped_index_and_of_a_server_that_goes_and_comes(server: PostgresServer) -> None:
    site = Site(server)
    intent = site.intent(with_index("title"))
    asset = asset_of(intent)
    target, reader = target_of(asset), FixedReader([asset], REGISTRY)

    async def look() -> Diff | LehrError:
        try:
            return await site.plugin.diff(target, reader)
        except LehrError as error:
            return error

    async def scenes() -> None:
        await site.plugin.push(target, reader, push_of(target))
        await look()
        hints = site.plugin.watch()
        site.sql("DROP INDEX by_title")
        assert await hint(hints) == target.key
        found = await look()
        assert isinstance(found, Diff)
        assert paths(found) == ["tables/plays/indexes/by_title"]
        server.stop()
        assert await hint(hints) == target.key
        assert isinstance(await look(), TransientError)
        coming = asyncio.ensure_future(hint(hints))
        await asyncio.sleep(0.2)
        assert not coming.done()  # a server that stays down is told of once
        server.start()
        assert await coming == target.key
        assert isinstance(await look(), Diff)
        await hints.aclose()  # type: ignore[attr-defined]

    asyncio.run(scenes())


def test_a_server_that_is_killed_in_the_middle_of_a_push_leaves_it_unknown(server: PostgresServer) -> None:
    site = Site(server)
    site.apply(site.intent())
    intent = site.intent(with_index("title"), version=2)
    asset = asset_of(intent)
    plugin = DatabasePlugin(Path("/"), Threads("database", 2), SystemClock())

    async def kill_while_building() -> Outcome:
        target = target_of(asset)
        pushing = asyncio.ensure_future(plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)))
        await begun(site)
        server.stop(signal.SIGKILL)
        return await pushing

    with contextlib.closing(server.connect(DATABASE)) as writer:
        writer.execute("BEGIN")
        writer.execute(f"INSERT INTO {site.schema}.plays VALUES (1, 'Hamlet')")
        outcome = asyncio.run(kill_while_building())
    assert outcome.result is Result.UNKNOWN
    server.start()
    found = site.diff(intent)
    assert found.effects.version_from == "1"
    site.apply(intent)

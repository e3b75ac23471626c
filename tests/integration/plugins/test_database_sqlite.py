"""Rules of the plugin `lehr.DatabaseSchema`, on real files of SQLite."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import NO_DIFF, Diff
from lehr.model.operation import Outcome, Result
from lehr.model.types import Registry
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, Column, DatabaseSchema, Index, Table
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles

REGISTRY = Registry(TYPES)
FILE = "plays.sqlite"
PLAYS = Table({"id": Column("integer"), "title": Column("text", nullable=False)}, ["id"])


def intent(table: Table | None = PLAYS, version: int = 1, **fields: Any) -> DatabaseSchema:
    tables = {} if table is None else {"plays": table}
    known = {"connection": f"sqlite:{FILE}", "tables": tables, "create_database": True, **fields}
    return DatabaseSchema(version=version, **known)


def asset_of(schema: DatabaseSchema) -> Asset:
    return make_asset(AssetId("database/schema"), DATABASE_SCHEMA, schema, {})


def diff(base: Path, schema: DatabaseSchema) -> Diff:
    asset, plugin = asset_of(schema), DatabasePlugin(base, Inline(), SystemClock())
    return asyncio.run(plugin.diff(target_of(asset), FixedReader([asset], REGISTRY)))


def push(base: Path, schema: DatabaseSchema, approved: Diff = NO_DIFF) -> Outcome:
    asset, plugin = asset_of(schema), DatabasePlugin(base, Inline(), SystemClock())
    target = target_of(asset)
    call = plugin.push(target, FixedReader([asset], REGISTRY), push_of(target, diff=approved))
    return asyncio.run(call)


def apply(base: Path, schema: DatabaseSchema) -> None:
    """Approve what differs, push it, and see that nothing differs then."""
    assert push(base, schema, diff(base, schema)).result is Result.DONE
    assert diff(base, schema).changes == ()


def sql(base: Path, *statements: str) -> list[Any]:
    """Run statements; returns the rows of the last."""
    with contextlib.closing(sqlite3.connect(base / FILE, isolation_level=None)) as connection:
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows


def everything(base: Path) -> object:
    """All that the plugin could touch."""
    if not (base / FILE).exists():
        return None
    return sql(base, "SELECT * FROM sqlite_schema ORDER BY name"), sql(base, "PRAGMA user_version")


def paths(found: Diff) -> list[str]:
    return [change.path for change in found.changes]


def with_columns(**columns: Column) -> Table:
    return Table({**PLAYS.columns, **columns}, ["id"])


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("database", 2)], ids=["inline", "threads"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, blocking: Callable[[], Blocking], tmp_path: Path) -> None:
    def indexed(*columns: str) -> Table:
        return Table(PLAYS.columns, ["id"], {"by_title": Index(list(columns))})

    subject = Subject(
        make=lambda: DatabasePlugin(tmp_path, blocking(), SystemClock()),
        registry=REGISTRY,
        asset=asset_of(intent(indexed("title"))),
        changed=asset_of(intent(indexed("title", "id"), version=2)),
        disturb=lambda: sql(tmp_path, "DROP INDEX by_title").clear(),
        observe=lambda: everything(tmp_path),
        troubles=(
            lambda: troubles.directory_at(tmp_path / FILE),
            lambda: troubles.file_at(tmp_path / FILE, b"no database, but a text of some length" * 100),
        ),
        query=(f"sqlite:{FILE}",),
    )
    asyncio.run(rule(subject))


def test_what_was_applied_is_no_difference_however_it_is_written(tmp_path: Path) -> None:
    columns = {
        "id": Column("bigserial"),
        "a": Column("INT", default=-1),
        "b": Column("VarChar ( 20 )", default="'it''s'"),
        "c": Column("bool", nullable=False, default=False),
        "d": Column("timestamp", default="now()"),
        "e": Column("DATE", default="current_date"),
        "f": Column("numeric(10, 2)", default=1.5),
        "g": Column("double precision"),
        "h": Column("text", default="null"),
    }
    apply(tmp_path, intent(Table(columns, ["id"], {"by_a": Index(["a", "b"], unique=True)})))
    pair = Table({"a": Column("text"), "b": Column("int")}, ["a", "b"])
    apply(tmp_path, intent(pair, connection="sqlite:pair.sqlite"))


def test_what_another_hand_has_made_is_no_difference_if_it_is_the_same(tmp_path: Path) -> None:
    sql(
        tmp_path,
        "CREATE TABLE PLAYS (ID INTEGER PRIMARY KEY AUTOINCREMENT, Title VARCHAR(20) NOT NULL UNIQUE,"
        " year INT DEFAULT 1600 CHECK (year > 0))",
        "CREATE INDEX old ON plays (year) WHERE year < 1600",
        "PRAGMA user_version = 1",
    )
    columns = {
        "id": Column("serial"),
        "title": Column("varchar(20)", nullable=False),
        "year": Column("integer", default=1600),
    }
    assert diff(tmp_path, intent(Table(columns, ["id"]))).empty


def test_a_new_column_comes_with_its_version(tmp_path: Path) -> None:
    apply(tmp_path, intent())
    sql(tmp_path, "INSERT INTO plays VALUES (1, 'Hamlet')")
    after = intent(with_columns(author=Column("text", nullable=False, default="'anon'")), version=2)
    found = diff(tmp_path, after)
    assert paths(found) == ["tables/plays/columns/author", "version"]
    assert (found.effects.version_from, found.effects.version_to) == ("1", "2")
    apply(tmp_path, after)
    assert sql(tmp_path, "SELECT author FROM plays") == [("anon",)]


@pytest.mark.parametrize("column", [Column("text", nullable=False), Column("timestamp", default="now()")])
def test_a_change_is_whole_or_not_at_all(column: Column, tmp_path: Path) -> None:
    apply(tmp_path, intent())
    sql(tmp_path, "INSERT INTO plays VALUES (1, 'Hamlet')")
    before = everything(tmp_path)
    with raises("DBS129", StalledError):
        push(tmp_path, intent(with_columns(a=Column("text"), b=column), version=2))
    assert everything(tmp_path) == before


def test_what_destroys_needs_the_approval_of_exactly_that(tmp_path: Path) -> None:
    apply(tmp_path, intent(with_columns(a=Column("text")), version=2))
    shown = diff(tmp_path, intent())
    assert shown.effects.destructive
    with raises("DBS109", TransientError):
        push(tmp_path, intent())
    sql(tmp_path, 'ALTER TABLE plays ADD COLUMN "b""; DROP TABLE plays; --" text')
    with raises("DBS109", TransientError):
        push(tmp_path, intent(), shown)
    apply(tmp_path, intent())
    gone = intent(Table(absent=True))
    assert diff(tmp_path, gone).effects.destructive
    apply(tmp_path, gone)


def test_a_column_that_is_there_is_not_changed(tmp_path: Path) -> None:
    apply(tmp_path, intent())
    wider = Table({**PLAYS.columns, "title": Column("text")}, ["id"])
    assert paths(diff(tmp_path, intent(wider))) == ["tables/plays/columns/title/nullable"]
    with raises("DBS124", StalledError):
        push(tmp_path, intent(wider))


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (with_columns(n=Column("serial")), "DBS126"),
        (with_columns(u=Column("text", default="gen_random_uuid()")), "DBS127"),
    ],
)
def test_what_sqlite_has_not_stalls(table: Table, code: str, tmp_path: Path) -> None:
    apply(tmp_path, intent())
    with raises(code, StalledError):
        diff(tmp_path, intent(table))


def test_a_file_is_made_only_when_that_is_asked_for_and_never_by_a_look(tmp_path: Path) -> None:
    with raises("DBS103", StalledError):
        diff(tmp_path, intent(create_database=False))
    assert paths(diff(tmp_path, intent())) == ["database", "version"]
    assert list(tmp_path.iterdir()) == []
    with raises("DBS125", StalledError):
        push(tmp_path, intent(connection="sqlite:nowhere/plays.sqlite"))


def test_a_file_that_is_no_database_stalls_and_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("The play's the thing\n" * 100)
    with raises("DBS129", StalledError):
        diff(tmp_path, intent())
    with raises("DBS129", StalledError):
        push(tmp_path, intent())
    assert (tmp_path / FILE).read_text().startswith("The play's the thing")


def test_a_path_is_a_path_whatever_it_has(tmp_path: Path) -> None:
    apply(tmp_path, intent(connection="sqlite:a?mode=memory#b%20c.sqlite"))
    assert (tmp_path / "a?mode=memory#b%20c.sqlite").exists()


def test_whoever_writes_makes_a_push_give_up_soon(tmp_path: Path) -> None:
    apply(tmp_path, intent())
    with contextlib.closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with raises("DBS128", TransientError):
            push(tmp_path, intent(version=2))
    apply(tmp_path, intent(version=2))

"""What `lehr.DatabaseSchema` drafts of databases that are there."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, Partition, id_problem, make_asset
from lehr.model.types import Registry
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, DatabaseSchema
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.sdk.plugin import Found
from lehr.testing.plugins import FixedReader, target_of
from tests.codes import raises
from tests.postgres import PostgresServer

SHOP = """
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, rating REAL DEFAULT 1.5, born DATE,
    active BOOLEAN DEFAULT true, since TIMESTAMP DEFAULT CURRENT_TIMESTAMP, email VARCHAR(80) UNIQUE);
CREATE TABLE orders (
    customer INTEGER REFERENCES customers (id), number INTEGER NOT NULL DEFAULT 0,
    note TEXT DEFAULT 'it''s none', PRIMARY KEY (customer, number));
CREATE INDEX orders_by_note ON orders (note, number);
CREATE UNIQUE INDEX customers_by_name ON customers (name);
CREATE INDEX some_orders ON orders (note) WHERE note IS NOT NULL;
"""


def drafts(base: Path, *query: str) -> list[Found]:
    """What is found; each without an obstacle differs in nothing."""

    async def main() -> list[Found]:
        plugin = DatabasePlugin(base, Inline(), SystemClock())
        found = [item async for item in plugin.discover(query, Partition("test"))]
        for draft in found:
            assert id_problem(draft.id) is None
            if not draft.obstacle:
                payload = msgspec.convert(draft.payload, DatabaseSchema)
                asset = make_asset(AssetId(draft.id), DATABASE_SCHEMA, payload, {})
                diff = await plugin.diff(target_of(asset), FixedReader([asset], Registry(TYPES)))
                assert diff.changes == ()
        await plugin.close()
        return found

    return asyncio.run(main())


def sqlite_of(base: Path, script: str) -> str:
    with contextlib.closing(sqlite3.connect(base / "shop.sqlite")) as connection:
        connection.executescript(script)
    return "sqlite:shop.sqlite"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    started = PostgresServer()
    started.start()
    yield started
    started.close()


def test_a_file_of_sqlite_is_drafted_whole_and_differs_in_nothing(tmp_path: Path) -> None:
    [draft] = drafts(tmp_path, sqlite_of(tmp_path, SHOP))
    assert (draft.id, draft.obstacle, draft.payload["version"]) == ("database/shop", "", 0)
    customers, orders = (draft.payload["tables"][name] for name in ("customers", "orders"))
    assert customers["columns"]["name"] == {"type": "text", "nullable": False}
    assert customers["indexes"] == {"customers_by_name": {"columns": ["name"], "unique": True}}
    assert orders["primary_key"] == ["customer", "number"]
    assert orders["columns"]["number"] == {"type": "integer", "default": 0}
    assert list(orders["indexes"]) == ["orders_by_note"]
    assert any("some_orders" in note for note in draft.notes)


def test_a_version_that_is_kept_is_taken_over(tmp_path: Path) -> None:
    [draft] = drafts(tmp_path, sqlite_of(tmp_path, SHOP + "PRAGMA user_version = 7;"))
    assert draft.payload["version"] == 7


def test_tables_of_which_intent_cannot_say_all_are_left_out_and_named(tmp_path: Path) -> None:
    odd = 'CREATE TABLE odd (untyped); CREATE TABLE "two words" (id integer);'
    odd += "CREATE TABLE late (at TEXT DEFAULT (1 + 1))"
    [draft] = drafts(tmp_path, sqlite_of(tmp_path, f"{SHOP}; {odd}"))
    assert draft.payload["tables"].keys() == {"customers", "orders"}
    skipped = {note.split()[1] for note in draft.notes if note.startswith("table ")}
    assert skipped == {"odd", "two", "late"}
    [nothing] = drafts(tmp_path, "sqlite:shop.sqlite", "odd", "late")
    assert nothing.obstacle
    assert nothing.payload["tables"] == {}


def test_patterns_choose_tables(tmp_path: Path) -> None:
    [draft] = drafts(tmp_path, sqlite_of(tmp_path, SHOP), "ord*")
    assert list(draft.payload["tables"]) == ["orders"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (["sqlite:none.sqlite"], "DBS103"),
        (["shop.sqlite"], "DBS104"),
        (["postgresql://me:hunter2@host/shop"], "DBS104"),
        (["sqlite:shop.sqlite", "nothing*"], "DBS106"),
    ],
)
def test_a_question_that_finds_nothing_is_refused(query: list[str], code: str, tmp_path: Path) -> None:
    sqlite_of(tmp_path, SHOP)
    with raises(code, StalledError) as raised:
        drafts(tmp_path, *query)
    assert "hunter2" not in str(raised.value)


def test_schemas_of_postgres_are_drafted_whole_and_differ_in_nothing(server: PostgresServer) -> None:
    orders = """CREATE TABLE sales.orders (
        id bigserial PRIMARY KEY, at timestamptz(3) DEFAULT now(), tags text[],
        price numeric(10, 2) DEFAULT 0, state varchar(20) NOT NULL DEFAULT 'new', open boolean DEFAULT true,
        mood sales.mood, number integer GENERATED ALWAYS AS IDENTITY, code char(3) UNIQUE,
        amount integer DEFAULT -1)"""
    statements: tuple[LiteralString, ...] = (
        "CREATE SCHEMA sales",
        "CREATE TYPE sales.mood AS ENUM ('good', 'bad')",
        orders,
        "CREATE INDEX orders_by_state ON sales.orders (state, at)",
        "CREATE INDEX orders_by_lower_state ON sales.orders (lower(state))",
        'CREATE TABLE sales.flags (flag "char")',
        "CREATE VIEW sales.open_orders AS SELECT * FROM sales.orders",
        "CREATE TABLE plain (id uuid PRIMARY KEY DEFAULT gen_random_uuid())",
    )
    for statement in statements:
        server.run(statement)
    plain, sales = drafts(Path("/"), server.url("postgres"), "plain", "sales.*")
    assert plain.payload["tables"]["plain"]["columns"]["id"] == {
        "type": "uuid",
        "default": "gen_random_uuid()",
    }
    assert (plain.id, sales.id) == ("database/postgres", "database/postgres/sales")
    assert (sales.payload["schema"], sales.payload["version"]) == ("sales", 0)
    columns = sales.payload["tables"]["orders"]["columns"]
    assert columns["id"] == {"type": "bigserial"}
    assert columns["open"] == {"type": "boolean", "default": True}
    assert columns["amount"] == {"type": "integer", "default": -1}
    assert list(sales.payload["tables"]["orders"]["indexes"]) == ["orders_by_state"]
    assert any(note.startswith("table flags is skipped") for note in sales.notes)

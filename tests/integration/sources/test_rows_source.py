"""Rows of real databases as a source: SQLite, and PostgreSQL that goes away and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.declared_sources import SqlPlace
from lehr.plugins.database.databases import rows
from lehr.sources.rows import RowsSource
from tests.codes import raises
from tests.postgres import PostgresServer

QUERY = "SELECT name, size FROM cluster"


def source(sql: str, tmp_path: Path, **more: Any) -> RowsSource:
    place = replace(SqlPlace(sql=sql, query=QUERY, key=("name",), poll=0.1), **more)
    return RowsSource(
        place,
        tmp_path / "archive.git",
        lambda place: rows(place.sql, place.query, tmp_path),
        clock=SystemClock(),
        blocking=Inline(),
    )


def read(source: RowsSource) -> Any:
    return json.loads(source.newest().read("rows.json"))


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.sqlite"
    change(path, "CREATE TABLE cluster (name TEXT, size INTEGER)", "INSERT INTO cluster VALUES ('us', 3)")
    change(path, "INSERT INTO cluster VALUES ('eu', 7)")
    return path


def change(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    found = PostgresServer()
    try:
        found.start()
        found.run("CREATE TABLE cluster (name text, size integer)")
        found.run("INSERT INTO cluster VALUES ('us', 3), ('eu', 7)")
        yield found
    finally:
        found.close()


@pytest.mark.usefixtures("inventory")
def test_rows_of_sqlite_are_one_file_ordered_by_key(tmp_path: Path) -> None:
    opened = source("sqlite:inventory.sqlite", tmp_path)
    assert opened.name == "sql:sqlite:inventory.sqlite"
    assert list(opened.newest().files()) == ["rows.json"]
    assert read(opened) == [{"name": "eu", "size": 7}, {"name": "us", "size": 3}]


def test_the_revision_is_that_of_the_rows_and_each_that_was_kept_can_be_read_for_ever(
    tmp_path: Path, inventory: Path
) -> None:
    opened = source("sqlite:inventory.sqlite", tmp_path)
    first = opened.newest().revision
    opened.keep(first)
    change(inventory, "UPDATE cluster SET size = 8 WHERE name = 'eu'")
    second = opened.newest()
    assert second.revision != first
    change(inventory, "DELETE FROM cluster WHERE name = 'eu'", "INSERT INTO cluster VALUES ('eu', 7)")
    assert opened.newest().revision == first
    inventory.unlink()
    again = source("sqlite:inventory.sqlite", tmp_path)
    assert json.loads(again.at(first).read("rows.json"))[0] == {"name": "eu", "size": 7}
    with raises("SRC102", StalledError):
        again.at(second.revision)


def test_no_row_and_no_database_are_errors_and_never_an_empty_answer(tmp_path: Path, inventory: Path) -> None:
    opened = source("sqlite:inventory.sqlite", tmp_path)
    opened.newest()
    change(inventory, "DELETE FROM cluster")
    with raises("SRC132", StalledError):
        opened.newest()
    assert read(source("sqlite:inventory.sqlite", tmp_path, may_be_empty=True)) == []
    inventory.unlink()
    with raises("DBS114", TransientError):
        opened.newest()


@pytest.mark.parametrize("query", ["DELETE FROM cluster RETURNING name, size", "SELECT nothing FROM cluster"])
def test_a_query_only_reads(tmp_path: Path, inventory: Path, query: str) -> None:
    with pytest.raises((StalledError, TransientError)):
        source("sqlite:inventory.sqlite", tmp_path, query=query).newest()
    with contextlib.closing(sqlite3.connect(inventory)) as database:
        assert database.execute("SELECT count(*) FROM cluster").fetchone() == (2,)


@pytest.mark.usefixtures("inventory")
def test_more_rows_than_anybody_reviews_are_refused(tmp_path: Path) -> None:
    many = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100001) SELECT i AS name FROM n"
    )
    with raises("DBS122", StalledError, match="100,000"):
        source("sqlite:inventory.sqlite", tmp_path, query=many).newest()


@pytest.mark.usefixtures("inventory")
def test_it_is_looked_at_again_and_again(tmp_path: Path) -> None:
    async def two() -> None:
        hints = source("sqlite:inventory.sqlite", tmp_path).changes()
        for _ in range(2):
            await asyncio.wait_for(anext(hints), 10)

    asyncio.run(two())


def test_postgres_gives_the_same_file(server: PostgresServer, tmp_path: Path, inventory: Path) -> None:
    of_postgres = source(server.url("postgres"), tmp_path)
    assert inventory.exists()
    of_sqlite = source("sqlite:inventory.sqlite", tmp_path)
    assert of_postgres.newest().read("rows.json") == of_sqlite.newest().read("rows.json")
    assert of_postgres.newest().revision.revision == of_sqlite.newest().revision.revision


def test_values_of_postgres_are_plain(server: PostgresServer, tmp_path: Path) -> None:
    query = """SELECT 'a' AS name, 1.50::numeric AS money, '2026-11-21T01:02:03+01'::timestamptz AS at,
               ARRAY[1, 2] AS list, '{"b": [true, null]}'::jsonb AS more, NULL::text AS nothing"""
    assert read(source(server.url("postgres"), tmp_path, query=query)) == [
        {
            "name": "a",
            "money": "1.50",
            "at": "2026-11-21T00:02:03Z",
            "list": [1, 2],
            "more": {"b": [True, None]},
            "nothing": None,
        }
    ]


def test_no_row_of_postgres_is_an_error_and_one_that_may_be_is_an_empty_list(
    server: PostgresServer, tmp_path: Path
) -> None:
    query = f"{QUERY} WHERE size > 100"
    with raises("SRC132", StalledError):
        source(server.url("postgres"), tmp_path, query=query).newest()
    assert read(source(server.url("postgres"), tmp_path, query=query, may_be_empty=True)) == []


@pytest.mark.parametrize("query", ["DELETE FROM cluster", "SELECT 1 AS name; DELETE FROM cluster"])
def test_a_query_of_postgres_only_reads(server: PostgresServer, tmp_path: Path, query: str) -> None:
    with pytest.raises((StalledError, TransientError)):
        source(server.url("postgres"), tmp_path, query=query).newest()
    assert server.run("SELECT count(*) FROM cluster") == [(2,)]


def test_a_server_that_goes_away_may_come_back(server: PostgresServer, tmp_path: Path) -> None:
    opened = source(server.url("postgres"), tmp_path)
    first = opened.newest().revision
    server.stop()
    with pytest.raises(TransientError):
        opened.newest()
    server.start()
    assert opened.newest().revision == first

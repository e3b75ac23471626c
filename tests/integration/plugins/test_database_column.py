"""Values that PostgreSQL knows, for rules that compare intent with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.database.databases import column
from tests.postgres import PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    found = PostgresServer()
    try:
        found.start()
        found.run("CREATE TABLE cluster (name text, size integer)")
        found.run("INSERT INTO cluster VALUES ('eu', 7), ('us', 3), (NULL, NULL)")
        yield found
    finally:
        found.close()


def test_the_first_column_is_read_as_text_without_null(server: PostgresServer, tmp_path: Path) -> None:
    url = server.url("postgres")
    assert column(url, "SELECT name, size FROM cluster", tmp_path) == {"eu", "us"}
    assert column(url, "SELECT size FROM cluster WHERE name LIKE 'e%'", tmp_path) == {"7"}


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM cluster",
        "DELETE FROM cluster RETURNING name",
        "SET default_transaction_read_only = off; DELETE FROM cluster",
        "SELECT nothing FROM cluster",
    ],
)
def test_a_query_only_reads(server: PostgresServer, tmp_path: Path, query: str) -> None:
    with pytest.raises((StalledError, TransientError)):
        column(server.url("postgres"), query, tmp_path)
    assert server.run("SELECT count(*) FROM cluster") == [(3,)]


def test_a_server_that_is_not_there_may_come_back(server: PostgresServer, tmp_path: Path) -> None:
    with pytest.raises(TransientError):
        column(server.url("nowhere"), "SELECT 1", tmp_path)
    with pytest.raises(TransientError):
        column(f"postgresql://x@/postgres?host={tmp_path}", "SELECT 1", tmp_path)

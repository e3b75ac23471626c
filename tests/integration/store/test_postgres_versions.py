"""The tables: made once, and refused where they are another version's or another program's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lehr.base.errors import StalledError
from lehr.store.postgres import Address, PostgresStore
from lehr.store.sql import schema
from lehr.testing.conformance.store.subject import PARTITION, asset, contents, published
from tests.codes import raises
from tests.postgres import PostgresServer


@contextlib.contextmanager
def database(address: Address) -> Iterator[psycopg.Connection[Any]]:
    with contextlib.closing(psycopg.connect(address.conninfo, autocommit=True)) as db:
        db.execute(f"SET search_path = {address.schema}".encode())
        yield db


def rows(address: Address, query: str) -> list[Any]:
    with database(address) as db:
        return db.execute(query.encode()).fetchall()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_store_of_another_version_is_refused_and_left_alone(
    address: Address, step: int, read_only: bool
) -> None:
    PostgresStore(address).close()
    with database(address) as db:
        db.execute("UPDATE version SET number = number + %s", [step])
    with pytest.raises(StalledError) as caught:
        PostgresStore(address, read_only=read_only)
    assert caught.value.code == "STO134"
    assert rows(address, "SELECT number FROM version") == [(schema.VERSION + step,)]


def test_where_nothing_was_written_a_reader_is_told_so(address: Address) -> None:
    with raises("STO132", StalledError):
        PostgresStore(address, read_only=True)
    assert rows(address, f"SELECT to_regnamespace('{address.schema}') IS NULL") == [(True,)]


def test_another_programs_tables_are_left_alone(address: Address) -> None:
    with database(address) as db:
        db.execute(f"CREATE SCHEMA {address.schema}; CREATE TABLE {address.schema}.audit (x int)".encode())
    for read_only in (True, False):
        with raises("STO131", StalledError):
            PostgresStore(address, read_only=read_only)


def test_several_who_come_first_at_the_same_time_make_the_tables_once(address: Address) -> None:
    opened: list[PostgresStore] = []
    coming = [threading.Thread(target=lambda: opened.append(PostgresStore(address))) for _ in range(4)]
    for thread in coming:
        thread.start()
    for thread in coming:
        thread.join()
    assert len(opened) == 4
    for store in opened:
        store.close()
    assert rows(address, "SELECT number FROM version") == [(schema.VERSION,)]


def test_who_may_only_read_reads(server: PostgresServer, address: Address) -> None:
    with contextlib.closing(PostgresStore(address)) as store:
        published(store, 0, asset("a", "1"))
    server.run("CREATE ROLE reader LOGIN")
    with database(address) as db:
        db.execute(f"GRANT USAGE ON SCHEMA {address.schema} TO reader".encode())
        db.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO reader".encode())
    reader = Address(address.url.replace("user=plays", "user=reader"))
    with contextlib.closing(PostgresStore(reader, read_only=True)) as store:
        assert contents(store, 1) == [asset("a", "1")]
        assert store.intent.partitions() == [PARTITION]
        assert list(store.check(lambda partition: None)) == []
        with raises("STO111", StalledError):
            store.commit([])
    with raises("STO127", StalledError) as caught:
        PostgresStore(reader)
    assert caught.value.fix

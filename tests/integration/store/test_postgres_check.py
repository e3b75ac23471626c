"""Whatever is changed in the tables behind the program's back is found and named; nothing else is."""

from __future__ import annotations

import contextlib
import re

import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.model.damage import Damage
from lehr.store.postgres import Address, PostgresStore
from lehr.store.postgres.connections import connect
from lehr.store.postgres.errors import DAMAGE
from lehr.store.postgres.session import PostgresSession
from lehr.store.sql.check import check
from lehr.testing.conformance.store.subject import PARTITION, THING, published
from tests.integration.store.conftest import fresh
from tests.integration.store.test_store_check import DAMAGES, Thing, grow, types
from tests.postgres import PostgresServer

_REPLACED = re.compile(r"replace\((\w+), ('[^']*'), ('[^']*')\)")


@pytest.fixture(scope="module")
def grown(server: PostgresServer) -> Address:
    address = fresh(server)
    with contextlib.closing(PostgresStore(address)) as store:
        grow(store)
    return address


def found_after(address: Address, statement: str) -> list[Damage]:
    """What is found once the statement was carried out. Then all is as it was again."""
    as_text = _REPLACED.sub(r"convert_to(replace(convert_from(\1, 'UTF8'), \2, \3), 'UTF8')", statement)
    with contextlib.closing(connect(address)) as connection:
        connection.execute("BEGIN")
        connection.execute(as_text.encode())
        said = list(check(PostgresSession(connection), types, lambda rows: None, DAMAGE))
        connection.execute("ROLLBACK")
        return said


def test_an_intact_store_is_clean(grown: Address) -> None:
    with contextlib.closing(PostgresStore(grown, read_only=True)) as store:
        assert list(store.check(types)) == []


def test_a_store_with_nothing_in_it_is_clean(address: Address) -> None:
    with contextlib.closing(PostgresStore(address)) as store:
        assert list(store.check(types)) == []


@pytest.mark.parametrize("statement", DAMAGES)
def test_each_kind_of_damage_is_found_and_named(grown: Address, statement: str) -> None:
    said = found_after(grown, statement)
    assert all(item.what and item.why and item.fix for item in said)
    for expected in DAMAGES[statement]:
        assert any(expected in item.what for item in said), [item.what for item in said]


def test_what_cannot_be_read_at_all_is_told_and_the_rest_is_looked_at(grown: Address) -> None:
    said = [item.what for item in found_after(grown, "DROP TABLE claim_current")]
    assert any("the check of the indexes of one could not be finished" in what for what in said), said


def test_it_reads_one_moment_and_disturbs_nobody(address: Address) -> None:
    with (
        contextlib.closing(PostgresStore(address)) as writer,
        contextlib.closing(PostgresStore(address)) as store,
    ):
        grow(writer)

        def publish_more(rows: int) -> None:
            newest = writer.intent.newest(PARTITION)
            assert newest is not None
            if newest.sequence < 9:
                published(writer, newest.sequence, make_asset(AssetId("e"), THING, Thing(), {}))

        counted: list[int] = []
        assert list(store.check(types, began=counted.append, advance=publish_more)) == []
        assert counted[0] > 10
        newest = writer.intent.newest(PARTITION)
        assert newest is not None
        assert newest.sequence > 6
        assert list(store.check(types)) == []

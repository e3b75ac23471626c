"""Digests are those of the assets, whatever was remembered of their buckets."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lehr.base.errors import LehrError, StalledError
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import bucket_of, incarnation_digest
from lehr.model.writes import KeepLease, LeaseLostError
from lehr.store.sqlite import SqliteStore, buckets
from lehr.testing.conformance.store.subject import PARTITION, asset, publication, published

FIRST = "service"
BUCKET = bucket_of(AssetId(FIRST))
NEIGHBOURS = [id for id in (f"a{number}" for number in range(60_000)) if bucket_of(AssetId(id)) == BUCKET][:3]
"""Of the same bucket."""

NESTED = next(
    id
    for id in (f"b{len(FIRST)}:{FIRST}40:{number}" for number in range(200_000))
    if bucket_of(AssetId(id)) == BUCKET
)
"""Of the same bucket, and it has in it all that stands before the digest of the first."""

IDS = [FIRST, *NEIGHBOURS]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        yield store


def publish(store: SqliteStore, base: int, *changed: Asset, removals: Sequence[str] = ()) -> Incarnation:
    incarnation = published(store, base, *changed, removals=list(removals))
    heads = store.intent.heads(PARTITION)
    assert incarnation.digest == incarnation_digest((head.id, head.digest) for head in heads)
    return incarnation


def test_assets_of_one_bucket_change_come_and_go(store: SqliteStore) -> None:
    publish(store, 0, *(asset(id, "1") for id in IDS))
    publish(store, 1, asset(FIRST, "2"))
    publish(store, 2, asset(FIRST, "3"), asset(NEIGHBOURS[0], "2"))
    publish(store, 3, asset(NEIGHBOURS[1], "2"), removals=[FIRST])
    publish(store, 4, asset(NEIGHBOURS[1], "3"))
    publish(store, 5, asset(FIRST, "4"), asset(NEIGHBOURS[1], "4"))
    publish(store, 6, removals=IDS)
    publish(store, 7, asset(FIRST, "5"))
    publish(store, 8, asset(FIRST, "6"))


def test_an_id_within_another_id_is_not_taken_for_it(store: SqliteStore) -> None:
    publish(store, 0, asset(FIRST, "1"), asset(NESTED, "1"))
    for base, value in enumerate(("2", "3", "4"), 1):
        publish(store, base, asset(FIRST, value))
    for base, value in enumerate(("2", "3", "4"), 4):
        publish(store, base, asset(NESTED, value))


def test_what_another_process_has_published_is_not_overlooked(store: SqliteStore, tmp_path: Path) -> None:
    publish(store, 0, *(asset(id, "1") for id in IDS))
    publish(store, 1, asset(FIRST, "2"))
    with closing(SqliteStore(tmp_path / "state.sqlite")) as other:
        publish(other, 2, asset(NEIGHBOURS[0], "2"))
        publish(store, 3, asset(FIRST, "3"))
        publish(other, 4, asset(NEIGHBOURS[1], "2"))


def test_what_was_rolled_back_is_not_remembered(store: SqliteStore) -> None:
    publish(store, 0, *(asset(id, "1") for id in IDS))
    publish(store, 1, asset(FIRST, "2"))
    with pytest.raises((StalledError, LeaseLostError)):
        store.commit([publication(2, asset(NEIGHBOURS[0], "never")), KeepLease(PARTITION, 7, 1.0)])
    publish(store, 2, asset(NEIGHBOURS[1], "2"))


def test_what_failed_in_the_middle_is_not_remembered(store: SqliteStore, tmp_path: Path) -> None:
    publish(store, 0, *(asset(id, "1") for id in IDS))
    publish(store, 1, asset(FIRST, "2"))
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON bucket_current BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        with pytest.raises(LehrError):
            published(store, 2, asset(FIRST, "3"))
        other.execute("DROP TRIGGER full")
    publish(store, 2, asset(NEIGHBOURS[0], "2"))


def reads_of_buckets(store: SqliteStore) -> list[str]:
    """Statements, from now on, that read all that a bucket has."""
    found: list[str] = []

    def traced(statement: str) -> None:
        if statement.startswith("SELECT id, digest") and "bucket =" in statement:
            found.append(statement)

    assert store._writer is not None
    store._writer.set_trace_callback(traced)
    return found


def test_a_bucket_that_was_read_is_not_read_again(store: SqliteStore) -> None:
    reads = reads_of_buckets(store)
    publish(store, 0, *(asset(id, "1") for id in IDS))
    assert len(reads) == 1
    publish(store, 1, asset(NEIGHBOURS[0], "2"))
    assert len(reads) == 1


def test_with_no_room_to_remember_it_is_read_each_time(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_MOST_BYTES", 1)
    reads = reads_of_buckets(store)
    publish(store, 0, *(asset(id, "1") for id in IDS))
    for base in range(1, 4):
        publish(store, base, asset(FIRST, str(base + 1)))
        assert len(reads) == base + 1

"""What is asked of SQLite costs what it is about, not all that there is: SQLite may choose another index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import pytest

from lehr.base.digest import digest_all
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.incarnation import Candidate
from lehr.model.types import Mention
from lehr.model.writes import Publish
from lehr.store.sql.tables import OPERATION
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("p")
FEW, MANY = 8_000, 24_000
Ask = Callable[[SqliteStore], object]


def asset(number: int, text: str = "") -> Asset:
    return make_asset(AssetId(f"{number:06}"), "sample.Policy", {"text": text}, {})


def publish(store: SqliteStore, base: int, assets: Iterable[Asset]) -> None:
    """Every asset claims something, and refers to one of the first thousand."""
    upserts = tuple(assets)
    candidate = Candidate(PARTITION, base, (), digest_all(()), upserts, ())
    targets = {item.id: AssetId(f"{int(item.id) % 1000:06}") for item in upserts}
    mentions: dict[AssetId, tuple[Mention, ...]] = {
        id: (Mention("/payload/x", target, ()),) for id, target in targets.items()
    }
    claims: dict[AssetId, tuple[str, ...]] = {item.id: (f"port:{item.id}",) for item in upserts}
    store.commit([Publish(candidate, mentions, ("lehr.Freeze", "lehr.RateLimit"), float(base), claims)])


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterable[tuple[SqliteStore, SqliteStore]]:
    """One of few assets, and one of three times as many, with a second incarnation of ten changes."""
    folder = tmp_path_factory.mktemp("stores")
    opened = SqliteStore(folder / "few.sqlite"), SqliteStore(folder / "many.sqlite")
    for store, size in zip(opened, (FEW, MANY), strict=True):
        publish(store, 0, map(asset, range(size)))
        publish(store, 1, (asset(number, "changed") for number in range(10)))
        ended = (
            OPERATION.sealed(number, f"{number}", PARTITION, f"{number}", 0, b"{}") for number in range(size)
        )
        assert store._writer is not None
        store._writer.execute("BEGIN")
        store._writer.executemany(OPERATION.insert, ended)
        store._writer.execute("COMMIT")
    yield opened
    for store in opened:
        store.close()


def steps(store: SqliteStore, ask: Ask) -> int:
    """Hundreds of SQLite's instructions that it takes, in either connection."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    writer = store._writer
    assert writer is not None
    # Reads that follow each other share a connection.
    with store._readers.session() as reader:
        connections: list[sqlite3.Connection] = [writer, reader]
    for db in connections:
        db.set_progress_handler(step, 100)
    ask(store)
    for db in connections:
        db.set_progress_handler(None, 0)
    return count


def key(number: int) -> AssetKey:
    return AssetKey(PARTITION, AssetId(f"{number:06}"))


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda store: list(store.intent.changes(PARTITION, 1, 2)), id="changes"),
        pytest.param(lambda store: store.intent.asset(key(20), 1), id="asset"),
        pytest.param(lambda store: store.intent.mentioned_by(key(2000)), id="mentioned_by"),
        pytest.param(lambda store: store.intent.past_and_present_referrers(key(2000)), id="referrers"),
        pytest.param(lambda store: store.intent.claimed_by(PARTITION, "port:000020"), id="claimed_by"),
        pytest.param(lambda store: store.intent.next_change(key(5), 1), id="next_change"),
        pytest.param(lambda store: store.intent.last(key(5)), id="last"),
        pytest.param(lambda store: store.intent.newest(PARTITION), id="newest"),
        pytest.param(lambda store: list(store.intent.heads(PARTITION, [key(5).id])), id="heads"),
        pytest.param(lambda store: store.records.open_operations(PARTITION), id="open_operations"),
        pytest.param(lambda store: list(store.intent.assets(PARTITION, 2, ["a.Type"])), id="of a type"),
    ],
)
def test_reading_costs_the_answer(stores: tuple[SqliteStore, SqliteStore], ask: Ask) -> None:
    few, many = (steps(store, ask) for store in stores)
    assert many <= few + 5


def test_publishing_costs_the_change(stores: tuple[SqliteStore, SqliteStore]) -> None:
    few, many = (steps(store, lambda store: publish(store, 2, [asset(1, "again")])) for store in stores)
    assert many < few * 1.5

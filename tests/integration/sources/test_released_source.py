"""An incarnation of another partition as a source: verified once, kept, and never another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.declared_sources import PartitionPlace
from lehr.model.incarnation import Candidate, Incarnation, SourceRevision
from lehr.model.writes import Publish
from lehr.query.released import released_in, released_in_archive
from lehr.sources.released import ReleasedSource
from lehr.store.archive import write_archive
from lehr.store.sqlite import SqliteStore
from tests.codes import raises

STAGING = Partition("staging")


def assets(number: int) -> tuple[Asset, ...]:
    return tuple(make_asset(AssetId(id), "lehr.File", {"content": f"{id} {number}"}, {}) for id in "ab")


@pytest.fixture
def store(tmp_path: Path) -> Iterable[SqliteStore]:
    """Two incarnations of staging."""
    found = SqliteStore(tmp_path / "state.sqlite")
    for number in (1, 2):
        candidate = Candidate(
            STAGING,
            number - 1,
            (SourceRevision("directory:/intent", str(number)),),
            assets(0)[0].digest,
            assets(number),
            (),
        )
        found.commit([Publish(candidate, {}, (), float(number), {})])
    yield found
    found.close()


def header(store: SqliteStore, sequence: int) -> Incarnation:
    found = store.intent.incarnation(STAGING, sequence)
    assert found is not None
    return found


def pin(store: SqliteStore, sequence: int, **more: str) -> PartitionPlace:
    where = more or {"state": "."}
    digest = header(store, sequence).digest
    return PartitionPlace(partition="staging", incarnation=sequence, digest=digest, **where)


def source(tmp_path: Path, place: PartitionPlace, read: object) -> ReleasedSource:
    archive = tmp_path / "archive.git"
    return ReleasedSource(place, archive, read, clock=SystemClock(), blocking=Inline())  # type: ignore[arg-type]


def test_the_assets_of_the_pinned_incarnation_are_files(store: SqliteStore, tmp_path: Path) -> None:
    opened = source(tmp_path, pin(store, 1), lambda place: released_in(store, place))
    snapshot = opened.newest()
    assert snapshot.revision == SourceRevision("partition:staging@1", header(store, 1).digest)
    assert set(snapshot.files()) == {"lehr.File/a.json", "lehr.File/b.json"}
    assert b'"a 1"' in snapshot.read("lehr.File/a.json")


def test_the_versions_of_the_types_are_said_whatever_they_are(tmp_path: Path) -> None:
    versions = {"shop.Team": 3, "shop.Seen": 2}
    asset = make_asset(AssetId("a"), "shop.Team", {}, {"shop.Seen": {}, "shop.New": {}}, versions=versions)
    place = PartitionPlace(partition="staging", incarnation=1, digest="0" * 40, state=".")
    read = source(tmp_path, place, lambda _place: [asset]).newest().read("shop.Team/a.json")
    assert b'"version":3,"versions":{"shop.New":1,"shop.Seen":2}' in read


def test_what_was_kept_is_read_without_the_other_partition(store: SqliteStore, tmp_path: Path) -> None:
    place = pin(store, 1)

    def gone(_: PartitionPlace) -> list[Asset]:
        raise TransientError("the state is not there")

    first = source(tmp_path, place, lambda place: released_in(store, place))
    before = {path: first.newest().read(path) for path in first.newest().files()}
    with pytest.raises(TransientError):
        source(tmp_path, place, gone).newest()
    first.keep(first.newest().revision)
    again = source(tmp_path, place, gone).newest()
    assert {path: again.read(path) for path in again.files()} == before
    with pytest.raises(TransientError):
        source(tmp_path, pin(store, 2), gone).newest()


def test_another_digest_than_the_pinned_one_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    mixed = PartitionPlace(partition="staging", incarnation=2, digest=header(store, 1).digest, state=".")
    with raises("QRY118", StalledError, match="staging@2"):
        released_in(store, mixed)
    file = tmp_path / "staging-2"
    write_archive(file, header(store, 2), store.intent.assets(STAGING, 2))
    with raises("QRY118", StalledError, match="staging@2"):
        released_in_archive(file, mixed)
    with raises("QRY117", StalledError, match="staging@2.*staging@1"):
        released_in_archive(file, pin(store, 1, archive=str(file)))


def test_what_was_never_published_is_named_with_what_was(store: SqliteStore) -> None:
    wanted = PartitionPlace(partition="staging", incarnation=7, digest="0" * 40, state="there")
    with raises("QRY116", StalledError, match="there .*staging@7") as caught:
        released_in(store, wanted)
    assert "the newest is staging@2" in caught.value.why
    other = PartitionPlace(partition="nobody", incarnation=1, digest="0" * 40, state="there")
    with raises("QRY116", StalledError) as unknown:
        released_in(store, other)
    assert "partition nobody" in unknown.value.why

"""Readers bound to one incarnation, and the digest of what was read."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest

from lehr.base.errors import StalledError
from lehr.enforce.reading import RecordingReader, RememberedIntent, content_digest
from lehr.model.addons import OWNER, Owner
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.store import StoredIntent
from lehr.testing.world import PARTITION, Thing, registry, thing

A, B = thing("a", "1", {OWNER: Owner("web")}), thing("b", "2")
ODD = make_asset(AssetId("odd"), "test.Odd", {}, {})


class FixedIntent:
    """Incarnation 1 holds `assets`, every other one nothing."""

    def __init__(self, *assets: Asset) -> None:
        self.asked: Counter[str] = Counter()
        self._assets = {asset.id: asset for asset in assets}

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        self.asked[key.id] += 1
        return self._assets.get(key.id) if sequence == 1 else None

    def __getattr__(self, name: str) -> None:
        return None


def reader(intent: FixedIntent | None = None, sequence: int = 1) -> RecordingReader:
    remembered = RememberedIntent(cast(StoredIntent, intent or FixedIntent(A, B, ODD)))
    return RecordingReader(remembered, registry(), PARTITION, sequence)


def test_an_asset_that_reads_nothing_else_has_its_own_digest() -> None:
    assert content_digest(A, {}) == A.digest
    assert content_digest(A, {A.id: A.digest}) == A.digest


def test_what_was_read_is_part_of_the_content() -> None:
    with_b = content_digest(A, {A.id: A.digest, B.id: B.digest})
    changed = content_digest(A, {A.id: A.digest, B.id: thing("b", "3").digest})
    absent = content_digest(A, {A.id: A.digest, B.id: None})
    other = content_digest(A, {A.id: A.digest, AssetId("c"): B.digest})
    assert len({A.digest, with_b, changed, absent, other}) == 5


def test_the_order_of_reading_does_not_count() -> None:
    pairs = {B.id: B.digest, ODD.id: ODD.digest}
    assert content_digest(A, pairs) == content_digest(A, dict(reversed(pairs.items())))


def test_every_read_is_recorded_also_of_what_is_not_there() -> None:
    read = reader()
    assert read.payload(A.id, Thing) == Thing("1")
    assert read.addon(B.id, OWNER, Owner) is None
    assert read.asset(AssetId("none")) is None
    assert read.reads == {A.id: A.digest, B.id: B.digest, "none": None}


def test_what_is_known_is_recorded_and_not_looked_up() -> None:
    intent = FixedIntent()
    read = reader(intent)
    read.know(A)
    assert read.asset(A.id) == A
    assert read.reads == {A.id: A.digest}
    assert not intent.asked


def test_it_reads_its_own_incarnation() -> None:
    assert reader(sequence=2).asset(A.id) is None
    assert reader(sequence=2).incarnation == 2


@pytest.mark.parametrize("id", ["none", "odd"])
def test_a_reference_that_leads_nowhere_needs_new_intent(id: str) -> None:
    with pytest.raises(StalledError) as caught:
        reader().payload(AssetId(id), Thing)
    assert caught.value.fix


def test_what_an_incarnation_held_is_asked_for_once_within_the_size() -> None:
    intent = FixedIntent(A, B)
    remembered = RememberedIntent(cast(StoredIntent, intent), size=2)
    keys = [AssetKey(PARTITION, AssetId(id)) for id in ("a", "b", "none")]
    for _ in range(3):
        assert [remembered.asset(key, 1) for key in keys[:2]] == [A, B]
    assert intent.asked == {"a": 1, "b": 1}
    assert remembered.asset(keys[2], 1) is None
    assert remembered.asset(keys[2], 1) is None
    assert intent.asked["none"] == 1
    assert remembered.asset(keys[0], 1) == A
    assert intent.asked["a"] == 2, "the oldest was forgotten"
    assert remembered.asset(keys[1], 2) is None, "another incarnation is another question"

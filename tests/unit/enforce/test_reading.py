"""Readers bound to one incarnation, and the digest of what was read."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest

from lehr.base.errors import StalledError
from lehr.enforce.reading import RecordingReader, RememberedIntent, content_digest
from lehr.model.addons import OWNER, Owner
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.sdk.store import StoredIntent
from lehr.testing.world import PARTITION, Thing, registry, thing
from tests.codes import raises

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


class Versions:
    """Each incarnation has an asset `a` of its own; it counts what is asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        self.asked.append(sequence)
        return thing(key.id, str(sequence))

    def __getattr__(self, name: str) -> None:
        return None


def test_what_an_incarnation_did_not_change_is_not_read_again() -> None:
    versions = Versions()
    intent = RememberedIntent(cast(StoredIntent, versions))
    a, b = AssetKey(PARTITION, A.id), AssetKey(PARTITION, B.id)
    for sequence, changed in ((5, ()), (6, (B.id,)), (7, ()), (8, (A.id,))):
        intent.advance(sequence - 1, sequence, changed)
    found = [intent.asset(b, sequence) for sequence in (5, 6, 7, 8)]
    assert found == [thing("b", value) for value in ("5", "6", "6", "6")]
    assert versions.asked == [5, 6]
    found = [intent.asset(a, sequence) for sequence in (8, 7, 6, 5)]
    assert found == [thing("a", value) for value in ("8", "7", "6", "5")], (
        "when it changed before is forgotten"
    )


def test_of_an_incarnation_that_nobody_told_of_nothing_is_taken_for_unchanged() -> None:
    versions = Versions()
    intent = RememberedIntent(cast(StoredIntent, versions))
    for before, sequence in ((0, 1), (1, 2), (2, 5), (5, 6)):
        intent.advance(before, sequence, ())  # what changed with 3 may have changed back with 4
    found = [intent.asset(AssetKey(PARTITION, A.id), sequence) for sequence in (2, 3, 4, 5, 6, 7)]
    assert found == [thing("a", value) for value in ("2", "3", "4", "5", "5", "7")]


def test_what_is_told_a_second_time_otherwise_is_not_relied_on() -> None:
    versions = Versions()
    intent = RememberedIntent(cast(StoredIntent, versions))
    for before, sequence, changed in ((0, 6, ()), (6, 7, (A.id,)), (6, 8, ())):
        intent.advance(before, sequence, changed)
    assert intent.asset(AssetKey(PARTITION, A.id), 8) == thing("a", "8")


def test_no_more_changes_are_remembered_than_assets() -> None:
    versions = Versions()
    intent = RememberedIntent(cast(StoredIntent, versions), size=2)
    for sequence in range(1, 9):
        intent.advance(sequence - 1, sequence, (AssetId(f"x{sequence}"),))
    assert len(intent._changed_with) <= 2
    key = AssetKey(PARTITION, AssetId("x8"))
    assert intent.asset(key, 8) == thing("x8", "8")
    assert intent.asset(key, 7) == thing("x8", "7")


TEAM = make_asset(AssetId("team"), "shop.Team", {"mail": "x"}, {})
LATER = make_asset(AssetId("later"), "shop.Team", {"mails": ["x"]}, {}, versions={"shop.Team": 3})


def team_reader(**understands: int) -> RecordingReader:
    """Reads a declared type of version 3, for a plugin that understands it up to a version."""
    known = registry()
    was = [
        {"version": 1, "steps": [{"rename": {"/mail": "/address"}}]},
        {"version": 2, "steps": [{"rename": {"/address": "/mails"}}]},
    ]
    payload = {"schema": {}, "version": 3, "was": was}
    known.declare([declared_type(make_asset(declaration_id("shop.Team"), TYPE, payload, {}))])
    read = RecordingReader(
        RememberedIntent(cast(StoredIntent, FixedIntent(TEAM, LATER))), known, PARTITION, 1
    )
    read.understands = {f"shop.{name}": version for name, version in understands.items()}
    return read


def test_a_plugin_reads_old_content_in_the_version_that_it_understands() -> None:
    assert team_reader().payload(TEAM.id, dict) == {"mail": "x"}
    assert team_reader(Team=2).payload(TEAM.id, dict) == {"address": "x"}
    assert team_reader(Team=3).payload(TEAM.id, dict) == {"mails": "x"}


def test_a_plugin_is_stalled_by_a_version_that_it_does_not_understand() -> None:
    with raises("MOD102", StalledError) as caught:
        team_reader(Team=2).payload(LATER.id, dict)
    assert "asset later cannot be read: it is of version 3" in caught.value.what
    assert "understands version 2" in caught.value.what
    with raises("MOD102", StalledError, match="understands version 1"):
        team_reader().payload(LATER.id, dict)

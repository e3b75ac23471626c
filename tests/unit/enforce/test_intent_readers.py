"""Readers for plugins, and the digest of what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import pytest

from lehr.base.errors import StalledError
from lehr.enforce.intent_readers import RecordingReader, content_digest
from lehr.model.addons import OWNER, Owner
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.testing.world import PARTITION, Thing, registry, thing
from tests.codes import raises

T = TypeVar("T")
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

    async def run(self, look: Callable[[], T]) -> T:
        return look()


def reader(intent: FixedIntent | None = None, sequence: int = 1) -> RecordingReader:
    return RecordingReader(intent or FixedIntent(A, B, ODD), registry(), PARTITION, sequence)


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


def test_what_is_held_is_read_at_its_own_incarnation_and_that_is_recorded() -> None:
    read = RecordingReader(
        FixedIntent(A, B), registry(), PARTITION, 2, sequence_of=lambda id: 1 if id == B.id else 2
    )
    assert read.asset(B.id) == B
    assert read.asset(A.id) is None
    assert read.elsewhere == ((B.id, 1),)


@pytest.mark.parametrize("id", ["none", "odd"])
def test_a_reference_that_leads_nowhere_needs_new_intent(id: str) -> None:
    with pytest.raises(StalledError) as caught:
        reader().payload(AssetId(id), Thing)
    assert caught.value.fix


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
    read = RecordingReader(FixedIntent(TEAM, LATER), known, PARTITION, 1)
    read.understands = {f"shop.{name}": version for name, version in understands.items()}
    return read


def test_a_plugin_reads_old_content_in_the_version_that_it_understands() -> None:
    assert team_reader().payload(TEAM.id, dict) == {"mail": "x"}
    assert team_reader(Team=2).payload(TEAM.id, dict) == {"address": "x"}
    assert team_reader(Team=3).payload(TEAM.id, dict) == {"mails": "x"}


def test_a_plugin_is_stalled_by_a_version_that_it_does_not_understand() -> None:
    with raises("MOD102", StalledError) as caught:
        team_reader(Team=2).payload(LATER.id, dict)
    assert "asset later cannot be read: it has version 3" in caught.value.what
    assert "understands version 2" in caught.value.what
    with raises("MOD102", StalledError, match="understands version 1"):
        team_reader().payload(LATER.id, dict)

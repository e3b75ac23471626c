"""Readers for plugins, and the digest of what was read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from lehr.base.errors import NeedError, StalledError, WaitingError
from lehr.enforce.intent_readers import RecordingReader, content_digest
from lehr.enforce.output_reads import Observed
from lehr.model.addons import OWNER, Owner
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.model.outputs import OutputNames
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


NAMES = OutputNames(stable=frozenset({"id", "zone"}), changing=frozenset({"load"}))


class Outputs:
    """The outputs of every asset, which change."""

    def __init__(self, **values: Any) -> None:
        self.values: dict[str, Any] = values

    def reader(self, intent: FixedIntent | None = None) -> RecordingReader:
        observed = lambda asset: Observed(NAMES, self.values)  # noqa: E731
        return RecordingReader(intent or FixedIntent(A, B), registry(), PARTITION, 1, observed=observed)


def test_an_output_is_given_and_nothing_else_of_its_asset_counts_as_read() -> None:
    read = Outputs(id="b-1", zone=["x", {"y": None}]).reader()
    assert read.output(B.id, "id") == "b-1"
    assert read.output(B.id, "zone/1") == {"y": None}
    assert read.output(B.id, "zone/1/y") is None
    assert (read.reads, read.others(A.id)) == ({}, ())


def test_a_reader_may_do_with_an_output_what_it_likes() -> None:
    outputs = Outputs(zone=[])
    outputs.reader().output(B.id, "zone").append("mine")
    assert outputs.values == {"zone": []}


def test_stable_outputs_are_part_of_the_content_and_others_are_not() -> None:
    def digest_after(*paths: str, **values: Any) -> str:
        read = Outputs(**values).reader()
        for path in paths:
            read.output(B.id, path)
        return read.content_digest(A)

    assert digest_after() == digest_after("load", load=1) == A.digest
    with_id = digest_after("id", id=1, load=1)
    assert with_id == digest_after("load", "id", id=1, load=2) != A.digest
    others = (
        digest_after("id", id=True),
        digest_after("zone", zone=1),
        digest_after("zone/x", zone={"x": 1}),
        digest_after("id", "zone", id=1, zone=1),
    )
    assert len({A.digest, with_id, *others}) == 6
    assert digest_after("zone/x", zone={"x": 1, "y": 1}) == digest_after("zone/x", zone={"x": 1, "y": 2})


def test_the_same_value_of_another_asset_is_another_content() -> None:
    one, other = (B.id, "id"), (AssetId("c"), "id")
    found = [content_digest(A, {}, {place: value}) for place, value in ((one, B.digest), (other, B.digest))]
    assert len({*found, content_digest(A, {}, {one: None})}) == 3


def test_an_output_that_is_not_known_is_waited_for() -> None:
    read = Outputs(zone=[]).reader()
    for path in ("id", "zone/0"):
        with raises("ENF111", WaitingError, match=f"output `{path}` of b is not known yet"):
            read.output(B.id, path)
    assert read.outputs is not None
    assert [*read.outputs.awaited] == [("b", "id"), ("b", "zone/0")]
    assert read.content_digest(A) != A.digest, "a plugin may have caught the error"


def test_an_output_that_its_type_does_not_have_needs_new_intent() -> None:
    with raises("ENF110", StalledError) as caught:
        Outputs(size=1).reader().output(B.id, "size")
    assert "asset b has no output `size`" in str(caught.value)
    assert "test.Thing has `id`, `load`, `zone`" in str(caught.value)
    with raises("ENF110", StalledError, match="no plugin here declares outputs of its type"):
        reader().output(B.id, "size")


def test_the_outputs_of_what_is_not_there_need_new_intent_and_that_is_a_read() -> None:
    read = Outputs(id=1).reader()
    with raises("ENF103", StalledError):
        read.output(AssetId("none"), "id")
    assert read.others(A.id) == ("none",)


def test_only_what_is_stable_or_unknown_wakes() -> None:
    outputs = Outputs(id=1, load=1)
    read = outputs.reader()
    read.output(B.id, "id")
    read.output(B.id, "load")
    with pytest.raises(WaitingError):
        read.output(B.id, "zone")
    assert read.waking == (("b", "id"), ("b", "zone"))
    assert not read.out_of_date
    outputs.values = {"id": 1, "load": 2}
    assert not read.out_of_date
    for values in ({"id": 1, "load": 1, "zone": None}, {"id": 2, "load": 1}, {"load": 1}):
        outputs.values = values
        assert read.out_of_date


def test_what_was_read_once_stays_the_same_for_the_reader_and_for_the_push_after_it() -> None:
    outputs = Outputs(id=1, load=1)
    read = outputs.reader()
    read.output(B.id, "id")
    outputs.values = {"id": 2, "load": 2}
    assert (read.output(B.id, "id"), read.output(B.id, "load")) == (1, 1)
    push, verified = outputs.reader(), outputs.reader()
    push.know_same(read)
    verified.see_same(push)
    assert push.output(B.id, "id") == verified.output(B.id, "id") == 1
    assert push.content_digest(A) == verified.content_digest(A) == read.content_digest(A)
    assert verified.out_of_date
    assert outputs.reader().output(B.id, "id") == 2


def test_other_assets_and_outputs_that_are_not_as_they_were_read_have_changed() -> None:
    at, removed, outputs = 1, False, Outputs(id=1, load=1)
    read = RecordingReader(
        FixedIntent(A, B, ODD),
        registry(),
        PARTITION,
        1,
        lambda asset: removed,
        lambda id: at,
        lambda asset: Observed(NAMES, outputs.values),
    )
    read.know(A)
    read.asset(ODD.id)
    read.output(B.id, "id")
    read.output(B.id, "load")
    elsewhere = read.elsewhere
    assert read.changed(A.id) == []
    outputs.values = {"id": 1, "load": 2}
    assert read.changed(A.id) == []
    outputs.values = {"id": 2, "load": 2}
    assert read.changed(A.id) == [B.id]
    at = 2
    assert read.changed(A.id) == [ODD.id, B.id]
    outputs.values, at, removed = {"id": 1}, 1, True
    assert read.changed(A.id) == [ODD.id]
    assert (read.elsewhere, read.reads[ODD.id]) == (elsewhere, ODD.digest), "to look is not to read"


class LateIntent(FixedIntent):
    """Everything has to be fetched first."""

    fetching = False

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        if not self.fetching:
            raise NeedError("not in memory")
        return super().asset(key, sequence)

    async def run(self, look: Callable[[], T]) -> T:
        self.fetching = True
        try:
            return look()
        finally:
            self.fetching = False


def test_what_has_to_be_fetched_for_an_output_is_no_read_either() -> None:
    async def main() -> None:
        read = Outputs(id=1).reader(LateIntent(A, B))
        with pytest.raises(NeedError):
            read.output(B.id, "id")
        assert [*read.missed] == [B.id]
        await read.fetch_missed()
        assert read.output(B.id, "id") == 1
        assert read.reads == {}
        assert read.asset(B.id) == B
        assert read.reads == {B.id: B.digest}

    asyncio.run(main())

"""One read of the store fails, and the process lives on: nothing that was half done may count as done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import TransientError
from lehr.model.addons import LABELS, Labels
from lehr.model.asset import AssetId, AssetKey, make_asset
from lehr.model.control import ControlKind
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
from lehr.model.writes import Admit, LiftControl, Write
from lehr.sdk.plugin import Traits
from lehr.sdk.store import Store
from lehr.sdk.watch import ListAgainError
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, THING, Thing, thing
from tests.simulation.playing import NEVER, control, play, turned_down
from tests.world import Plane, World

GOLD = {LABELS: Labels({"tier": "gold"})}


class Failing:
    """A store of which single reads fail.

    Attributes:
        failures: how often reads of a name are still to fail.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.failures: dict[str, int] = {}
        self.intent: Any = _Part(store.intent, self.failures)
        self.records: Any = _Part(store.records, self.failures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _Part:
    def __init__(self, part: object, failures: dict[str, int]) -> None:
        self._part = part
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._part, name)

        def reading(*args: object, **named: object) -> Any:
            if self._failures.get(name):
                self._failures[name] -= 1
                raise TransientError("the state file is locked")
            return read(*args, **named)

        return reading


def failing(plane: Plane) -> dict[str, int]:
    store: Any = plane.store
    assert isinstance(store, Failing)
    return store.failures


def played(folder: Path, scenario: Callable[[Plane, World, VirtualClock], Any], **named: Any) -> None:
    play(folder, scenario, wrap=lambda store: Failing(store), **named)


def test_what_was_removed_is_not_made_again_when_its_ledger_could_not_be_read_at_once(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        for assets in (
            (thing("a", "1"), thing("b", "1")),
            (thing("a", "1", turned_down()), thing("b", "1")),
            (thing("b", "1"),),
        ):
            await plane.publish(*assets)
            await plane.settle()
        failing(plane)["ledger"] = 1
        await plane.publish(thing("a", "1", turned_down(fence=3600.0)), thing("b", "1"))
        await clock.sleep(120)
        assert not failing(plane)["ledger"]
        assert world.values == {"b": "1"}
        assert plane.condition("a").reason == Reason.REMOVED

    played(tmp_path, scenario)


def test_what_is_listed_again_after_a_read_has_failed_gets_its_turns(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        feed = plane.enforcer._intent_follower._feed
        changes, times = feed.changes, [1]

        def too_many(sequence: int) -> Any:
            if times.pop():
                times.append(0)
                raise ListAgainError(sequence - 1, "changed more than 50,000 assets")
            times.append(0)
            return changes(sequence)

        feed.changes = too_many  # type: ignore[method-assign]
        failing(plane)["ledger"] = 1
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await clock.sleep(300)
        assert not failing(plane)["ledger"]
        assert world.values == {"a": "1", "b": "1"}

    played(tmp_path, scenario)


@pytest.mark.parametrize("read", ["controls", "last"])
def test_a_word_is_taken_up_soon_when_a_read_fails_as_it_is_told(tmp_path: Path, read: str) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", GOLD))
        await plane.settle()
        freeze = control(ControlKind.FREEZE, "label:tier=gold", clock)
        await plane.control(freeze)
        await plane.publish(thing("a", "2", GOLD))
        await clock.sleep(30)
        assert plane.condition("a").reason == Reason.FROZEN
        await plane.committer.ask(LiftControl(PARTITION, freeze.id, clock.now()))
        failing(plane)[read] = 1
        await plane.enforcer.controls_changed(freeze.selector, "a freeze was taken back")
        await clock.sleep(60)
        assert world.values == {"a": "2"}

    played(tmp_path, scenario, traits=Traits(resync=NEVER))


def test_an_admission_that_breaks_gives_its_place_back(tmp_path: Path) -> None:
    class Broken:
        async def take(self, partition: str, claims: Mapping[str, object], *, only: bool) -> Any:
            raise RuntimeError("the register breaks")

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        plane.enforcer._claims._claims = Broken()  # type: ignore[assignment]
        plane.registry.claims = lambda asset: ("file:/x",) if asset.id == "bad" else ()  # type: ignore[method-assign]
        await plane.publish(thing("bad", "1"))
        await clock.sleep(60)
        await plane.publish(thing("bad", "1"), thing("fine", "1"))
        await clock.sleep(60)
        assert world.values == {"fine": "1"}

    played(tmp_path, scenario, traits=Traits(pushes=2))


def test_a_freeze_of_a_label_holds_who_is_pinned_to_before_the_label(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.publish(thing("a", "2", GOLD))
        await plane.control(control(ControlKind.PIN, "a", clock, incarnation=1))
        await plane.settle()
        await plane.control(control(ControlKind.FREEZE, "label:tier=gold", clock))
        assert await plane.enforcer.select(parse_selector("label:tier=gold")) == ["a"]
        world.values["a"] = "by hand"
        await clock.sleep(300)
        assert world.values == {"a": "by hand"}
        assert plane.condition("a").reason == Reason.FROZEN

    played(tmp_path, scenario)


def test_who_reads_an_asset_without_production_is_woken_by_its_change(tmp_path: Path) -> None:
    note = "test.Note"

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        kind = plane.registry.types[THING]
        plane.registry.types[note] = type(kind)(note, Thing, enforced=False)
        for value in ("1", "2"):
            written = make_asset(AssetId("n"), note, Thing(value), {})
            await plane.publish(thing("a", "0", reads=["n"]), written)
            await plane.settle()
        assert world.values == {"a": "0+2"}

    played(tmp_path, scenario, traits=Traits(resync=NEVER))


def test_a_turndown_that_is_to_stand_longer_brings_nothing_back(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.publish(thing("a", "1", turned_down(stand=60.0)))
        await clock.sleep(300)
        assert not world.values
        await plane.publish(thing("a", "1", turned_down(stand=7200.0)))
        await clock.sleep(300)
        assert not world.values
        assert plane.condition("a").reason == Reason.REMOVED
        assert plane.store.records.ledger(AssetKey(PARTITION, AssetId("a"))) is not None

    played(tmp_path, scenario)


def test_a_push_is_told_of_newer_content_that_comes_between_its_admission_and_its_beginning(
    tmp_path: Path,
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 30.0
        ask = plane.committer.ask

        async def late(*writes: Write) -> list[Any]:
            answers = await ask(*writes)
            if isinstance(writes[0], Admit) and writes[0].operation.content == 1:
                await plane.publish(thing("a", "2"))
                await clock.sleep(0.1)
            return answers

        plane.committer.ask = late  # type: ignore[method-assign]
        await plane.publish(thing("a", "1"))
        await plane.settle()
        assert plane.plugin.superseded == ["a"]

    played(tmp_path, scenario)


def test_a_referrer_that_cannot_be_read_keeps_what_it_refers_to(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        web = thing("web", "1", reads=("old",))
        await plane.publish(thing("old", "1"), web)
        await plane.settle()
        failing(plane)["last"] = 1
        await plane.publish(thing("old", "1", turned_down()), web)
        await clock.sleep(120)
        assert not failing(plane)["last"], "the read that failed was that of the referrer"
        assert len(plane.store.records.operations(PARTITION, AssetId("old"))) == 1, "it is left alone"

    played(tmp_path, scenario)

"""What random histories and a hostile reader once found in the Enforcer, each as its shortest history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lehr.base.backoff import RetryBudget
from lehr.base.errors import TransientError
from lehr.checks import CHECKS, TYPES
from lehr.enforce.step import RETRY
from lehr.model.addons import DEPENDS_ON, DependsOn
from lehr.model.asset import AssetId, AssetKey, make_asset
from lehr.model.control import ControlKind
from lehr.model.decision import Reservation, Status, Verdict
from lehr.model.diff import Goal
from lehr.model.operation import Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import SetControl
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.sdk.plugin import Traits
from lehr.sdk.store import Store, StoredIntent
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, THING, thing
from tests.simulation.playing import NEVER, control, play, turned_down
from tests.world import Plane, World


def test_what_waits_for_approval_is_recorded_as_it_is_now(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", destroys=True))
        await clock.sleep(5)
        await plane.publish(thing("a", "2", destroys=True))
        await clock.sleep(5)
        [(_, decision), *_] = plane.store.records.decisions(PARTITION, AssetId("a"), 1)
        assert decision.diff is not None
        assert decision.diff.changes[0].intended == "2"
        await plane.control(control(ControlKind.APPROVAL, "a", clock, diff_digest=decision.diff.digest()))
        await plane.settle(60.0)
        assert world.values == {"a": "2"}

    play(tmp_path, scenario)


def test_a_pin_to_before_a_turndown_holds_it_back(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        pin = control(ControlKind.PIN, "a", clock, incarnation=1)
        await plane.control(pin)
        await plane.publish(thing("a", "1", turned_down()))
        await clock.sleep(300)
        assert world.values == {"a": "1"}
        assert plane.condition("a").reason == Reason.PINNED
        await plane.lift(pin)
        await plane.settle()
        assert not world.values

    play(tmp_path, scenario)


def test_a_turndown_goes_on_when_the_pin_that_held_it_back_is_lifted_after_the_lines_went(
    tmp_path: Path,
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()
        pin = control(ControlKind.PIN, "a", clock, incarnation=1)
        await plane.control(pin)
        await plane.publish(thing("a", "1", turned_down()), thing("b", "1"))
        await plane.publish(thing("b", "1"))
        await clock.sleep(300)
        assert world.values == {"a": "1", "b": "1"}
        await plane.lift(pin)
        await plane.settle()
        assert world.values == {"b": "1"}

    play(tmp_path, scenario)


def test_what_left_intent_does_not_go_back_to_what_it_once_read(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", turned_down(fence=500), reads=["b"]), thing("b", "1"))
        await clock.sleep(10)
        await plane.publish(thing("a", "1", turned_down(fence=500), reads=["b"]), thing("b", "2"))
        await clock.sleep(10)
        assert world.values["a"] == "fenced 1+2"
        await plane.publish(thing("b", "2"))
        await clock.sleep(200)
        assert world.values["a"] == "fenced 1+2"
        assert world.pushes["a", "fenced 1+1"] == 1

    play(tmp_path, scenario)


def test_a_pin_and_a_pause_that_run_out_are_noticed_then(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()
        soon = clock.now() + 60
        await plane.control(control(ControlKind.PIN, "a", clock, incarnation=1, expires_at=soon))
        await plane.control(control(ControlKind.PAUSE, "b", clock, expires_at=soon))
        await plane.publish(thing("a", "2"), thing("b", "2"))
        await clock.sleep(50)
        assert world.values == {"a": "1", "b": "1"}
        assert plane.condition("b").next_at == soon
        await clock.sleep(20)
        assert world.values == {"a": "2", "b": "2"}

    play(tmp_path, scenario, traits=traits_without_resync())


def traits_without_resync() -> Traits:
    return Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}), resync=NEVER)


class Capacity(CheckPlugin):
    """One push at a time, held until its outcome is known; it leaves the counting to admission."""

    name = "capacity"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return [Verdict(self.name, allow=True, reservations=(Reservation("capacity", 1),))]


def test_who_waits_for_a_held_limit_goes_on_when_it_has_room(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 30.0
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await clock.sleep(10)
        assert Reason.LIMIT_REACHED in {plane.condition(id).reason for id in "ab"}
        await plane.settle(120.0)
        assert world.values == {"a": "1", "b": "1"}

    play(tmp_path, scenario, traits=traits_without_resync(), more_checks=(Capacity(),))


def test_a_stopped_enforcer_takes_no_more_turns(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.looking["a"] = 5.0
        await plane.publish(thing("a", "1"))
        await clock.sleep(1)
        await plane.publish(thing("a", "2"))
        await plane.enforcer.stop()
        before = plane.enforcer.turns
        await clock.sleep(100)
        assert plane.enforcer.turns == before
        assert not world.values

    play(tmp_path, scenario)


async def restarted(plane: Plane, folder: Path, world: World, clock: VirtualClock) -> Plane:
    """Another process over the same state."""
    await plane.kill()
    after = Plane(folder, world, clock, checks=[check() for check in CHECKS], types=TYPES)
    await after.start()
    return after


def test_a_turndown_of_what_was_never_applied_survives_the_lines_and_the_process(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.values["a"] = "from before Lehr"
        freeze = control(ControlKind.FREEZE, "a", clock)
        await plane.control(freeze)
        await plane.publish(thing("a", "1", turned_down()), thing("b", "1"))
        await clock.sleep(5)
        await plane.publish(thing("b", "1"))
        await clock.sleep(5)
        after = await restarted(plane, tmp_path, world, clock)
        await after.lift(freeze)
        await after.settle()
        assert world.values == {"b": "1"}
        await after.kill()

    play(tmp_path, scenario)


def test_what_was_let_go_is_said_to_be_orphaned_also_by_the_next_process(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()
        await plane.enforcer.stop()
        await plane.publish(thing("b", "1"))
        after = await restarted(plane, tmp_path, world, clock)
        await after.settle()
        assert after.condition("a").reason == Reason.LET_GO
        assert after.enforcer.assets == 1
        assert world.values["a"] == "1"
        await after.kill()

    play(tmp_path, scenario)


def test_a_dependency_whose_turndown_waits_wakes_its_dependants_all_the_same(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        freeze = control(ControlKind.FREEZE, "db", clock)
        await plane.control(freeze)
        app = thing("app", "1", {DEPENDS_ON: DependsOn(["db"])})
        await plane.publish(app, thing("db", "1", turned_down()))
        await clock.sleep(10)
        assert plane.condition("app").reason == Reason.DEPENDENCY_DIFFERS
        await plane.lift(freeze)
        await clock.sleep(30)
        assert plane.condition("db").reason == Reason.STILL_REFERENCED
        assert world.values == {"app": "1", "db": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_retry_that_a_person_asks_for_counts_also_when_a_turn_is_queued_already(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.behave["a"] = lambda target, push: Outcome(Result.STALLED, "it refuses")
        await plane.publish(thing("a", "1"))
        await clock.sleep(10)
        assert plane.condition("a").reason == Reason.PUSH_STALLED
        del world.behave["a"]
        plane.enforcer.wake(AssetId("a"), "a hint")
        plane.enforcer.wake(AssetId("a"), RETRY)
        await plane.settle(60.0)
        assert world.values == {"a": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_retry_that_a_person_asks_for_counts_also_during_a_turn(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.behave["a"] = lambda target, push: Outcome(Result.STALLED, "it refuses")
        await plane.publish(thing("a", "1"))
        await clock.sleep(10)
        del world.behave["a"]
        world.looking["a"] = 3.0
        plane.enforcer.wake(AssetId("a"), "a hint")
        await clock.sleep(1)
        plane.enforcer.wake(AssetId("a"), RETRY)
        plane.enforcer.wake(AssetId("a"), "another hint")
        await plane.settle(60.0)
        assert world.values == {"a": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_an_asset_that_waited_for_a_place_and_was_let_go_is_not_called_again(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 30.0
        await plane.publish(thing("a", "1"))
        await clock.sleep(1)
        await plane.publish(thing("a", "1"), thing("b", "1"), thing("c", "1"))
        await clock.sleep(5)
        await plane.publish(thing("a", "1"), thing("c", "1"))
        await plane.settle(200.0)
        await clock.sleep(200)
        assert world.values == {"a": "1", "c": "1"}
        assert plane.enforcer.assets == 2

    play(tmp_path, scenario, traits=Traits(pushes=1, resync=100.0))


def test_a_removed_dependant_holds_nothing_up_that_it_once_referred_to(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("app", "1", {DEPENDS_ON: DependsOn(["db"])}), thing("db", "1"))
        await plane.settle()
        await plane.publish(thing("app", "1", turned_down()), thing("db", "1"))
        await plane.settle()
        await plane.publish(thing("app", "1", turned_down()), thing("db", "1", turned_down()))
        await plane.settle(60.0)
        assert not world.values

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_removed_asset_that_comes_back_brings_back_what_it_depends_on(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        depends = {DEPENDS_ON: DependsOn(["db"])}
        gone = thing("db", "1", turned_down())
        await plane.publish(thing("app", "1", {**depends, **turned_down()}), gone)
        await plane.settle()
        await plane.publish(thing("app", "2", depends), gone)
        await clock.sleep(300)
        assert world.values == {"app": "2", "db": "1"}
        assert plane.condition("db").reason == Reason.STILL_REFERENCED

    play(tmp_path, scenario)


def test_an_enforcer_that_will_ask_for_admission_again_soon_is_not_at_rest(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("db", "1"), thing("slow", "1"))
        await plane.settle()
        world.looking["slow"] = 5.0
        world.seconds = 0.1
        app = thing("app", "1", {DEPENDS_ON: DependsOn(["db", "slow"])})
        await plane.publish(thing("db", "1"), thing("slow", "1"), app)
        await clock.sleep(4.95)
        world.values["db"] = "by hand"
        plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId("db")))
        while not plane.enforcer.at_rest:
            await plane.enforcer.changed()
        assert world.values == {"db": "1", "slow": "1", "app": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_an_incarnation_that_nobody_told_of_is_found(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.publish(thing("a", "2"), thing("b", "1"), tell=False)
        await clock.sleep(30)
        assert world.values == {"a": "2", "b": "1"}
        await plane.publish(thing("a", "3"), thing("b", "1"))
        await plane.settle(30)
        assert world.values == {"a": "3", "b": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_word_of_a_person_that_nobody_told_of_is_found(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.committer.ask(SetControl(control(ControlKind.PAUSE, "a", clock)))
        await clock.sleep(30)
        assert plane.condition("a").reason == Reason.PAUSED
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await clock.sleep(10)
        assert world.values["b"] == "1"

    play(tmp_path, scenario, traits=traits_without_resync())


def test_no_push_begins_while_a_stop_waits_for_those_under_way(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 10.0
        await plane.publish(thing("a", "1"))
        await clock.sleep(5)
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.enforcer.stop(grace=60.0)
        assert world.values == {"a": "1"}
        assert clock.monotonic() < 20.0
        await plane.committer.flush()
        assert not plane.store.records.open_operations(PARTITION)

    play(tmp_path, scenario)


def test_what_a_plugin_first_reads_while_it_is_published_anew_is_not_missed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.looking["a"] = 5.0
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "1"))
        await clock.sleep(2)
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "2"))
        await plane.settle(60.0)
        assert world.values == {"a": "1+2", "b": "2"}

    play(tmp_path, scenario, traits=traits_without_resync())


class Unreadable:
    """A store of whose intent no single asset can be read for a while."""

    broken = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def intent(self) -> Any:
        return _UnreadableIntent(self._store.intent, self)


class _UnreadableIntent:
    def __init__(self, intent: StoredIntent, store: Unreadable) -> None:
        self._intent = intent
        self._store = store

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._intent, name)

        def reading(*args: object) -> Any:
            if self._store.broken and name in ("asset", "last"):
                raise TransientError("the state file is locked")
            return read(*args)

        return reading


def test_a_turn_that_breaks_says_so_and_is_tried_again_soon(tmp_path: Path) -> None:
    stores: list[Unreadable] = []

    def unreadable(store: Store) -> Store:
        stores.append(Unreadable(store))
        return stores[-1]

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        stores[0].broken = True
        await plane.publish(thing("a", "2"))
        await clock.sleep(5)
        condition = plane.condition("a")
        assert (condition.status, condition.reason) == (Status.RETRYING, Reason.STORE_UNAVAILABLE)
        assert "locked" in condition.message
        assert AssetId("a") in plane.enforcer.unsettled
        stores[0].broken = False
        await plane.settle(30.0)
        assert world.values == {"a": "2"}

    play(tmp_path, scenario, traits=traits_without_resync(), wrap=unreadable)


def test_an_incarnation_that_nobody_told_of_comes_with_the_next(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.publish(thing("a", "2"), tell=False)
        await plane.publish(thing("a", "2"), thing("b", "1"))
        await plane.settle(30)
        assert world.values == {"a": "2", "b": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_dependency_that_is_published_anew_during_the_turn_counts_as_pending(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        app = thing("app", "1", {DEPENDS_ON: DependsOn(["db"])})
        await plane.publish(app, thing("db", "1"))
        await plane.settle()
        await plane.control(control(ControlKind.FREEZE, "db", clock))
        world.looking["app"] = 5.0
        world.values["app"] = "by hand"
        plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId("app")))
        await clock.sleep(2)
        await plane.publish(app, thing("db", "2"))
        await clock.sleep(60)
        assert plane.condition("app").reason == Reason.DEPENDENCY_DIFFERS
        assert world.values == {"app": "by hand", "db": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_decision_does_not_rest_on_an_incarnation_that_was_not_told(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()
        pause = control(ControlKind.PAUSE, "a", clock)
        await plane.control(pause)
        await plane.publish(thing("b", "1"))
        await clock.sleep(1)
        await plane.publish(thing("a", "2"), thing("b", "1"), tell=False)
        await plane.lift(pause)
        await plane.settle(60.0)
        assert plane.condition("a").reason == Reason.LET_GO, "as the incarnation has it that it was told of"
        await clock.sleep(10.0)
        await plane.settle(60.0)
        assert world.values == {"a": "2", "b": "1"}
        decisions = [item for _, item in plane.store.records.decisions(PARTITION, AssetId("a"))]
        assert all(item.content <= item.governing for item in decisions)
        assert all(item.governing == 2 for item in decisions if item.condition.status is Status.ORPHANED)

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_freeze_that_goes_during_a_turn_holds_nothing_afterwards(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        freeze = make_asset(
            AssetId("stop"), "lehr.Freeze", {"select": {"ids": ["a"]}, "reason": "launch", "until": None}, {}
        )
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.publish(thing("a", "1"), freeze)
        world.looking["a"] = 5.0
        world.values["a"] = "by hand"
        plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId("a")))
        await clock.sleep(2)
        await plane.publish(thing("a", "1"))
        await clock.sleep(60)
        assert world.values == {"a": "1"}

    play(tmp_path, scenario, traits=traits_without_resync())


def test_turns_that_break_do_not_follow_each_other_at_once(tmp_path: Path) -> None:
    stores: list[Unreadable] = []

    def unreadable(store: Store) -> Store:
        stores.append(Unreadable(store))
        return stores[-1]

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        slow = {"select": {"all": True}, "pushes": 9, "per": "10m"}
        await plane.publish(thing("a", "1", turned_down(fence=5000)), thing("b", "1"))
        await clock.sleep(10)
        await plane.publish(thing("b", "1"))
        await clock.sleep(10)
        stores[0].broken = True
        await plane.publish(thing("b", "1"), make_asset(AssetId("slow"), "lehr.RateLimit", slow, {}))
        before = plane.enforcer.turns
        await clock.sleep(25)
        assert plane.enforcer.turns - before < 10
        assert plane.condition("a").reason == Reason.STORE_UNAVAILABLE
        stores[0].broken = False
        await clock.sleep(30)
        assert plane.condition("a").reason == Reason.TURNDOWN_STANDS

    play(tmp_path, scenario, traits=traits_without_resync(), wrap=unreadable)


def test_a_dependency_that_could_not_be_seen_when_it_was_looked_at_is_looked_at_again(
    tmp_path: Path,
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        app = {DEPENDS_ON: DependsOn(["db"])}
        await plane.publish(thing("app", "1", app), thing("db", "1"))
        await plane.settle()
        world.looking["db"] = 1000.0  # longer than a look may take
        await plane.publish(thing("app", "2", app), thing("db", "1"))
        await clock.sleep(60)
        assert plane.condition("app").reason == Reason.DEPENDENCY_DIFFERS
        del world.looking["db"]
        await clock.sleep(120)
        assert world.values["app"] == "2"

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_referrer_that_leaves_during_the_turn_of_what_it_refers_to_is_not_missed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        depends = {DEPENDS_ON: DependsOn(["db"])}
        await plane.publish(thing("app", "1", depends), thing("db", "1"))
        await plane.settle()
        world.looking["db"] = 8.0
        await plane.publish(thing("app", "1", depends | turned_down()), thing("db", "1", turned_down()))
        await clock.sleep(60)
        assert not world.values

    play(tmp_path, scenario, traits=traits_without_resync())


def test_a_defect_before_admission_costs_no_place_for_pushes(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        claims, broken = plane.enforcer._claims, 0
        asked = claims.take

        async def breaks(slot: object) -> None:
            nonlocal broken
            broken += 1
            raise RuntimeError("a defect")

        claims.take = breaks  # type: ignore[method-assign]
        await plane.publish(thing("a", "1"))
        await clock.sleep(60)
        assert broken > 1
        claims.take = asked  # type: ignore[method-assign]
        await plane.settle(600.0)
        assert world.values == {"a": "1"}

    play(tmp_path, scenario, traits=Traits(pushes=1))


def test_a_retry_beyond_the_budget_costs_no_place_for_pushes(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.behave["a"] = lambda target, push: Outcome(Result.FAILED, "no connection")
        await plane.publish(thing("a", "1"))
        plane.enforcer._lanes[THING].budget = RetryBudget(capacity=0.0, per_second=0.0001)
        await clock.sleep(60)
        assert plane.condition("a").reason == Reason.RETRY_BUDGET
        del world.behave["a"]
        plane.enforcer._lanes[THING].budget = RetryBudget()
        await plane.publish(thing("a", "2"))
        await plane.settle(600.0)
        assert world.values == {"a": "2"}

    play(tmp_path, scenario, traits=Traits(pushes=1))

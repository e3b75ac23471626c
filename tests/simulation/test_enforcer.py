"""The real Enforcer and store against simulated production, under virtual time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lehr.checks import CHECKS, TYPES
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import AssetId, AssetKey, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.governance import OBSERVE_ONLY, ObserveOnly
from lehr.model.operation import Outcome, Result
from lehr.model.reason import Reason
from lehr.model.selector import Selector, parse_selector
from lehr.sdk.plugin import Traits
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, thing
from tests.world import Plane, World

Scenario = Callable[[Plane, World, VirtualClock], Awaitable[None]]

DAY = 86_400.0


def play(
    folder: Path,
    scenario: Scenario,
    *,
    seed: int = 1,
    traits: Traits | None = None,
    only: Selector | None = None,
) -> World:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        plane = Plane(
            folder,
            world,
            clock,
            checks=[check() for check in CHECKS],
            types=TYPES,
            traits=traits,
            seed=seed,
            only=only,
        )
        await plane.start()
        try:
            async with asyncio.timeout(DAY):
                await scenario(plane, world, clock)
        finally:
            await plane.kill()

    run(main, seed=seed)
    return world


def control(kind: ControlKind, selector: str, clock: VirtualClock, **fields: object) -> Control:
    return Control(
        id=f"{kind}-{clock.now()}",
        kind=kind,
        partition=PARTITION,
        selector=parse_selector(selector),
        reason="because",
        actor="ana",
        at=clock.now(),
        **fields,  # type: ignore[arg-type]
    )


def turned_down(stand: float = 0.0, fence: float = 0.0) -> dict[str, Turndown]:
    return {TURNDOWN: Turndown("old", stand, fence)}


def test_what_intent_declares_becomes_true_and_drift_is_healed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "2"))
        await plane.settle()
        assert world.values == {"a": "1", "b": "2"}
        world.values["a"] = "by hand"
        await clock.sleep(120)
        assert world.values["a"] == "1"
        assert plane.condition("a").status is Status.CONVERGED

    play(tmp_path, scenario)


def test_a_hint_of_the_plugin_heals_before_the_resync(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        world.values["a"] = "by hand"
        plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId("a")))
        await clock.sleep(2)
        assert world.values["a"] == "1"

    play(tmp_path, scenario, traits=Traits(resync=5000.0))


def test_two_turns_that_end_alike_leave_one_decision(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        before = len(plane.store.records.decisions(PARTITION))
        await clock.sleep(3600)
        assert plane.enforcer.turns > 50
        assert len(plane.store.records.decisions(PARTITION)) == before

    play(tmp_path, scenario)


def test_failed_pushes_are_tried_again_with_growing_delays(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        at: list[float] = []

        def fail_five_times(target: object, push: object) -> Outcome | None:
            at.append(clock.monotonic())
            return Outcome(Result.FAILED, "no") if len(at) <= 5 else None

        world.behave["a"] = fail_five_times
        await plane.publish(thing("a", "1"))
        await plane.settle()
        assert world.values == {"a": "1"}
        pauses = [later - earlier for earlier, later in itertools.pairwise(at)]
        assert all(pause >= world.seconds + 0.5 * 2**n for n, pause in enumerate(pauses))

    play(tmp_path, scenario)


def test_unknown_outcome_is_looked_at_before_anything_else(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        def applied_but_lost(target: object, push: object) -> Outcome:
            world.values["a"] = "1"
            raise ConnectionError("lost")

        world.behave["a"] = applied_but_lost
        await plane.publish(thing("a", "1"))
        await plane.settle()
        [operation] = plane.store.records.operations(PARTITION)
        assert operation.result is Result.DONE
        assert "found applied" in operation.message
        assert not world.pushes

    play(tmp_path, scenario)


def test_unknown_outcome_is_looked_for_in_the_content_that_was_pushed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        def applied_but_lost(target: object, push: object) -> Outcome:
            world.values["a"] = "1"
            del world.behave["a"]
            raise ConnectionError("lost")

        world.behave["a"] = applied_but_lost
        await plane.publish(thing("a", "1"))
        await clock.sleep(world.seconds / 2)
        await plane.publish(thing("a", "2"))
        await plane.settle()
        lost = next(item for item in plane.store.records.operations(PARTITION) if item.content == 1)
        assert "found applied" in lost.message, "although the newer content is not there yet"
        assert world.values == {"a": "2"}

    play(tmp_path, scenario)


def test_push_that_hangs_becomes_unknown_and_holds_only_its_own_asset(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 1e6
        await plane.publish(thing("slow", "1"))
        await clock.sleep(5)
        world.seconds = 1.0
        await plane.publish(thing("slow", "1"), thing("b", "2"))
        await clock.sleep(5)
        assert world.values == {"b": "2"}
        await plane.settle()
        assert world.values == {"slow": "1", "b": "2"}
        results = [item.message for item in plane.store.records.operations(PARTITION, AssetId("slow"))]
        assert any("found not applied" in message for message in results)

    play(tmp_path, scenario, traits=Traits(push_timeout=100.0, pushes=2))


def test_pushed_and_still_different_stalls_and_names_itself(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.forgetful.add("a")
        await plane.publish(thing("a", "1"))
        await clock.sleep(4 * 3600)
        condition = plane.condition("a")
        assert (condition.status, condition.reason) == (Status.STALLED, Reason.PUSHED_STILL_DIFFERENT)
        assert world.pushes["a", "1"] == 3
        world.forgetful.clear()
        await plane.publish(thing("a", "2"))
        await plane.settle()
        assert world.values["a"] == "2"

    play(tmp_path, scenario)


def test_stalled_push_waits_for_new_intent(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.behave["a"] = lambda target, push: Outcome(Result.STALLED, "no such port")
        await plane.publish(thing("a", "1"))
        await clock.sleep(DAY / 2)
        assert plane.condition("a").reason == Reason.PUSH_STALLED
        assert len(plane.store.records.operations(PARTITION)) == 1
        del world.behave["a"]
        await plane.publish(thing("a", "2"))
        await plane.settle()

    play(tmp_path, scenario)


def test_a_push_that_newer_content_overtook_is_told(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 50.0
        await plane.publish(thing("a", "1"))
        await clock.sleep(5)
        world.behave["a"] = lambda target, push: (
            Outcome(Result.FAILED, "superseded") if push.superseded else None
        )
        await plane.publish(thing("a", "2"))
        await plane.settle(60.0)
        assert plane.plugin.superseded == ["a"]
        assert world.values == {"a": "2"}
        assert world.pushes["a", "1"] == 0

    play(tmp_path, scenario)


def test_a_dependency_goes_first_and_its_end_wakes_the_dependant(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 20.0
        await plane.publish(
            thing("app", "1", {DEPENDS_ON: DependsOn(["db"])}), thing("db", "1"), thing("other", "1")
        )
        await clock.sleep(1)
        assert plane.condition("app").status is Status.WAITING
        await plane.settle()
        assert world.order.index("db") < world.order.index("app")
        assert clock.monotonic() < 45.0

    play(tmp_path, scenario, traits=Traits(resync=5000.0))


def test_a_dependency_that_settles_while_others_are_looked_at_is_not_missed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("slow", "1"))
        await plane.settle()
        world.looking["slow"] = 5.0
        await plane.publish(
            thing("app", "1", {DEPENDS_ON: DependsOn(["db", "slow"])}), thing("db", "1"), thing("slow", "1")
        )
        await plane.settle(60.0)
        assert world.values == {"app": "1", "db": "1", "slow": "1"}

    play(tmp_path, scenario, traits=Traits(resync=50_000.0))


def test_a_turn_that_takes_long_delays_no_other(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.looking["slow"] = 20.0
        await plane.publish(thing("slow", "1"), thing("a", "1"))
        await clock.sleep(2)
        assert plane.condition("a").status is Status.CONVERGED

    play(tmp_path, scenario)


def test_what_a_plugin_read_wakes_it_and_is_part_of_its_content(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "2"))
        await plane.settle()
        assert world.values["a"] == "1+2"
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "3"))
        await plane.settle(10.0)
        assert world.values["a"] == "1+3"

    play(tmp_path, scenario, traits=Traits(resync=5000.0))


def test_freeze_holds_at_once_also_for_pinned_content(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.control(control(ControlKind.PIN, "a", clock, incarnation=1))
        freeze = make_asset(
            AssetId("stop"), "lehr.Freeze", {"select": {"ids": ["a"]}, "reason": "launch", "until": None}, {}
        )
        await plane.publish(thing("a", "2"), freeze)
        world.values["a"] = "by hand"
        await clock.sleep(300)
        assert world.values["a"] == "by hand"
        condition = plane.condition("a")
        assert condition.status is Status.WAITING
        [_, decision] = plane.store.records.decisions(PARTITION, AssetId("a"), 1)[0]
        assert (decision.content, decision.governing) == (1, 2)
        await plane.publish(thing("a", "2"))
        await plane.settle()
        assert world.values["a"] == "1"

    play(tmp_path, scenario)


def test_pin_goes_back_and_unpin_forward_again(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.publish(thing("a", "2"))
        await plane.settle()
        pin = control(ControlKind.PIN, "a", clock, incarnation=1)
        await plane.control(pin)
        await plane.settle()
        assert world.values["a"] == "1"
        assert plane.condition("a").reason == Reason.PINNED
        await plane.lift(pin)
        await plane.settle()
        assert world.values["a"] == "2"

    play(tmp_path, scenario)


def test_a_pin_runs_out(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.publish(thing("a", "2"))
        await plane.control(control(ControlKind.PIN, "a", clock, incarnation=1, expires_at=clock.now() + 600))
        await plane.settle()
        assert world.values["a"] == "1"
        await clock.sleep(700)
        assert world.values["a"] == "2"

    play(tmp_path, scenario)


def test_paused_asset_has_no_turns_and_resumes(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        pause = control(ControlKind.PAUSE, "a", clock)
        await plane.control(pause)
        await clock.sleep(300)
        assert plane.condition("a").reason == Reason.PAUSED
        await plane.lift(pause)
        await plane.settle(10.0)
        assert world.values["a"] == "1"

    play(tmp_path, scenario)


def test_observed_only_is_compared_and_never_pushed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        look = make_asset(
            AssetId("look"), OBSERVE_ONLY, ObserveOnly(Selector(types=("test.*",)), "adoption"), {}
        )
        await plane.publish(thing("a", "1"), look)
        await clock.sleep(600)
        assert not world.values
        assert plane.condition("a").reason == Reason.OBSERVE_ONLY
        world.values["a"] = "1"
        await clock.sleep(120)
        assert plane.condition("a").status is Status.CONVERGED

    play(tmp_path, scenario)


def test_destruction_waits_for_an_approval_of_exactly_this_diff(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", destroys=True))
        await clock.sleep(10)
        assert plane.condition("a").reason == Reason.APPROVAL_NEEDED
        [(_, decision), *_] = plane.store.records.decisions(PARTITION, AssetId("a"), 1)
        assert decision.diff is not None
        approval = control(ControlKind.APPROVAL, "a", clock, diff_digest=decision.diff.digest())
        await plane.publish(thing("a", "2", destroys=True))
        await plane.control(approval)
        await clock.sleep(300)
        assert not world.values, "an approval of another diff must not count"
        await plane.publish(thing("a", "1", destroys=True))
        await plane.settle()
        assert world.values["a"] == "1"

    play(tmp_path, scenario)


def test_turndown_stands_is_fenced_and_then_removed_even_when_the_lines_go(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()
        await plane.publish(thing("a", "1", turned_down(stand=600, fence=600)), thing("b", "1"))
        await clock.sleep(300)
        assert world.values["a"] == "1"
        await clock.sleep(400)
        assert world.values["a"] == "fenced 1"
        await plane.publish(thing("b", "1"))
        await clock.sleep(700)
        assert "a" not in world.values
        ledger = plane.store.records.ledger(AssetKey(PARTITION, AssetId("a")))
        assert ledger is not None
        assert ledger.goal is Goal.ABSENT
        assert plane.enforcer.assets == 1

    play(tmp_path, scenario)


def test_turndown_taken_back_brings_a_fenced_asset_back(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.publish(thing("a", "1", turned_down(fence=6000)))
        await clock.sleep(100)
        assert world.values["a"] == "fenced 1"
        await plane.publish(thing("a", "1"))
        await plane.settle()
        assert world.values["a"] == "1"

    play(tmp_path, scenario)


def test_turndown_waits_while_something_refers_to_it(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "1"))
        await plane.settle()
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "1", turned_down()))
        await clock.sleep(300)
        assert world.values["b"] == "1"
        assert plane.condition("b").reason == Reason.STILL_REFERENCED
        await plane.publish(thing("a", "1"), thing("b", "1", turned_down()))
        await clock.sleep(120)
        assert "b" not in world.values

    play(tmp_path, scenario)


def test_absence_removes_nothing(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()
        await plane.publish(thing("b", "1"))
        await clock.sleep(3600)
        assert world.values == {"a": "1", "b": "1"}
        assert plane.condition("a").status is Status.ORPHANED
        assert plane.enforcer.assets == 1

    play(tmp_path, scenario)


def test_the_deletion_budget_bounds_removals(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        names = [f"t{n}" for n in range(6)]
        budget = make_asset(
            AssetId("budget"), "lehr.DeletionBudget", {"removals": 2, "per_seconds": 3600.0}, {}
        )
        await plane.publish(*(thing(name, "1") for name in names), budget)
        await plane.settle()
        await plane.publish(*(thing(name, "1", turned_down()) for name in names), budget)
        await clock.sleep(1800)
        left = [name for name in names if name in world.values]
        assert len(left) == 4
        await clock.sleep(3 * 3600)
        assert not world.values

    play(tmp_path, scenario)


def test_pushes_of_one_plugin_are_bounded(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 30.0
        await plane.publish(*(thing(f"t{n}", "1") for n in range(30)))
        await plane.settle()
        assert world.most_at_once == 4
        assert len(world.values) == 30

    play(tmp_path, scenario, traits=Traits(pushes=4))


def test_no_place_stays_free_while_somebody_waits_for_one(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 60.0
        await plane.publish(thing("first", "1"))
        await clock.sleep(1)
        await plane.publish(thing("first", "1"), thing("a", "1"), thing("b", "1"))
        await clock.sleep(10)
        assert {plane.condition(id).reason for id in "ab"} == {Reason.CONCURRENCY_LIMIT}
        world.values["a"] = "1"
        await plane.settle(180.0)
        assert world.values == {"first": "1", "a": "1", "b": "1"}

    play(tmp_path, scenario, traits=Traits(pushes=1, resync=50_000.0))


def test_a_rate_limit_is_kept_over_all_assets(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        limit = make_asset(
            AssetId("slow"),
            "lehr.RateLimit",
            {"select": {"types": ["test.Thing"]}, "pushes": 3, "per": "10m"},
            {},
        )
        await plane.publish(*(thing(f"t{n}", "1") for n in range(9)), limit)
        await clock.sleep(300)
        assert len(world.values) == 3
        await clock.sleep(3600)
        assert len(world.values) == 9

    play(tmp_path, scenario)


def test_a_wall_clock_that_jumps_delays_nothing(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        clock.jump(-30 * DAY)
        world.values["a"] = "by hand"
        await clock.sleep(90)
        assert world.values["a"] == "1"
        clock.jump(60 * DAY)
        world.values["a"] = "by hand"
        await clock.sleep(90)
        assert world.values["a"] == "1"

    play(tmp_path, scenario)


@pytest.mark.parametrize("days", [2, -2], ids=["ahead", "back"])
def test_a_clock_that_jumps_removes_nothing_early_and_puts_no_removal_off(days: int, tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.publish(thing("a", "1", turned_down(stand=600, fence=600)))
        await clock.sleep(10)
        clock.jump(days * DAY)
        await clock.sleep(400)
        assert world.values["a"] == "1"
        await clock.sleep(300)
        assert world.values["a"] == "fenced 1"
        clock.jump(days * DAY)
        await clock.sleep(200)
        assert world.values["a"] == "fenced 1"
        await clock.sleep(300)
        assert "a" not in world.values

    play(tmp_path, scenario)


def test_what_is_fenced_once_more_stays_fenced_for_its_time_though_the_clock_jumps(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await plane.publish(thing("a", "1", turned_down(fence=600)))
        await clock.sleep(500)
        world.values["a"] = "by hand"
        plane.enforcer.wake(AssetId("a"), "its plugin reported a change")
        await clock.sleep(5)
        assert world.values["a"] == "fenced 1"
        clock.jump(2 * DAY)
        await clock.sleep(500)
        assert world.values["a"] == "fenced 1"
        await clock.sleep(200)
        assert "a" not in world.values

    play(tmp_path, scenario)


def test_a_plugin_that_raises_or_talks_nonsense_is_named_and_tried_again(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.behave["a"] = lambda target, push: "nonsense"  # type: ignore[assignment,return-value]
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await clock.sleep(30)
        assert world.values == {"b": "1"}
        messages = " ".join(item.message for item in plane.store.records.operations(PARTITION))
        assert "found not applied" in messages
        del world.behave["a"]
        await plane.settle()

    play(tmp_path, scenario)


def test_a_run_for_some_assets_pushes_no_other_and_is_at_rest_without_them(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("web-a", "1"), thing("web-b", "1"), thing("db", "1"))
        await plane.settle()
        assert world.values == {"web-a": "1", "web-b": "1"}
        assert plane.enforcer.at_rest
        assert not plane.enforcer.unsettled
        world.values["db"] = "by hand"
        await clock.sleep(DAY / 24)
        assert world.values["db"] == "by hand"
        assert not plane.store.records.decisions(PARTITION, AssetId("db"), 1)

    play(tmp_path, scenario, only=Selector(ids=("web-*",)))


def test_a_run_for_some_assets_waits_for_what_they_depend_on_and_does_not_push_it(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        needs = {DEPENDS_ON: DependsOn(assets=["db"])}
        await plane.publish(thing("web", "1", addons=needs), thing("db", "1"))
        await clock.sleep(60)
        assert world.values == {}
        assert plane.condition("web").status is Status.WAITING
        assert plane.enforcer.unsettled == {AssetId("web")}

    play(tmp_path, scenario, only=Selector(ids=("web",)))

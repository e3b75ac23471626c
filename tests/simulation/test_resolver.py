"""Orders of pushes that follow from what changes do, with the real Enforcer under virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Rule, Turndown, VersionNeed
from lehr.model.asset import Asset
from lehr.model.control import Control, ControlKind
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
from lehr.sdk.plugin import Traits
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, thing
from tests.simulation.playing import control, play, turned_down
from tests.world import Plane, World, WorldPlugin

LONG = Traits(goals=WorldPlugin.traits.goals, resync=50_000.0)


def balancer(value: str) -> Asset:
    return thing("balancer", value, {DEPENDS_ON: DependsOn(capacity=["job"])})


def job(value: str, needs: str = "") -> Asset:
    versions = [VersionNeed("schema", needs)] if needs else []
    return thing("job", value, {DEPENDS_ON: DependsOn(versions=versions)})


def test_growing_the_job_goes_before_its_balancer_and_shrinking_after(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(balancer("1"), job("1"))
        await plane.settle(60.0)
        world.order.clear()
        await plane.publish(balancer("3"), job("3"))
        await plane.settle(60.0)
        await plane.publish(balancer("1"), job("1"))
        await plane.settle(60.0)
        assert world.order == ["job", "balancer", "balancer", "job"]

    play(tmp_path, scenario, traits=LONG)


def test_the_order_is_re_decided_when_a_change_turns_round_on_the_way(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(balancer("2"), job("2"))
        await plane.settle(60.0)
        world.order.clear()
        world.seconds = 20.0
        await plane.publish(balancer("4"), job("4"))
        await clock.sleep(5)
        assert plane.condition("balancer").reason == Reason.CAPACITY_ORDER
        await plane.publish(balancer("1"), job("1"))
        await plane.settle(200.0)
        assert world.values == {"balancer": "1", "job": "1"}
        assert world.order[-2:] == ["balancer", "job"]

    play(tmp_path, scenario, traits=LONG)


def test_changes_that_keep_capacity_wait_for_nobody(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(balancer("x"), job("y"))
        await clock.sleep(0.5)
        assert world.running == {"balancer", "job"}

    play(tmp_path, scenario, traits=LONG)


def test_unknown_effects_block_in_both_directions_and_the_cycle_is_named(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(balancer("?"), job("?"))
        await clock.sleep(30)
        conditions = [plane.condition(id) for id in ("balancer", "job")]
        cycles = [item for item in conditions if item.reason == Reason.MUTUAL_BLOCK]
        assert cycles
        assert "balancer waits for job" in cycles[0].message
        assert "job waits for balancer" in cycles[0].message
        assert not world.values
        await plane.publish(balancer("1"), job("1"))
        await plane.settle(60.0)

    play(tmp_path, scenario, traits=LONG)


def schema(version: str) -> Asset:
    return thing("schema", version, versioned=True)


def test_a_job_never_runs_ahead_of_the_version_that_it_needs(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(job("a", needs="1"), schema("1"))
        await plane.settle(60.0)
        await plane.publish(job("b", needs="2"), schema("2"))
        await plane.settle(60.0)
        assert world.order == ["schema", "job", "schema", "job"]

    play(tmp_path, scenario, traits=LONG)


def test_going_back_the_job_goes_first_and_a_newer_version_still_serves_it(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(job("a", needs="1"), schema("1"))
        await plane.settle(60.0)
        await plane.publish(job("b", needs="2"), schema("2"))
        await plane.settle(60.0)
        world.order.clear()
        await plane.publish(job("a", needs="1"), schema("1"))
        await plane.settle(60.0)
        assert world.order == ["job", "schema"]

    play(tmp_path, scenario, traits=LONG)


def test_a_version_does_not_fall_behind_what_is_held_back(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(job("b", needs="2"), schema("2"))
        await plane.settle(60.0)
        await plane.control(
            Control(
                id="p",
                kind=ControlKind.PAUSE,
                partition=PARTITION,
                selector=parse_selector("job"),
                reason="r",
                actor="ana",
                at=clock.now(),
            )
        )
        await plane.publish(job("a", needs="1"), schema("1"))
        await clock.sleep(100)
        assert world.values["schema"] == "2"
        assert plane.condition("schema").reason == Reason.VERSION_ORDER

    play(tmp_path, scenario, traits=LONG)


def pinned(selector: str, clock: VirtualClock) -> Control:
    """To the first incarnation."""
    return control(ControlKind.PIN, selector, clock, incarnation=1)


def test_in_a_rollback_of_both_a_version_goes_back_after_the_job(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(job("a", needs="1"), schema("1"))
        await plane.settle(60.0)
        await plane.publish(job("b", needs="2"), schema("2"))
        await plane.settle(60.0)
        world.order.clear()
        await plane.control(pinned("all", clock))
        await plane.settle(60.0)
        assert world.order == ["job", "schema"]

    play(tmp_path, scenario, traits=LONG)


def test_a_version_does_not_fall_behind_what_is_pinned(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(job("a", needs="2"), schema("2"))
        await plane.settle(60.0)
        pin = pinned("job", clock)
        await plane.control(pin)
        await plane.publish(job("a"), schema("1"))
        await clock.sleep(100)
        assert world.values["schema"] == "2"
        assert plane.condition("schema").reason == Reason.VERSION_ORDER
        await plane.lift(pin)
        await plane.settle(60.0)
        assert world.values["schema"] == "1"

    play(tmp_path, scenario, traits=LONG)


def test_a_version_does_not_go_back_behind_what_came_later(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(schema("1"))
        await plane.settle(60.0)
        await plane.publish(schema("2"), job("a", needs="2"))
        await plane.settle(60.0)
        await plane.control(pinned("schema", clock))
        await clock.sleep(30)
        assert world.values["schema"] == "2"
        assert plane.condition("schema").reason == Reason.VERSION_ORDER

    play(tmp_path, scenario, traits=LONG)


def test_a_rule_says_what_no_order_does(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        rule = Rule("cache", "theirs.empty || mine.capacity < 0", "is cold")
        await plane.publish(thing("app", "5"), thing("cache", "x"))
        await plane.settle(60.0)
        world.order.clear()
        world.seconds = 10.0
        grown = thing("app", "7", {DEPENDS_ON: DependsOn(rules=[rule])})
        await plane.publish(grown, thing("cache", "y"))
        await clock.sleep(3)
        assert plane.condition("app").reason == Reason.RULE_NOT_MET
        assert "cache is cold" in plane.condition("app").message
        await plane.settle(60.0)
        assert world.order == ["cache", "app"]
        shrunk = thing("app", "2", {DEPENDS_ON: DependsOn(rules=[rule])})
        await plane.publish(shrunk, thing("cache", "z"))
        await clock.sleep(3)
        assert world.running == {"app", "cache"}

    play(tmp_path, scenario, traits=LONG)


def test_a_rule_without_an_answer_waits(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        rule = Rule("cache", "theirs.colour == 'red'")
        await plane.publish(thing("app", "1", {DEPENDS_ON: DependsOn(rules=[rule])}), thing("cache", "x"))
        await clock.sleep(600)
        assert world.values == {"cache": "x"}
        assert "cannot be checked" in plane.condition("app").message

    play(tmp_path, scenario, traits=LONG)


def test_a_turndown_waits_for_those_whose_production_may_still_refer_to_it(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(balancer("1"), job("1"))
        await plane.settle(60.0)
        world.order.clear()
        world.seconds = 20.0
        alone = thing("balancer", "0")
        await plane.publish(alone, thing("job", "1", {TURNDOWN: Turndown("old")}))
        await plane.settle(600.0)
        assert world.order == ["balancer", "job", "job"]
        assert world.values == {"balancer": "0"}

    play(tmp_path, scenario, traits=LONG)


def test_of_two_that_are_turned_down_the_one_that_refers_goes_first(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(balancer("1"), job("1"), thing("stays", "1"))
        await plane.settle(60.0)
        world.order.clear()
        down = {TURNDOWN: Turndown("old")}
        refers = {DEPENDS_ON: DependsOn(capacity=["job"]), **down}
        await plane.publish(thing("balancer", "1", refers), thing("job", "1", down), thing("stays", "1"))
        await plane.settle(600.0)
        assert world.order == ["balancer", "balancer", "job", "job"]

    play(tmp_path, scenario, traits=LONG)


def after(id: str, value: str, *first: str) -> Asset:
    return thing(id, value, {DEPENDS_ON: DependsOn(assets=[*first])})


def test_order_passes_through_a_dependency_that_has_nothing_to_do(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(after("a", "1", "b"), after("b", "1", "c"), thing("c", "1"))
        await plane.settle(60.0)
        world.order.clear()
        world.seconds = 20.0
        await plane.publish(after("a", "2", "b"), after("b", "1", "c"), thing("c", "2"))
        await clock.sleep(5)
        assert plane.condition("a").reason == Reason.DEPENDENCY_DIFFERS
        assert plane.condition("a").message == "depends-on: c, which b needs, differs in push"
        await plane.settle(100.0)
        assert world.order == ["c", "a"]

    play(tmp_path, scenario, traits=LONG)


def test_order_passes_through_what_has_settled_without_looking_at_it_again(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        chain = [after("b", "1", "c"), after("c", "1", "d"), thing("d", "1")]
        await plane.publish(after("a", "1", "b"), *chain)
        await plane.settle(60.0)
        world.values["d"] = "by hand"  # which nobody has seen
        await plane.publish(after("a", "2", "b"), *chain)
        await clock.sleep(5)
        assert world.values["a"] == "2"

    play(tmp_path, scenario, traits=LONG)


def test_order_does_not_pass_through_what_has_settled_before_what_it_reads_changed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        reader = thing("c", "1", reads=["d"])
        await plane.publish(after("a", "1", "b"), after("b", "1", "c"), reader, thing("d", "1"))
        await plane.settle(60.0)
        world.order.clear()
        world.looking["c"] = 5.0  # so that the turn of `a` is over before its own
        await plane.publish(after("a", "2", "b"), after("b", "1", "c"), reader, thing("d", "2"))
        await plane.settle(60.0)
        assert world.values["c"] == "1+2"
        assert world.order.index("c") < world.order.index("a")

    play(tmp_path, scenario, traits=LONG)


def test_order_passes_through_what_has_older_content_and_the_newest_of_what_it_reads(tmp_path: Path) -> None:
    """Seed 4489 with a rollout policy: the judge took the incarnation in the ledger for that of both."""

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        reader = thing("c", "1", reads=["d"])
        await plane.publish(after("a", "1", "b"), after("b", "1", "c"), reader, thing("d", "1"))
        await plane.settle(60.0)
        pin = pinned("c", clock)
        await plane.control(pin)
        await plane.publish(after("a", "1", "b"), after("b", "1", "c"), reader, thing("d", "2"))
        await plane.settle(60.0)
        await plane.lift(pin)
        await plane.settle(60.0)
        assert world.values["c"] == "1+2"
        world.values["c"] = "by hand"  # which nobody has seen
        await plane.publish(after("a", "2", "b"), after("b", "1", "c"), reader, thing("d", "2"))
        await clock.sleep(5)
        assert world.values["a"] == "2"

    play(tmp_path, scenario, traits=LONG)


@pytest.mark.parametrize(
    ("newest", "held_at"), [(thing("db", "2"), None), (thing("db", "1", turned_down()), 1)]
)
def test_what_comes_back_goes_first_also_for_content_in_which_it_is_turned_down(
    tmp_path: Path, newest: Asset, held_at: int | None
) -> None:
    """Seed 6350 with a rollout policy: such a dependency was compared as removed until its push began."""

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        gone = thing("db", "1", turned_down())
        await plane.publish(after("app", "1", "db"), thing("db", "1"))
        await plane.settle()
        depends = {DEPENDS_ON: DependsOn(["db"])}
        await plane.publish(thing("app", "1", {**depends, **turned_down()}), gone)
        await plane.settle()
        assert not world.values
        await plane.control(control(ControlKind.PIN, "app", clock, incarnation=2))
        pause = control(ControlKind.PAUSE, "db", clock)
        await plane.control(pause)
        await clock.sleep(1)
        if held_at:
            await plane.control(control(ControlKind.PIN, "db", clock, incarnation=held_at))
        await plane.publish(thing("app", "2"), newest)
        await clock.sleep(60)
        assert plane.condition("app").reason == Reason.DEPENDENCY_DIFFERS
        await plane.lift(pause)
        await clock.sleep(60)
        assert world.order[-2:] == ["db", "app"]

    play(tmp_path, scenario, traits=LONG)


def test_order_passes_through_what_a_pin_holds_back(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(after("a", "1", "b"), after("b", "1", "c"), thing("c", "1"))
        await plane.settle(60.0)
        pin = pinned("c", clock)
        await plane.control(pin)
        await plane.publish(after("a", "2", "b"), after("b", "1", "c"), thing("c", "2"))
        await clock.sleep(100)
        assert world.values["a"] == "1"
        await plane.lift(pin)
        await plane.settle(100.0)
        assert world.order[-2:] == ["c", "a"]

    play(tmp_path, scenario, traits=LONG)


def test_what_goes_back_does_not_wait_for_what_went_on_beyond_its_dependencies(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(after("a", "1", "b"), after("b", "1", "c"), thing("c", "1"))
        await plane.publish(after("a", "2", "b"), after("b", "1", "c"), thing("c", "2"))
        await plane.settle(60.0)
        await plane.control(pinned("a", clock))
        await clock.sleep(30)
        assert world.values == {"a": "1", "b": "1", "c": "2"}

    play(tmp_path, scenario, traits=LONG)


def test_what_goes_back_may_need_a_version_of_what_went_on(tmp_path: Path) -> None:
    def reads(value: str) -> Asset:
        first = DependsOn(assets=["b"], versions=[VersionNeed("schema", value)])
        return thing("a", value, {DEPENDS_ON: first})

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(reads("1"), after("b", "1", "schema"), schema("1"))
        await plane.publish(reads("2"), after("b", "1", "schema"), schema("2"))
        await plane.settle(60.0)
        await plane.control(pinned("a", clock))
        await clock.sleep(30)
        assert world.values == {"a": "1", "b": "1", "schema": "2"}

    play(tmp_path, scenario, traits=LONG)

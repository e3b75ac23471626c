"""A plan says what the first turn after a start comes to, in the cases in which it once did not."""

from __future__ import annotations

from pathlib import Path

from lehr.checks.rate_limit import RATE_LIMIT_TYPE, RateLimit
from lehr.dry_run.intent_changes import IntentChanges
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import ControlKind
from lehr.model.governance import OBSERVE_ONLY, ObserveOnly
from lehr.model.operation import Outcome, Result
from lehr.model.selector import Selector, parse_selector
from lehr.store.sqlite import SqliteStore
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import thing
from tests.simulation.dry_runs import PUSHING, Controls, Said, both, plan, planner
from tests.world import Plane, World


def limit(id: str, select: str, pushes: int = 1) -> Asset:
    payload = RateLimit(parse_selector(select), pushes, 3600.0)
    return make_asset(AssetId(id), RATE_LIMIT_TYPE.name, payload, {})


def after(*ids: str) -> dict[str, DependsOn]:
    return {DEPENDS_ON: DependsOn(assets=[*ids])}


def counted(results: list[str]) -> dict[str, int]:
    return {result: results.count(result) for result in results}


def test_an_approval_of_exactly_this_diff_lets_it_go(tmp_path: Path) -> None:
    intent = [thing("a", "1", destroys=True), thing("b", "1", destroys=True)]

    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(*intent)
        await clock.sleep(1)
        assert plane.condition("a").reason == "ApprovalNeeded"

    found = both(tmp_path, intent, history=history, controls=lambda given: given.approve("a"))
    assert {id: str(item.result) for id, item in found.planned.items()} == {
        "a": "will be pushed",
        "b": "needs approval",
    }
    found.agree()


def test_a_pinned_asset_is_compared_with_what_it_is_pinned_to(tmp_path: Path) -> None:
    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"), thing("c", "1"))
        await plane.settle()
        world.values["b"] = "by hand"

    def pinned(given: Controls) -> None:
        for id in ("a", "b"):
            given.give(ControlKind.PIN, id, incarnation=1)

    found = both(tmp_path, [thing(id, "2") for id in "abc"], history=history, controls=pinned)
    assert {id: str(item.result) for id, item in found.planned.items()} == {
        "a": "held",
        "b": "will be pushed",
        "c": "will be pushed",
    }
    change = found.planned["b"].diff
    assert change is not None
    assert [(item.intended, item.observed) for item in change.changes] == [("1", "by hand")]
    found.agree()


def test_what_is_new_is_not_pinned_to_where_it_was_not(tmp_path: Path) -> None:
    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()

    def pinned(given: Controls) -> None:
        given.give(ControlKind.PIN, "b", incarnation=1)

    found = both(tmp_path, [thing("a", "1"), thing("b", "1")], history=history, controls=pinned)
    assert (found.planned["b"].result, found.planned["b"].reason) == ("held", "PinnedToNothing")
    found.agree()


def test_drift_new_content_and_rollbacks_are_told_apart(tmp_path: Path) -> None:
    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(*(thing(id, "1") for id in ("drift", "new", "older", "same")))
        await plane.settle()
        await plane.publish(*(thing(id, "1") for id in ("drift", "new", "same")), thing("older", "2"))
        await plane.settle()
        world.values["drift"] = "by hand"

    def pinned(given: Controls) -> None:
        given.give(ControlKind.PIN, "older", incarnation=1)

    intent = [thing(id, "1") for id in ("drift", "first", "same")] + [
        thing(id, "2") for id in ("new", "older")
    ]
    found = both(tmp_path, intent, history=history, controls=pinned)
    assert {id: (item.purpose, item.since) for id, item in found.planned.items()} == {
        "drift": ("repair", "test@1"),
        "first": ("forward", ""),
        "new": ("forward", "test@1"),
        "older": ("rollback", "test@2"),
        "same": ("", "test@1"),
    }


def test_new_content_names_its_fields_and_the_assets_it_refers_to(tmp_path: Path) -> None:
    world = World()

    async def main() -> dict[str, IntentChanges]:
        clock = VirtualClock()
        plane = Plane(tmp_path, world, clock)
        await plane.start()
        await plane.publish(thing("a", "1", reads=["b"]), thing("b", "1"))
        await plane.settle()
        await plane.kill()
        world.values["b"] = "by hand"
        store = SqliteStore(tmp_path / "state.sqlite")
        intent = [thing("a", "2", reads=["b", "c"]), thing("b", "1", after("c")), thing("c", "1")]
        made = planner(store, world.plugin(clock), clock, intent)
        found = {str(item.id): await made.intent_changes(item) for item in await made.plan()}
        store.close()
        return found

    found = run(main, seed=1)
    assert [field.path for field in found["a"].fields] == ["/payload/reads/1", "/payload/value"]
    assert found["a"].others == ("b", "c")
    assert found["c"] == IntentChanges()
    assert found["b"].fields == (), "addons do not show in production"


def test_a_pause_holds_and_an_observed_asset_is_only_looked_at(tmp_path: Path) -> None:
    observe = make_asset(
        AssetId("look"), OBSERVE_ONLY, ObserveOnly(Selector(ids=("a",)), "it is adopted"), {}
    )
    intent = [observe, thing("a", "1", destroys=True), thing("b", "1"), thing("c", "1", after("a", "b"))]

    def paused(given: Controls) -> None:
        given.give(ControlKind.PAUSE, "b")

    found = both(tmp_path, intent, controls=paused)
    assert found.said == {
        "a": Said("ObserveOnly"),
        "b": Said("Paused"),
        "c": Said("DependencyDiffers", (AssetId("a"), AssetId("b"))),
    }
    found.agree()


def test_of_two_at_a_limit_with_room_for_one_one_is_pushed(tmp_path: Path) -> None:
    found = both(tmp_path, [limit("one", "all"), thing("a", "1"), thing("b", "1"), thing("c", "1")])
    reasons = counted([item.reason for item in found.planned.values()])
    assert reasons == {PUSHING: 1, "LimitReached": 2}
    assert [item.reason for item in found.turned.values()].count(PUSHING) == 1


def test_limits_that_overlap_each_give_what_they_have(tmp_path: Path) -> None:
    intent = [
        limit("all", "all", pushes=2),
        limit("some", "a,b"),
        *(thing(id, "1") for id in "abc"),
    ]
    found = both(tmp_path, intent)
    assert {id: item.reason for id, item in found.planned.items()} == {
        "a": PUSHING,
        "b": "LimitReached",
        "c": PUSHING,
    }
    turned = [item.reason for item in found.turned.values()]
    assert turned.count(PUSHING) == 2


def test_what_was_pushed_lately_counts_against_a_limit(tmp_path: Path) -> None:
    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(limit("one", "all"), thing("a", "1"))
        await plane.settle()

    found = both(tmp_path, [limit("one", "all"), thing("a", "1"), thing("b", "1")], history=history)
    assert found.said == {"a": Said("AsIntended"), "b": Said("RateLimited")}
    found.agree()


def test_removals_share_the_deletion_budget(tmp_path: Path) -> None:
    leaving = {TURNDOWN: Turndown("old")}

    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(*(thing(f"t{number}", "1") for number in range(14)))
        await plane.settle()
        await plane.publish(*(thing(f"t{number}", "1", leaving) for number in range(14)))
        await clock.sleep(10)

    found = both(tmp_path, [thing(f"t{number}", "1", leaving) for number in range(14)], history=history)
    assert [item.reason for item in found.planned.values()].count(PUSHING) == [
        item.reason for item in found.turned.values()
    ].count(PUSHING)


def test_what_stalls_says_so(tmp_path: Path) -> None:
    world = World()
    found = both(
        tmp_path,
        [
            thing("a", "1", reads=["missing"]),
            thing("b", "1", after("a")),
            make_asset(AssetId("c"), "x.Y", {}, {}),
        ],
        world=world,
    )
    assert {id: str(item.result) for id, item in found.planned.items()} == {
        "a": "not known",
        "b": "waits",
        "c": "not known",
    }
    found.agree()


def test_a_push_that_a_killed_process_left_is_looked_at_first(tmp_path: Path) -> None:
    world = World()
    world.seconds = 50.0

    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await clock.sleep(10)
        world.values["a"] = "1"  # it had got so far
        world.running.clear()

    found = both(tmp_path, [thing("a", "1"), thing("b", "1")], history=history, world=world)
    assert found.planned["a"].reason == "AsIntended"
    assert found.planned["b"].reason != PUSHING or found.turned["b"].reason == PUSHING
    found.agree()


def test_a_stall_ends_with_the_process_that_saw_it(tmp_path: Path) -> None:
    world = World()
    world.behave["a"] = lambda target, push: Outcome(Result.STALLED, "no such user")

    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await clock.sleep(10)
        assert plane.condition("a").reason == "PushStalled"

    found = both(tmp_path, [thing("a", "1")], history=history, world=world)
    assert found.planned["a"].reason == PUSHING
    found.agree()


def test_what_has_departed_and_is_let_go_is_told(tmp_path: Path) -> None:
    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"), thing("b", "1"))
        await plane.settle()

    found = both(tmp_path, [thing("a", "1")], history=history)
    assert (found.planned["b"].result, found.planned["b"].reason) == ("orphaned", "LetGo")
    found.agree()


def test_order_passes_through_what_has_not_had_a_turn_yet(tmp_path: Path) -> None:
    def intent(value: str) -> list[Asset]:
        return [thing("a", value, after("b")), thing("b", "1", after("c")), thing("c", value)]

    async def history(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(*intent("1"))
        await plane.settle()

    found = both(tmp_path, intent("2"), history=history)
    assert found.said == {
        "a": Said("DependencyDiffers", (AssetId("c"),)),
        "b": Said("AsIntended"),
        "c": Said(PUSHING),
    }
    found.agree()


def test_a_plan_for_some_assets_names_no_other_and_gives_them_the_whole_limit(tmp_path: Path) -> None:
    intent = [limit("slow", "id=a,id=b"), thing("a", "1"), thing("b", "1"), thing("c", "1")]

    async def main() -> dict[str, str]:
        store = SqliteStore(tmp_path / "state.sqlite")
        found = await plan(store, World(), VirtualClock(), intent, only=Selector(ids=("b",)))
        store.close()
        return {id: str(item.result) for id, item in found.items()}

    assert run(main, seed=1) == {"b": "will be pushed"}

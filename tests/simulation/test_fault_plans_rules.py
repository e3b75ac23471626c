"""What fault plans are made, left out and judged by."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.model.reason import Reason
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.plans.damage import damaged
from lehr.testing.sim.plans.needless_plans import prune
from lehr.testing.sim.plans.oracles import differences, strays, summary, unlike
from lehr.testing.sim.plans.plan import Fault, FaultPlan, Point, Reference, Rest, Where
from lehr.testing.sim.plans.plan_list import plans_of

REST = Rest({"a": 1}, {"a": ("digest", "present")}, {"a": ("Converged", Reason.AS_INTENDED)}, "incarnation")
FILES = {"lehr.yaml": b"partition: x", "a.yaml": b"id: a", "b.yaml": b"id: b", "c.yaml": b"id: c"}


def point(where: Where, number: int, state: str = "s", **fields: Any) -> Point:
    fields = {"step": 0, "at": float(number), "after": Digest(state), **fields}
    return Point(where=where, number=number, before=Digest(state), **fields)


def reference(*points: Point, steps: int = 2) -> Reference:
    return Reference(points, (REST,) * steps, {}, {}, 1.0)


def planned(*points: Point) -> list[str]:
    return [plan.name for plan in plans_of(reference(*points), ["a.yaml"])]


# --- which plans there are ---------------------------------------------------------------


def test_a_crash_comes_before_and_after_each_commit_and_write() -> None:
    found = planned(point(Where.COMMIT, 1), point(Where.WRITE, 1))
    for name in ("commit 1", "write 1"):
        assert {f"crash before {name}", f"crash after {name}"} <= set(found)


def test_stale_reads_go_back_further_before_what_takes_away() -> None:
    moves = [point(Where.COMMIT, number, moves=True) for number in (1, 2, 3, 4)]
    admits = point(Where.COMMIT, 5, admits=(("a", False),))
    assert [name for name in planned(*moves, admits) if "stale" in name] == [
        "stale reads from commit 4 to commit 5"
    ]
    removes = point(Where.COMMIT, 5, admits=(("a", True),))
    assert len([name for name in planned(*moves, removes) if "stale" in name]) == 3


def test_a_source_is_not_damaged_before_anything_is_known_of_it() -> None:
    first, second = point(Where.READ, 1, at=0.0), point(Where.READ, 2, at=9.0)
    found = planned(first, point(Where.COMMIT, 1, at=5.0, what="Publish"), second)
    assert "unreadable source at read 1" in found
    assert "empty source at read 1" not in found
    assert {"empty source at read 2", "a.yaml blank at read 2"} <= set(found)


def test_the_last_look_before_what_takes_away_fails_or_is_outdated() -> None:
    looks = [point(Where.LOOK, number, at=at, ids=("a",)) for number, at in ((1, 1.0), (2, 2.0), (3, 9.0))]
    other = point(Where.LOOK, 4, at=3.0, ids=("b",))
    found = planned(*looks, other, point(Where.COMMIT, 1, at=5.0, admits=(("a", True), ("b", False))))
    assert [name for name in found if "look" in name] == ["look 2 fails", "look 2 finds what was before"]


def test_the_next_step_is_never_early_before_what_this_one_says_is_published() -> None:
    before, published = point(Where.COMMIT, 1), point(Where.COMMIT, 2, what="Publish")
    last = point(Where.COMMIT, 3, step=1)
    found = planned(before, published, last)
    assert [name for name in found if "next step" in name] == ["next step at commit 2"]


# --- which are left out -------------------------------------------------------------------


def left(*plans: FaultPlan, points: tuple[Point, ...]) -> tuple[FaultPlan, ...]:
    return prune(plans, reference(*points)).played


def test_of_crashes_that_leave_the_same_state_one_is_played() -> None:
    after = FaultPlan(Fault.CRASH_AFTER, Where.COMMIT, 1)
    before = FaultPlan(Fault.CRASH_BEFORE, Where.COMMIT, 2)
    one = point(Where.COMMIT, 1, after=Digest("t"))
    assert left(after, before, points=(one, point(Where.COMMIT, 2, "t"))) == (after,)
    assert left(after, before, points=(one, point(Where.COMMIT, 2, "t", step=1))) == (after, before)


def test_a_replacement_is_not_the_same_while_more_pushes_are_under_way() -> None:
    plans = tuple(FaultPlan(Fault.HELD, Where.COMMIT, number) for number in (1, 2, 3))
    points = (point(Where.COMMIT, 1), point(Where.COMMIT, 2), point(Where.COMMIT, 3, busy=1))
    assert left(*plans, points=points) == (plans[0], plans[2])


def test_stale_reads_are_left_out_only_where_nothing_was_written_meanwhile() -> None:
    plan = FaultPlan(Fault.STALE, Where.COMMIT, 3, since=2)
    one, three = point(Where.COMMIT, 1, moves=True), point(Where.COMMIT, 3)
    assert left(plan, points=(one, point(Where.COMMIT, 2), three)) == ()
    assert left(plan, points=(one, point(Where.COMMIT, 2, moves=True), three)) == (plan,)


def test_an_event_may_only_be_lost_for_nothing_where_another_wakes_the_same_assets_then() -> None:
    plan = FaultPlan(Fault.LOST, Where.EVENT, 1)
    lost = point(Where.EVENT, 1, at=1.0, ids=("a",))
    assert left(plan, points=(lost, point(Where.EVENT, 2, at=1.0, ids=("a", "b")))) == ()
    assert left(plan, points=(lost, point(Where.EVENT, 2, at=1.0, ids=("b",)))) == (plan,)
    assert left(plan, points=(lost, point(Where.EVENT, 2, at=2.0, ids=("a",)))) == (plan,)


@pytest.mark.parametrize("divisible", [True, False])
def test_what_has_one_part_cannot_be_applied_in_part(divisible: bool) -> None:
    plan = FaultPlan(Fault.PARTIAL, Where.PUSH, 1)
    write = point(Where.WRITE, 1, at=2.0, ids=("a",), divisible=divisible)
    played = left(plan, points=(point(Where.PUSH, 1, ids=("a",)), write))
    assert bool(played) == divisible


def test_states_that_faults_strike_in_are_counted_once() -> None:
    plans = (
        FaultPlan(Fault.FAIL, Where.PUSH, 1),
        FaultPlan(Fault.HANG, Where.PUSH, 1),
        FaultPlan(Fault.FAIL, Where.PUSH, 2),
    )
    points = (point(Where.PUSH, 1, "s"), point(Where.PUSH, 2, "t"))
    assert prune(plans, reference(*points)).states == 2


# --- what must be equal -------------------------------------------------------------------


def test_creates_updates_and_removes_are_told_apart() -> None:
    assert summary({"a": (1, 2, None, 3)}) == {"a": {"created": 2, "updated": 1, "removed": 1}}


def test_one_update_more_is_an_alarm_and_so_is_another_value() -> None:
    assert differences({"a": (1, 2)}, {"a": (1, 2)}) == []
    assert "updated 2x" in differences({"a": (1, 2)}, {"a": (1, 3, 2)})[0]
    assert "other values" in differences({"a": (1, 2, 3)}, {"a": (1, 4, 3)})[0]
    assert "never touched" in differences({"a": (1,)}, {})[0]
    assert "nothing" in differences({}, {"b": (1,)})[0]


def test_a_shortened_way_leaves_values_out_and_brings_none_in() -> None:
    assert strays({"a": (1, 2, 3)}, {"a": (1, 3)}) == []
    assert strays({"a": (1, 2, 3)}, {"a": (3, 1)})
    assert strays({"a": (1, 2)}, {"a": (1, 4)})
    assert strays({}, {"b": (1,)})


def test_every_part_of_a_state_is_compared() -> None:
    assert unlike(REST, REST, {}) == []
    others = (
        Rest({"a": 2}, REST.ledger, REST.conditions, REST.incarnation),
        Rest(REST.production, {}, REST.conditions, REST.incarnation),
        Rest(REST.production, REST.ledger, {"a": ("Waiting", Reason.FROZEN)}, REST.incarnation),
        Rest(REST.production, REST.ledger, REST.conditions, "another"),
        Rest(REST.production, REST.ledger, REST.conditions, REST.incarnation, ("a",)),
    )
    for other in others:
        assert len(unlike(REST, other, {})) == 1


# --- damage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.TRUNCATED, {**FILES, "a.yaml": b"id"}),
        (Fault.BLANK, {**FILES, "a.yaml": b""}),
        (Fault.REPEATED, {**FILES, "a.yaml": b"id: aid: a"}),
        (Fault.HALVED, {name: FILES[name] for name in ("lehr.yaml", "a.yaml", "b.yaml")}),
        (Fault.EMPTIED, {"lehr.yaml": FILES["lehr.yaml"]}),
    ],
)
def test_damage_is_to_one_read_and_leaves_the_source_as_it_is(
    fault: Fault, expected: dict[str, bytes]
) -> None:
    before = dict(FILES)
    assert damaged(FILES, FaultPlan(fault, Where.READ, 1, path="a.yaml")) == expected
    assert before == FILES


@pytest.mark.parametrize("fencing", Fencing)
def test_two_control_planes_at_once_need_native_fencing(fencing: Fencing) -> None:
    plans = [FaultPlan(fault, Where.COMMIT, 1) for fault in (Fault.SECOND, Fault.HELD, Fault.CRASH_AFTER)]
    found = prune(plans, replace(reference(point(Where.COMMIT, 1)), fencing=fencing))
    left = {plan.fault for plan in found.played}
    assert left == ({plan.fault for plan in plans} if fencing is Fencing.NATIVE else {Fault.CRASH_AFTER})

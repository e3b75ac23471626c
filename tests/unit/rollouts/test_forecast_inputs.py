"""The inputs of a forecast follow from how members are and from what was recorded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.diff import Goal
from lehr.model.evidence import (
    Begun,
    Commanded,
    Evidence,
    Fact,
    Looked,
    Moments,
    RolloutCommand,
    UnitLook,
    Updated,
    Validated,
    WentBack,
)
from lehr.model.operation import Operation, Result
from lehr.model.selector import Selector
from lehr.rollouts import TargetSelection, Wave
from lehr.rollouts.comparison import Comparison, compared, kept
from lehr.rollouts.course import Rollout, folded
from lehr.rollouts.forecast import Forecast, forecast
from lehr.rollouts.forecast_inputs import Known, as_if_begun, as_if_changed, inputs_of
from lehr.rollouts.members import Member
from lehr.rollouts.policy import RolloutPolicy
from lehr.rollouts.validation_samples import validated_in, validation_samples

SHOP, NOW = Partition("shop"), 1000.0
OLD, NEW = Digest("old"), Digest("new")
POLICY = RolloutPolicy(
    select=Selector(all=True),
    target_selection=TargetSelection(waves=(Wave(units=1, soak_seconds=60.0), Wave())),
)


class Times:
    """A calendar."""

    def __init__(self, id: str, select: Selector, closed: list[tuple[float, float]] | None) -> None:
        self.id = AssetId(id)
        self.select = select
        self.asked = 0
        self._closed = closed

    def closed(self, _start: float, _end: float) -> list[tuple[float, float]] | None:
        self.asked += 1
        return self._closed


def member(id: str, *, has: Digest = OLD, **fields: Any) -> Member:
    known = {"newest": NEW, "target": NEW, "released": has, "released_at": 1, "applied": has, "good": True}
    return Member(id=AssetId(id), **{"unit": id, **known, **fields})


def evidence(*facts: tuple[float, Fact]) -> list[Evidence]:
    return [
        Evidence(number=n, partition=SHOP, policy=AssetId("waves"), rollout="r1", at=at, fact=fact)
        for n, (at, fact) in enumerate(facts, start=1)
    ]


BEGUN = ((900.0, Begun(2)), (901.0, Updated(("a",), {AssetId("a"): 1})))


def rollout(*facts: tuple[float, Fact]) -> Rollout:
    last = folded(evidence(*BEGUN, *facts)).last
    assert last is not None
    return last


def asset(id: AssetId) -> Asset:
    return make_asset(id, "lehr.File", {}, {})


def push(asset: str, ended_at: float, took: float = 10.0) -> Operation:
    return Operation(
        "o",
        SHOP,
        AssetId(asset),
        "lehr.File",
        Goal.PRESENT,
        2,
        2,
        Digest("c"),
        Digest("d"),
        1,
        ended_at - took,
        ended_at,
        Result.DONE,
    )


KNOWN = Known([push("a", 400.0)], [], [])


def made(under_way: Rollout, *members: Member, known: Known = KNOWN, **more: Any) -> Forecast:
    inputs = inputs_of(POLICY, under_way, members, asset, known, NOW, **more)
    return forecast(replace(inputs, validations=[5.0]))


def since(found: Moments) -> float | None:
    assert found.early == found.late
    return None if found.early is None else found.early - NOW


def test_a_unit_that_is_still_pushed_has_the_rest_of_its_push_ahead() -> None:
    one, _ = made(rollout(), member("a", has=NEW, applied=OLD), member("b")).units
    assert since(one.updated) == 0, "it should have ended 89 s ago: it may end at any moment"
    late = replace(rollout(), updated={"a": NOW - 4})
    one, other = made(late, member("a", has=NEW, applied=OLD), member("b")).units
    assert (since(one.updated), since(one.validated)) == (6, 11)
    assert since(other.updated) == 11 + 60 + 10


def test_a_unit_that_has_the_content_had_it_since_its_push() -> None:
    there = member("a", has=NEW, applied_since=950.0)
    assert since(made(rollout(), there, member("b")).units[0].updated) == -50
    proven = rollout((940.0, Validated(("a",))))
    assert since(made(proven, there, member("b")).units[0].updated) == -60, "a repair came later"
    before = member("a", has=NEW, applied_since=100.0)
    assert since(made(rollout(), before, member("b")).units[0].updated) == -99, "it was released then"


def test_time_since_the_last_good_look_is_exposure() -> None:
    there = member("a", has=NEW, applied_since=950.0)
    looked = ((980.0, Validated(("a",))), (985.0, Looked({"a": UnitLook(True, 20.0)})))
    assert since(made(rollout(*looked), there, member("b")).waves[0].ends) == 60 - 20 - 15
    long_ago = ((900.0, Looked({"a": UnitLook(True, 20.0)})), (900.0, Validated(("a",))))
    assert since(made(rollout(*long_ago), there, member("b")).waves[0].ends) == 60 - 20 - 20, (
        "two looks at most"
    )
    bad = (*looked, (990.0, Looked({"a": UnitLook(False, 20.0)})))
    assert since(made(rollout(*bad), there, member("b")).waves[0].ends) == 60 - 20


def test_units_that_went_back_or_have_nothing_to_get_take_no_part() -> None:
    gone = rollout((950.0, WentBack(("a",), "it was reverted")))
    found = made(gone, member("a"), member("b"), member("c", newest=OLD, target=OLD))
    assert [unit.id for unit in found.units] == ["b"]


def test_only_calendars_that_hold_pushes_of_units_are_asked() -> None:
    one, other = (
        Times("one", Selector(ids=("b",)), [(0.0, NOW + 500)]),
        Times("other", Selector(ids=("x",)), None),
    )
    found = made(
        rollout(),
        member("a", has=NEW, applied_since=990.0),
        member("b"),
        known=replace(KNOWN, calendars=[one, other]),
    )
    assert since(found.units[1].updated) == 510
    assert (one.asked, other.asked) == (1, 0)
    assert not any("cannot be read" in item for item in found.assumptions)


def test_an_overridden_calendar_holds_no_unit() -> None:
    closed = Times("x", Selector(all=True), [(0.0, NOW + 500)])
    known = Known([push("a", 400.0)], [], [closed], overridden=lambda item, asset: asset.id == "a")
    under_way, members = as_if_begun([member("a"), member("b")], 2, NOW)
    one, other = made(under_way, *members, known=known).units
    assert (since(one.updated), since(other.updated)) == (10, 510)


def test_closed_times_do_not_pause_a_soak() -> None:
    closed = Times("x", Selector(all=True), [(NOW + 12, NOW + 40)])
    under_way, members = as_if_begun([member("a"), member("b")], 2, NOW)
    found = made(under_way, *members, known=replace(KNOWN, calendars=[closed]))
    assert since(found.waves[0].ends) == 10 + 5 + 60


def test_a_hold_makes_what_waits_unknown_and_names_itself() -> None:
    found = made(
        rollout(), member("a", has=NEW, applied_since=990.0), member("b"), hold="a person: paused by ana"
    )
    assert since(found.units[0].validated) == 0
    assert found.units[1].updated == found.waves[1].starts == found.ends == Moments()
    assert found.waves[1].unknown == "a person: paused by ana"


def test_at_rest_it_is_of_a_rollout_that_would_begin() -> None:
    at_rest = [member("a", newest=OLD, target=None), member("b", target=None)]
    under_way, members = as_if_begun(at_rest, 7, NOW)
    assert under_way.target == 7
    assert [unit.id for unit in made(under_way, *members).units] == ["b"]
    under_way, members = as_if_begun(as_if_changed(at_rest), 7, NOW)
    found = made(under_way, *members)
    assert [unit.id for unit in found.units] == ["a", "b"]
    assert since(found.units[0].updated) == 10


def test_units_that_run_are_not_new_because_all_are_forecast() -> None:
    idle = [Member(id=AssetId(id), unit=id, newest=NEW, released=NEW) for id in ("a", "b")]
    under_way, members = as_if_begun(as_if_changed(idle), 7, NOW)
    inputs = inputs_of(POLICY, under_way, members, asset, KNOWN, NOW)
    assert not any(work.unit.new for work in inputs.works)


def test_a_check_of_time_can_end_it() -> None:
    def check_time() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        inputs_of(POLICY, rollout(), [member("a")], asset, KNOWN, NOW, check_time=check_time)
    inputs = inputs_of(POLICY, rollout(), [member("a")], asset, KNOWN, NOW)
    with pytest.raises(TimeoutError):
        forecast(inputs, check_time)


# --- samples of validations -------------------------------------------------------------------


def test_validations_are_measured_from_the_end_of_the_last_push_of_the_unit() -> None:
    found = validated_in(evidence(*BEGUN, (960.0, Validated(("a",)))))
    assert [item.validated_at - item.updated_at for item in found] == [59.0]
    pushes = [push("a", 910.0), push("a2", 920.0), push("a", 970.0), push("b", 950.0), push("a", 890.0)]
    assert validation_samples(found, pushes, {AssetId("a"): "a", AssetId("a2"): "a"}) == [40.0]
    assert validation_samples(found, [], {AssetId("a"): "a"}) == []


def test_what_a_person_declared_good_is_no_sample() -> None:
    promoted = (950.0, Commanded(RolloutCommand.PROMOTE, "ana", "fine"))
    assert validated_in(evidence(*BEGUN, promoted, (960.0, Validated(("a",))))) == []


# --- what happened next to what was expected --------------------------------------------------


def forecast_of_three() -> Forecast:
    under_way, members = as_if_begun([member("a"), member("b"), member("c")], 2, 900.0)
    inputs = inputs_of(POLICY, under_way, members, asset, KNOWN, 900.0)
    return forecast(replace(inputs, validations=[5.4]))


def rows(found: Comparison | None) -> list[tuple[Any, ...]]:
    assert found is not None
    return [(item.unit or item.wave, item.updated, item.validated) for item in found.rows]


def test_a_rollout_is_shown_next_to_its_forecast() -> None:
    fact = kept(forecast_of_three())
    assert (fact.ends, fact.unknown) == (Moments(991.0, 991.0), ""), "whole seconds"
    members = [member("a", has=NEW, applied_since=912.0), member("b", has=NEW, applied=OLD), member("c")]
    under_way = rollout(
        (901.0, fact),
        (920.0, Validated(("a",))),
        (980.0, Updated(("b", "c"), {AssetId("b"): 1, AssetId("c"): 1})),
    )
    found = compared(under_way, members)
    assert rows(found) == [
        (1, 912.0, 920.0),
        ("a", 912.0, 920.0),
        (2, None, None),
        ("b", None, None),
        ("c", None, None),
    ]
    assert found is not None
    assert found.rows[1].expected_updated == Moments(910.0, 910.0)
    members = [member(id, has=NEW, applied_since=at) for id, at in (("a", 912.0), ("b", 985.0), ("c", 990.0))]
    done = replace(under_way, validated={"a": 920.0, "b": 995.0, "c": 996.0})
    assert rows(compared(done, members)) == [
        (1, 912.0, 920.0),
        ("a", 912.0, 920.0),
        (2, 990.0, 996.0),
        ("b", 985.0, 995.0),
        ("c", 990.0, 996.0),
    ]


def test_a_rollout_without_a_forecast_has_none() -> None:
    assert compared(rollout(), [member("a", has=NEW)]) is None


def test_of_a_large_rollout_only_waves_are_kept() -> None:
    many = [member(f"u{number:04}") for number in range(1000)]
    under_way, members = as_if_begun(many, 2, NOW)
    inputs = inputs_of(POLICY, under_way, members, asset, KNOWN, NOW)
    fact = kept(forecast(replace(inputs, validations=[5.0])))
    assert ([wave.units for wave in fact.waves], fact.units) == ([1, 999], {})
    few = kept(forecast(replace(inputs, works=inputs.works[:50], validations=[5.0])))
    assert len(few.units) == 50


def test_what_is_unknown_stays_unknown() -> None:
    inputs = inputs_of(POLICY, *as_if_begun([member("a")], 2, NOW), asset, KNOWN, NOW)
    fact = kept(forecast(inputs))
    assert (fact.ends, fact.unknown) == (Moments(), "no validation was recorded")

"""Fault plans of the examples: whatever strikes, the end is the same, and so is the way to it.

These are samples; `lehr sim plans` plays all of them.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from lehr.enforce import in_force, step
from lehr.enforce.committer import Committer
from lehr.enforce.state import State, StatusReported
from lehr.enforce.step import StepResult
from lehr.enforce.step.unknown_outcome import status_reported
from lehr.model import admission
from lehr.model.operation import Progress
from lehr.publish import publisher
from lehr.query.arrivals import Arrivals
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.plans.campaign import Campaign, campaign, judge, judge_all
from lehr.testing.sim.plans.plan import Fault, FaultPlan
from lehr.validate import Judgement

SEED = 20_221


@functools.cache
def planned(scenario: str) -> Campaign:
    return campaign(scenario)


def sample(plans: tuple[FaultPlan, ...], count: int) -> list[FaultPlan]:
    dice, left = Dice(SEED), list(plans)
    chosen: list[FaultPlan] = []
    while left and len(chosen) < count:
        chosen.append(left.pop(dice.number(0, len(left) - 1)))
    return chosen


def alarms(campaign: Campaign, plans: list[FaultPlan]) -> dict[str, tuple[str, ...]]:
    return {item.plan.name: item.alarms for item in judge_all(campaign, plans, jobs=1) if item.alarms}


@pytest.mark.parametrize(("scenario", "count"), [("hello", 60), ("shakespeare", 20)])
def test_no_fault_changes_the_end_or_the_way_to_it(scenario: str, count: int) -> None:
    found = planned(scenario)
    assert not alarms(found, sample(found.plans.played, count))


def test_the_plans_strike_with_every_fault() -> None:
    assert {plan.fault for plan in planned("shakespeare").plans.played} == set(Fault)


def test_names_are_unique_so_that_a_name_replays_one_plan() -> None:
    for scenario in ("hello", "shakespeare"):
        found = planned(scenario)
        plans = [*found.plans.played, *(plan for plan, _reason in found.plans.pruned)]
        assert len({plan.name for plan in plans}) == len(plans)
        assert all(found.selected(plan.name) == [plan] for plan in sample(tuple(plans), 20))


@pytest.mark.parametrize("scenario", ["hello", "shakespeare"])
def test_what_is_pruned_ends_like_the_reference(scenario: str) -> None:
    found = planned(scenario)
    reasons: dict[str, list[FaultPlan]] = {}
    for plan, reason in found.plans.pruned:
        reasons.setdefault(reason, []).append(plan)
    for plans in reasons.values():
        assert not alarms(found, sample(tuple(plans), 4))


def test_the_reference_is_the_same_whenever_it_is_played() -> None:
    assert campaign("hello") == planned("hello")


async def _for_ever(arrivals: Arrivals) -> None:
    await asyncio.Event().wait()


def _ended(state: State, event: StatusReported) -> StepResult:
    return status_reported(state, StatusReported(Progress.ENDED))


PLANTED: dict[str, tuple[Any, str, Any, Fault]] = {
    "work left open is not taken up": (in_force, "recover", lambda *args: [], Fault.CRASH_AFTER),
    "who has lost the lease goes on": (Committer, "under", lambda *args: None, Fault.HELD),
    "what was not told is not found": (Arrivals, "_look", _for_ever, Fault.LOST),
    "unknown is taken for ended": (step, "STEPS", {**step.STEPS, StatusReported: _ended}, Fault.DETACHED),
    "admission asks nothing again": (admission, "_changed_basis", lambda *args: None, Fault.EARLY),
    "what disappears goes": (publisher, "judge", lambda proposal: Judgement([], ()), Fault.EMPTIED),
}
"""Planted bugs: where, what stands there instead, and the fault that must bring it to light."""


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, instead, fault = PLANTED[bug]
    hello = planned("hello")
    plans = [plan for plan in hello.plans.played if plan.fault is fault]
    monkeypatch.setattr(place, name, instead)
    assert any(judge(hello, plan).alarms for plan in plans)

"""Rollouts in figures: the state is that of `lehr rollout show`, and units are counted once."""

from __future__ import annotations

import pytest

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Fact,
    Failed,
    Looked,
    RolloutCommand,
    RolloutEnd,
    UnitLook,
    Updated,
    Validated,
    WentBack,
)
from lehr.model.selector import Selector
from lehr.rollouts.course import Course, after
from lehr.rollouts.figures import RolloutFigures, RolloutState, figures_of
from lehr.rollouts.members import Member
from lehr.rollouts.plan import plan
from lehr.rollouts.policy import Policy, RolloutPolicy
from lehr.rollouts.status import status_of
from tests.unit.rollouts.test_status import BEGUN, NEW, OLD, POLICY, WAVES, member

MEMBERS = (member("a", has=NEW), member("b"), member("c"))
BAD = Looked({"a": UnitLook(False, 0.0, 5.0, 3, "it is down")})
HOLD = RolloutPolicy(select=Selector(all=True), target_selection=WAVES, on_failure="hold")


def course_of(*facts: Fact) -> Course:
    course = Course()
    for number, fact in enumerate(facts, start=1):
        course = after(course, "r1", fact, float(number))
    return course


def figures(*facts: Fact, members: tuple[Member, ...] = MEMBERS) -> RolloutFigures:
    course = course_of(*facts)
    step = plan(HOLD, course, members, 2, 100.0, since_look=0.0, new_id="")
    found = figures_of(POLICY, course, members, step)
    assert found.state is status_of(Policy(POLICY, HOLD), course, members, 2, 100.0).state
    return found


def counts(found: RolloutFigures) -> tuple[int, int, int, int]:
    return found.waiting, found.updated, found.validated, found.failed


def test_units_are_counted_by_how_far_they_are() -> None:
    found = figures(*BEGUN)
    assert (found.state, found.begun_at, counts(found)) == (RolloutState.RUNNING, 1.0, (2, 1, 0, 0))
    assert counts(figures(*BEGUN, Validated(("a",)))) == (2, 0, 1, 0)


def test_a_failure_is_counted_and_holds() -> None:
    bad = (member("a", has=NEW, good=False, why="it is down"), *MEMBERS[1:])
    found = figures(*BEGUN, BAD, Failed("a", "it is down"), members=bad)
    assert (found.state, counts(found)) == (RolloutState.HOLDING, (2, 0, 0, 1))
    back = figures(*BEGUN, WentBack(("a",), "it was reverted"), members=MEMBERS)
    assert counts(back) == (2, 0, 0, 1)


@pytest.mark.parametrize(
    ("command", "state"),
    [(RolloutCommand.PAUSE, RolloutState.PAUSED), (RolloutCommand.ABORT, RolloutState.RUNNING)],
)
def test_a_command_of_a_person_is_the_state(command: RolloutCommand, state: RolloutState) -> None:
    found = figures(*BEGUN, Commanded(command, "ana", "lunch"))
    assert (found.state, counts(found)) == (state, (2, 1, 0, 0))


def test_without_a_rollout_there_are_no_units() -> None:
    settled = (member("a", has=NEW), member("b", has=NEW))
    found = figures(Begun(2), Ended(RolloutEnd.COMPLETED), members=settled)
    assert found == RolloutFigures(policy=POLICY, state=RolloutState.IDLE)
    failed = Ended(RolloutEnd.FAILED, "a: it is down", {AssetId(id): NEW for id in ("a", "b", "c")})
    members = tuple(member(id, has=OLD) for id in ("a", "b", "c"))
    assert figures(Begun(2), failed, members=members).state is RolloutState.BLOCKED
    other = Ended(RolloutEnd.FAILED, "a: it is down", {AssetId("a"): Digest("older")})
    assert figures(Begun(2), Updated(("a",), {}), other, members=members).state is RolloutState.IDLE

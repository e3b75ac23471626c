"""An emergency sends one incarnation out faster, once, and until its time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lehr.model.asset import AssetId
from lehr.model.evidence import Begun, Commanded, Ended, Failed, RolloutCommand, RolloutEnd
from lehr.rollouts.course import Course, after
from lehr.rollouts.emergency import in_effect
from lehr.rollouts.policy import Emergency, Policy, RolloutPolicy, SelectedBy
from lehr.rollouts.status import status_of
from lehr.rollouts.waves import TargetSelection, Wave
from tests.unit.rollouts.test_plan import (
    BEGUN,
    CANARY,
    NEW,
    NEWER,
    canary,
    course_of,
    member,
    policy,
    step,
    waiting,
)

A, B = AssetId("a"), AssetId("b")
URGENT = policy(emergency=Emergency(2, "it leaks", datetime.fromtimestamp(500, UTC)))
UNDER_WAY = course_of(Begun(2, "it leaks"))


def test_it_begins_with_its_reason_and_updates_all_at_once() -> None:
    assert step(Course(), member("a"), rules=URGENT).facts == (Begun(2, "it leaks"),)
    found = step(UNDER_WAY, waiting("a"), waiting("b"), rules=URGENT)
    assert [grant.asset for grant in found.grants] == [A, B]


def test_it_takes_the_place_of_the_rollout_under_way_even_to_the_same_target() -> None:
    for course in (canary(), course_of(Begun(1)), canary(Failed("a", "no"))):
        [*_, last] = step(course, waiting("a"), waiting("b"), rules=URGENT).facts
        assert last == Ended(RolloutEnd.SUPERSEDED, "emergency: it leaks")


def test_one_for_another_incarnation_takes_its_place_for_the_same_reason_as_well() -> None:
    corrected = policy(emergency=Emergency(3, "it leaks", datetime.fromtimestamp(500, UTC)))
    [ended] = step(UNDER_WAY, waiting("a"), waiting("b"), rules=corrected, newest=3).facts
    assert ended == Ended(RolloutEnd.SUPERSEDED, "emergency: it leaks")


def test_newer_content_waits_until_it_is_over() -> None:
    held = waiting("a", newest=NEWER, held="pinned by ana: why")
    assert not step(UNDER_WAY, held, rules=URGENT, newest=3).writes
    [ended] = step(BEGUN, held, newest=3).facts
    assert isinstance(ended, Ended), "without it, a rollout that has updated nothing gives way"


def test_what_failed_before_may_be_sent_out() -> None:
    failed = course_of(Begun(2), Ended(RolloutEnd.FAILED, "a: no", {A: NEW}))
    assert not step(failed, member("a")).writes
    assert step(failed, member("a"), rules=URGENT).facts == (Begun(2, "it leaks"),)


@pytest.mark.parametrize("how", list(RolloutEnd))
def test_it_counts_once_however_it_ended(how: RolloutEnd) -> None:
    course = after(UNDER_WAY, "r1", Ended(how), 91.0)
    assert in_effect(URGENT, course, 2, 100.0) is URGENT
    again = policy(emergency=Emergency(2, "it still leaks", datetime.fromtimestamp(500, UTC)))
    assert in_effect(again, course, 2, 100.0) is not again


def test_after_its_time_the_policy_applies_as_usual() -> None:
    assert step(Course(), member("a"), rules=URGENT, now=500.0).facts == (Begun(2),)
    found = step(UNDER_WAY, waiting("a"), waiting("b"), rules=URGENT, now=500.0)
    assert [grant.asset for grant in found.grants] == [A], "the first wave has one unit"


def test_one_for_an_incarnation_that_is_not_there_yet_has_no_effect() -> None:
    assert in_effect(URGENT, Course(), 1, 100.0) is URGENT


def test_commands_of_people_come_first() -> None:
    aborted = after(UNDER_WAY, "r1", Commanded(RolloutCommand.ABORT, "ana", "no"), 91.0)
    [ended] = step(aborted, waiting("a"), rules=URGENT).facts
    assert isinstance(ended, Ended)
    assert ended.how is RolloutEnd.ABORTED


def test_a_selection_of_a_user_is_not_asked() -> None:
    rules: Any = RolloutPolicy(URGENT.select, selected_by=SelectedBy("mine"), emergency=URGENT.emergency)
    found = step(UNDER_WAY, waiting("a"), rules=rules)
    assert found.question is None
    assert [grant.asset for grant in found.grants] == [A]


def test_show_names_the_reason_and_counts_its_own_waves() -> None:
    waves = TargetSelection((*CANARY.waves, Wave()))
    rules = policy(waves, emergency=URGENT.emergency)
    found = status_of(Policy(AssetId("p"), rules), UNDER_WAY, [waiting("a")], 2, 100.0)
    assert (found.waves, found.notes) == (1, ("emergency: it leaks",))


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="append Z"):
        Emergency(2, "it leaks", datetime.fromtimestamp(500, UTC).replace(tzinfo=None))


def test_an_emergency_without_a_reason_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"target": 2, "reason": "", "until": "2026-01-31T12:00:00Z"}, Emergency)

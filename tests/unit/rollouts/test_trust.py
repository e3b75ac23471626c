"""Content that passed on the same assets shortly before needs no soak, and no other does."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.evidence import Begun, Commanded, Ended, RolloutCommand, RolloutEnd, Updated, Validated
from lehr.rollouts.course import Course, after
from lehr.rollouts.waves import TargetSelection, Wave
from tests.unit.rollouts.test_plan import NEW, NEWER, OLD, course_of, policy, step, updated, waiting

A, B = AssetId("a"), AssetId("b")
TRUSTING = policy(trust_for=100.0)


def passed(keys: dict[AssetId, Digest], at: float = 50.0) -> Course:
    """A course whose first rollout gave these contents to assets, and has ended."""
    return course_of(Begun(1), Ended(RolloutEnd.COMPLETED, "", passed=keys), at=at)


def under_way(course: Course, *facts: Any, begun_at: float = 90.0) -> Course:
    for fact in (Begun(2), Updated(("a",), {A: 1}, 1), Validated(("a",)), *facts):
        course = after(course, "r2", fact, begun_at)
    return course


def follow(course: Course, rules: Any = TRUSTING) -> bool:
    """Whether the second wave begins at once."""
    found = step(course, updated("a"), waiting("b"), rules=rules, since_look=0.0)
    return [grant.asset for grant in found.grants] == [B]


def test_what_passed_before_needs_no_soak() -> None:
    assert follow(under_way(passed({A: NEW})))


@pytest.mark.parametrize(
    "course",
    [
        under_way(Course()),
        under_way(passed({A: OLD})),
        under_way(passed({B: NEW})),
        under_way(passed({A: NEW}, at=50.0), begun_at=151.0),
        under_way(passed({A: NEW}, at=95.0), begun_at=90.0),
    ],
    ids=["nothing passed", "other content", "another asset", "too long ago", "after the clock was set back"],
)
def test_all_else_soaks(course: Course) -> None:
    assert not follow(course)


def test_without_trust_everything_soaks() -> None:
    assert not follow(under_way(passed({A: NEW})), policy())


def test_content_that_also_failed_is_not_trusted() -> None:
    failed = Ended(RolloutEnd.FAILED, "a: no", {A: NEW})
    course = after(after(passed({A: NEW}), "r3", Begun(1), 60.0), "r3", failed, 60.0)
    assert not follow(under_way(course))


def test_all_assets_of_a_unit_must_have_passed() -> None:
    both = Updated(("u",), {A: 1, B: 1}, 1)
    for keys, trusted in (({A: NEW, B: NEW}, True), ({A: NEW}, False)):
        course = passed(keys)
        for fact in (Begun(2), both, Validated(("u",))):
            course = after(course, "r2", fact, 90.0)
        members = updated("a", unit="u"), updated("b", unit="u"), waiting("c")
        found = step(course, *members, rules=TRUSTING, since_look=0.0)
        assert bool(found.grants) is trusted
        assert found.needs_no_soak == ({"u"} if trusted else set())


@pytest.mark.parametrize(("trust_for", "expected"), [(100.0, {A: NEW}), (0.0, {})])
def test_a_rollout_records_what_passed_if_the_policy_trusts_it(
    trust_for: float, expected: dict[AssetId, Digest]
) -> None:
    rules = policy(TargetSelection((Wave(),)), trust_for=trust_for)
    course = course_of(Begun(2), Updated(("a",), {A: 1}, 1), Validated(("a",)))
    ended = step(course, updated("a"), rules=rules, since_look=0.0).facts[-1]
    assert isinstance(ended, Ended)
    assert (ended.how, ended.passed) == (RolloutEnd.COMPLETED, expected)


def test_content_that_a_person_vouched_for_has_not_passed() -> None:
    rules = policy(TargetSelection((Wave(),)), trust_for=100.0)
    promoted = Commanded(RolloutCommand.PROMOTE, "ana", "why")
    course = course_of(Begun(2), Updated(("a",), {A: 1}, 1), promoted)
    ended = step(course, updated("a"), rules=rules, since_look=0.0).facts[-1]
    assert isinstance(ended, Ended)
    assert (ended.how, ended.passed) == (RolloutEnd.COMPLETED, {})


def test_the_last_few_contents_of_an_asset_are_remembered() -> None:
    course = Course()
    for number in range(30):
        key = Digest(f"{number:064x}")
        course = after(course, f"r{number}", Begun(number), number)
        course = after(course, f"r{number}", Ended(RolloutEnd.COMPLETED, "", passed={A: key}), number)
    assert len(course.passed[A]) == 10
    assert course.trusts(A, Digest(f"{29:064x}"), 10.0, 30.0)
    assert not course.trusts(A, NEWER, 10.0, 30.0)

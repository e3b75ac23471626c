"""Rollouts that have ended, from their evidence. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lehr.base.moments import Moment
from lehr.model.evidence import Evidence, Moments
from lehr.rollouts.course import Course, Rollout, after


class PastRollout(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout that has ended.

    Attributes:
        units: those that got its content.
        expected_end: as it was forecast; None if it was not.
    """

    id: str
    target: int
    begun_at: Moment
    ended_at: Moment | None
    how: str
    why: str
    units: tuple[str, ...]
    expected_end: Moments | None = None


def past_rollouts(evidence: Sequence[Evidence]) -> tuple[PastRollout, ...]:
    """The rollouts of one policy that have ended, newest first."""
    found: dict[str, Rollout] = {}
    course = Course()
    for item in evidence:
        course = after(course, item.rollout, item.fact, item.at)
        if course.last is not None and course.last.ended is not None:
            found[course.last.id] = course.last
    return tuple(_past(item) for item in reversed(found.values()))


def _past(item: Rollout) -> PastRollout:
    assert item.ended is not None
    return PastRollout(
        id=item.id,
        target=item.target,
        begun_at=item.begun_at,
        ended_at=item.ended_at,
        how=str(item.ended.how),
        why=item.ended.why,
        units=tuple(item.updated),
        expected_end=None if item.forecast is None else item.forecast.ends,
    )

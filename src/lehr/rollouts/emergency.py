"""Emergencies: one incarnation goes out faster than a policy usually allows. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.rollouts.course import Course
from lehr.rollouts.policy import Emergency, RolloutPolicy


def emergency_of(policy: RolloutPolicy, course: Course, newest: int, now: float) -> Emergency | None:
    """The emergency that counts now; None if there is none, it is over, or its time is.

    It is over once a rollout that it began has ended, however that was.

    Args:
        newest: sequence of the newest incarnation.
        now: wall-clock seconds.
    """
    found = policy.emergency
    if found is None or found.target > newest or now >= found.ends_at:
        return None
    over = (found.target, found.reason) in course.emergencies
    return None if over else found


def in_effect(policy: RolloutPolicy, course: Course, newest: int, now: float) -> RolloutPolicy:
    """A policy as it applies now: in an emergency, that decides which units are updated when."""
    found = emergency_of(policy, course, newest, now)
    if found is None:
        return policy
    return replace(policy, target_selection=found.target_selection, selected_by=None)

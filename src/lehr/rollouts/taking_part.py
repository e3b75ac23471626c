"""The units that take part in a rollout. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from lehr.rollouts.course import Course, Rollout
from lehr.rollouts.looking import NEVER
from lehr.rollouts.members import Member, Units, common_labels
from lehr.rollouts.observing import any_updated
from lehr.rollouts.units import Unit


def taking_part_in(
    rollout: Rollout, units: Units, now: float, trusted: Container[str] = ()
) -> dict[str, Unit]:
    """The units that have the content of a rollout, and those that are still to get it.

    Deadlines count the time for which units were watched: clocks jump, and processes stop.

    Args:
        now: wall-clock seconds.
        trusted: units that need no soak.
    """
    found = {}
    for id, members in units.items():
        updated = rollout.updated.get(id) if any_updated(rollout, members) else None
        wanted = updated is not None or any(item.wants_target for item in members)
        if id in rollout.went_back or not wanted:
            continue
        look = rollout.looks.get(id, NEVER)
        needs_no_soak = id in rollout.promoted or id in trusted or _is_adopted(rollout, members)
        since = None if updated is None else max(0.0, min(updated, now - look.watched))
        found[id] = Unit(
            id=id,
            labels=common_labels(members),
            updated_at=since,
            validated_at=rollout.validated.get(id),
            exposure_seconds=float("inf") if needs_no_soak else look.exposure,
            paused_seconds=0.0 if since is None else max(0.0, now - since - look.watched),
            held="; ".join(f"{item.id} is {item.barred}" for item in members if item.barred),
            new=all(item.applied is None for item in members),
        )
    return found


def trusted_units(trust_for: float, course: Course, units: Units) -> frozenset[str]:
    """The units whose new content passed on the same assets shortly before the rollout under way began.

    Args:
        trust_for: what is short, in seconds.
    """
    rollout = course.running
    if rollout is None or not trust_for:
        return frozenset()
    return frozenset(id for id, members in units.items() if _is_trusted(trust_for, course, rollout, members))


def _is_trusted(trust_for: float, course: Course, rollout: Rollout, members: Sequence[Member]) -> bool:
    changing = [item for item in members if item.id in rollout.before or item.wants_target]
    return bool(changing) and all(
        item.target is not None and course.trusts(item.id, item.target, trust_for, rollout.begun_at)
        for item in changing
    )


def _is_adopted(rollout: Rollout, members: Sequence[Member]) -> bool:
    """Whether production had the new content of a unit before it was released."""
    released = [item for item in members if item.id in rollout.before]
    return bool(released) and all(item.adopted for item in released)

"""The units that take part in a rollout. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.rollouts.course import Rollout
from lehr.rollouts.looking import NEVER
from lehr.rollouts.members import Member, Units, common_labels
from lehr.rollouts.observing import any_updated
from lehr.rollouts.units import Unit


def taking_part_in(rollout: Rollout, units: Units, now: float) -> dict[str, Unit]:
    """The units that have the content of a rollout, and those that are still to get it.

    Deadlines count the time for which units were watched: clocks jump, and processes stop.

    Args:
        now: wall-clock seconds.
    """
    found = {}
    for id, members in units.items():
        updated = rollout.updated.get(id) if any_updated(rollout, members) else None
        wanted = updated is not None or any(item.wants_target for item in members)
        if id in rollout.went_back or not wanted:
            continue
        look = rollout.looks.get(id, NEVER)
        needs_no_soak = id in rollout.promoted or _is_adopted(rollout, members)
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


def _is_adopted(rollout: Rollout, members: Sequence[Member]) -> bool:
    """Whether production had the new content of a unit before it was released."""
    released = [item for item in members if item.id in rollout.before]
    return bool(released) and all(item.adopted for item in released)

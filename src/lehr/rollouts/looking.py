"""How a unit is when it is looked at. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lehr.model.evidence import MetricLook, UnitLook
from lehr.rollouts.members import Member

NEVER = UnitLook(None)


def looked(
    before: UnitLook | None,
    members: Sequence[Member],
    since: float,
    longest: float,
    due: bool,
    metrics: Mapping[str, MetricLook] | None = None,
) -> UnitLook:
    """How a unit is now, after it was looked at `since` seconds ago.

    Only time between two good looks is exposure, and of that no more than `longest`. Bad looks count once for
    each regular look. Time in which a push waits for a calendar, a freeze or an alert does not bring the
    deadline closer.

    Args:
        metrics: what was found at this look; None to keep what was found before.
    """
    before = NEVER if before is None else before
    found = before.metrics if metrics is None else dict(metrics)
    good, why = state_of(members)
    if good:
        good, why = _measured(found)
    exposed = before.exposure + (min(since, longest) if good and before.good else 0.0)
    bad = 0 if good else before.bad_in_a_row + (good is False and due)
    settled = settled_for(before, members, since)
    watched = before.watched + (0.0 if any(item.waits for item in members) else since)
    return UnitLook(good, exposed, watched, bad, why, settled, found)


def settled_for(before: UnitLook | None, members: Sequence[Member], since: float) -> float | None:
    """Seconds since the pushes of a unit have ended; None while they have not."""
    there = _there(members)
    if not there or not all(item.reached and not item.busy for item in there):
        return None
    return 0.0 if before is None or before.settled is None else before.settled + since


def state_of(members: Sequence[Member]) -> tuple[bool | None, str]:
    """Whether the assets of a unit are good, and why not. None if that is not known."""
    there = _there(members)
    for item in there:
        if item.good is False:
            return False, _of(item, item.why)
    for item in there:
        if not item.reached or item.good is None:
            return None, _of(item, item.why or "the new content is not there yet")
    return (True, "") if there else (None, "it has no assets any more")


def _there(members: Sequence[Member]) -> list[Member]:
    """The members that a unit's state depends on."""
    return [item for item in members if not item.nowhere]


def _measured(metrics: Mapping[str, MetricLook]) -> tuple[bool | None, str]:
    """The same for its metrics: bad if one is, and not known if one is not."""
    for good in (False, None):
        for name, look in metrics.items():
            if look.good is good:
                return good, f"{name}: {look.why}"
    return True, ""


def _of(item: Member, what: str) -> str:
    return what if item.id == item.unit else f"{item.id}: {what}"


def is_news(before: UnitLook | None, now: UnitLook, due: bool) -> bool:
    """Whether a look has to be remembered."""
    if before is None or due:
        return True
    return before.good is not now.good or (before.settled is None) is not (now.settled is None)

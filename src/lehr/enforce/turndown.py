"""Turndown: how far an asset that should leave production may go now. Pure.

Invariant: I4. A goal other than PRESENT comes from the `lehr.Turndown` addon alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lehr.base.clock import iso
from lehr.model.addons import Turndown
from lehr.model.asset import AssetId
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry
from lehr.model.reason import Reason

_ORDER = (Goal.PRESENT, Goal.DRAINED, Goal.FENCED, Goal.ABSENT)


class Course(msgspec.Struct, frozen=True):
    """The goal of a turn of an asset with a turndown.

    Attributes:
        goal: for this turn.
        until: wall-clock seconds when a further goal comes within reach; None if not by time.
        wait_for: assets whose settling may take the obstacle away.
        held: nothing is pushed before `until`: the addon is not old enough.
        obstacle: (reason, message, unblock) that keeps it from going further; None if nothing does.
    """

    goal: Goal
    until: float | None = None
    held: bool = False
    obstacle: tuple[str, str, str] | None = None
    wait_for: tuple[AssetId, ...] = ()


class Circumstances(msgspec.Struct, frozen=True):
    """The inputs of `plan`.

    Attributes:
        since: wall-clock seconds since when published intent has the addon.
        supported: goals beyond PRESENT that the plugin understands.
        referrers: assets that refer to this one and are not removed themselves.
        ledger: how far it has come.
    """

    since: float
    supported: frozenset[Goal]
    referrers: Sequence[AssetId]
    ledger: LedgerEntry | None


def plan(addon: Turndown, found: Circumstances, now: float) -> Course:
    """The furthest goal that may be striven for at `now` (wall-clock seconds)."""
    if Goal.ABSENT not in found.supported:
        return Course(
            Goal.PRESENT,
            obstacle=(
                Reason.TURNDOWN_UNSUPPORTED,
                "its plugin cannot remove assets of this type",
                "take the turndown addon away, or let the asset go in lehr.yaml and remove it by hand",
            ),
        )
    reached = Goal.PRESENT if found.ledger is None else found.ledger.goal
    stands = found.since + addon.stand_seconds
    needed_again = bool(found.referrers) and reached is not Goal.PRESENT
    if now < stands and not needed_again:
        # Waiting neither brings back what has been taken out so far, nor takes out more of it.
        return Course(reached, until=stands, held=reached is not Goal.PRESENT)
    if found.referrers:
        names = ", ".join(found.referrers[:3])
        return Course(
            Goal.PRESENT,
            obstacle=(
                Reason.STILL_REFERENCED,
                f"still referred to by {names}",
                "they are removed first; take the references away, or turn those assets down too",
            ),
            wait_for=tuple(found.referrers),
        )
    return _stage(addon, found, reached, now)


def _stage(addon: Turndown, found: Circumstances, reached: Goal, now: float) -> Course:
    stages = [goal for goal in _ORDER if goal in found.supported]
    ahead = [goal for goal in stages if _ORDER.index(goal) > _ORDER.index(reached)]
    if not ahead:
        return Course(Goal.ABSENT)
    if reached is Goal.FENCED and found.ledger is not None:
        fenced_until = found.ledger.at + addon.fence_seconds
        if now < fenced_until:
            return Course(Goal.FENCED, until=fenced_until)
    return Course(ahead[0])


def describe(course: Course) -> str:
    """One line about when it continues; empty if that does not depend on time."""
    return "" if course.until is None else f"goes further at {iso(course.until)}"

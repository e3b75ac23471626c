"""Turndown: how far the removal of an asset from production may proceed now. Pure.

Invariant: I4. A goal other than PRESENT comes from the `lehr.Turndown` addon alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lehr.model.addons import Turndown
from lehr.model.asset import AssetId
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry
from lehr.model.reason import Reason

_ORDER = (Goal.PRESENT, Goal.DRAINED, Goal.FENCED, Goal.ABSENT)


class TurndownStage(msgspec.Struct, frozen=True, array_like=True):
    """The goal of a turn of an asset with a turndown.

    Attributes:
        goal: for this turn.
        until: wall-clock seconds when the next goal becomes possible; None if that does not depend on time.
        wait_for: assets whose settling may remove the obstacle.
        held: nothing is pushed before `until`: the addon is not old enough.
        obstacle: (reason, message, unblock) of what blocks the next goal; None if nothing does.
    """

    goal: Goal
    until: float | None = None
    held: bool = False
    obstacle: tuple[str, str, str] | None = None
    wait_for: tuple[AssetId, ...] = ()


class TurndownInputs(msgspec.Struct, frozen=True):
    """The inputs of `plan`.

    Attributes:
        since: wall-clock seconds at which published intent got the addon.
        supported: goals beyond PRESENT that the plugin understands.
        referrers: assets that refer to this one and are not removed yet.
        ledger: the goal reached so far.
    """

    since: float
    supported: frozenset[Goal]
    referrers: Sequence[AssetId]
    ledger: LedgerEntry | None


def plan(addon: Turndown, inputs: TurndownInputs, now: float) -> TurndownStage:
    """The furthest goal allowed at `now` (wall-clock seconds)."""
    if Goal.ABSENT not in inputs.supported:
        return TurndownStage(
            Goal.PRESENT,
            obstacle=(
                Reason.TURNDOWN_UNSUPPORTED,
                "its plugin cannot remove assets of this type",
                "remove the lehr.Turndown addon, or let the asset go in lehr.yaml and remove it by hand",
            ),
        )
    reached = Goal.PRESENT if inputs.ledger is None else inputs.ledger.goal
    earliest = inputs.since + addon.stand_seconds
    needed_again = bool(inputs.referrers) and reached is not Goal.PRESENT
    if now < earliest and not needed_again:
        # While it waits, nothing already removed comes back, and nothing more is removed.
        return TurndownStage(reached, until=earliest, held=reached is not Goal.PRESENT)
    if inputs.referrers:
        names = ", ".join(inputs.referrers[:3])
        return TurndownStage(
            Goal.PRESENT,
            obstacle=(
                Reason.STILL_REFERENCED,
                f"still referenced by {names}",
                "remove these references, or turn those assets down as well: they are removed first",
            ),
            wait_for=tuple(inputs.referrers),
        )
    return _next_stage(addon, inputs, reached, now)


def _next_stage(addon: Turndown, inputs: TurndownInputs, reached: Goal, now: float) -> TurndownStage:
    stages = [goal for goal in _ORDER if goal in inputs.supported]
    ahead = [goal for goal in stages if _ORDER.index(goal) > _ORDER.index(reached)]
    if not ahead:
        return TurndownStage(Goal.ABSENT)
    if reached is Goal.FENCED and inputs.ledger is not None:
        fenced_until = inputs.ledger.at + addon.fence_seconds
        if now < fenced_until:
            return TurndownStage(Goal.FENCED, until=fenced_until)
    return TurndownStage(ahead[0])

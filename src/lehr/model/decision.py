"""Decisions: why Lehr did something, or did not."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from lehr.base.digest import Digest, digest_all
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Diff, Goal
from lehr.model.monitoring import Reading
from lehr.model.reason import Reason


class Status(enum.StrEnum):
    """Status of an asset."""

    CONVERGED = "Converged"
    TURNED_DOWN = "TurnedDown"
    ORPHANED = "Orphaned"
    PUSHING = "Pushing"
    WAITING = "Waiting"
    HELD = "Held"
    RETRYING = "Retrying"
    STALLED = "Stalled"
    UNKNOWN = "Unknown"

    @property
    def settled(self) -> bool:
        """True when nothing is left to do."""
        return self in SETTLED


SETTLED = (Status.CONVERGED, Status.TURNED_DOWN, Status.ORPHANED)
"""Every status in which nothing is left to do."""

LEFT = (Status.ORPHANED, Status.TURNED_DOWN)
"""Status of an asset that is out of production, or out of Lehr's care."""


class Verdict(msgspec.Struct, frozen=True):
    """Verdict of one check.

    Attributes:
        check: name of the check, and of the asset that configures it if there is one
            (`calendar/office-hours`).
        allow: False means wait; a check never rejects.
        reason: a `Reason`, or one of the check's own, in CamelCase.
        message: one line.
        unblock: what to do, or to wait for, so that the push is allowed: an imperative, with commands in
            backticks.
        until: wall-clock seconds when the answer may change automatically; None when not known.
        wait_for: ids of assets whose convergence may change the answer.
        reservations: what admission must set aside for this push.
        overridden: id of the emergency override that let it through.
        readings: what was read of production outside of Lehr.
    """

    check: str
    allow: bool
    reason: str = Reason.ALLOWED
    message: str = ""
    unblock: str = ""
    until: Moment | None = None
    wait_for: tuple[AssetId, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    overridden: str | None = None
    readings: tuple[Reading, ...] = ()


class Reservation(msgspec.Struct, frozen=True):
    """A share of a limit: admission grants it only while the limit has room.

    Attributes:
        key: names the limit and the group (`rate/gentle/team=web`).
        limit: how many may be counted at once.
        window: seconds for which a start counts; None counts it until the operation ends.
        once: an asset counts once, however often its push is retried; only with a window.
    """

    key: str
    limit: int
    window: float | None = None
    once: bool = False


class Condition(msgspec.Struct, frozen=True):
    """The summary of an asset's last turn, one line of `lehr get assets`.

    Attributes:
        reason: a `Reason`, or one of a check's own.
        next_at: wall-clock seconds of the next turn that is already due; None when the next turn is
            that of the next event, or of the next regular turn.
        resync: seconds within which the next regular turn comes; None when nothing is left to do.
    """

    status: Status
    reason: str
    message: str = ""
    unblock: str = ""
    next_at: Moment | None = None
    resync: float | None = None

    @property
    def automatic(self) -> bool:
        """True when a turn may push automatically; False when an operator or a change must act first."""
        if self.status is Status.STALLED:
            return self.reason == Reason.DIFF_STALLED
        return self.status is not Status.HELD and self.reason not in _APPROVALS

    def key(self) -> Digest:
        """Equal for equivalent conditions: two turns that differ in it differ in verdict.

        Times do not count, and messages hold no running numbers, so that a turn that
        ends like the last is not recorded again.
        """
        return digest_all((self.status, self.reason, self.message, self.unblock))


_APPROVALS = (Reason.APPROVAL_NEEDED, Reason.APPROVAL_MISSING)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a turn whose verdict differs from the turn before.

    Attributes:
        content, governing: sequences of the incarnations read; content is 0 if there was none.
        verdicts: every check's, in order.
        awaits: assets whose outputs it needs and that are not known yet.
        turns: turns since the last decision that had ended like it.
        event: what woke the turn.
        operation: id of the push that the turn started or ended.
        evidence: plain data that the decision rested on.
    """

    partition: Partition
    asset: AssetId
    at: Moment
    content: int
    governing: int
    goal: Goal
    condition: Condition
    event: str
    diff: Diff | None = None
    verdicts: tuple[Verdict, ...] = ()
    awaits: tuple[AssetId, ...] = ()
    operation: str | None = None
    turns: int = 0
    evidence: dict[str, Any] = {}

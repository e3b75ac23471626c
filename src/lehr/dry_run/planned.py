"""The planned result of the next turn of an asset. Pure."""

from __future__ import annotations

import enum

import msgspec

from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Status, Verdict
from lehr.model.diff import Diff, Goal
from lehr.model.reason import Reason


class PlannedResult(enum.StrEnum):
    """The planned result of an asset's next turn."""

    AS_INTENDED = "as intended"
    PUSHED = "will be pushed"
    WAITS = "waits"
    APPROVAL = "needs approval"
    HELD = "held"
    ORPHANED = "orphaned"
    NOT_KNOWN = "not known"


class Planned(msgspec.Struct, frozen=True):
    """The expected result of an asset's next turn.

    Attributes:
        goal: the goal that production is compared with.
        content: sequence of the incarnation whose content the goal has; 0 if there is none.
        reason, message, unblock: as in a condition (`lehr.model.decision.Condition`).
        diff: None if its plugin could not compare, or was not asked.
        wait_for: assets whose settling may change the answer.
        verdicts: of the checks.
        purpose: of the push (`lehr.model.operation.Purpose`); empty if there would be none.
        since: the incarnation (`hello@3`) whose content was in place last; empty if none was.
    """

    id: AssetId
    type: str
    goal: Goal
    content: int
    result: PlannedResult
    reason: str
    message: str = ""
    unblock: str = ""
    diff: Diff | None = None
    wait_for: tuple[AssetId, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    purpose: str = ""
    since: str = ""


_RESULTS = {
    Status.CONVERGED: PlannedResult.AS_INTENDED,
    Status.TURNED_DOWN: PlannedResult.AS_INTENDED,
    Status.ORPHANED: PlannedResult.ORPHANED,
    Status.PUSHING: PlannedResult.PUSHED,
    Status.WAITING: PlannedResult.WAITS,
    Status.HELD: PlannedResult.HELD,
    Status.RETRYING: PlannedResult.NOT_KNOWN,
    Status.STALLED: PlannedResult.NOT_KNOWN,
    Status.UNKNOWN: PlannedResult.NOT_KNOWN,
}


_BY_REASON: dict[str, PlannedResult] = {
    Reason.APPROVAL_NEEDED: PlannedResult.APPROVAL,
    Reason.AWAITING_RELEASE: PlannedResult.HELD,
    Reason.PINNED: PlannedResult.HELD,
}
"""Results that the reason decides, whatever the status."""


def result_of(condition: Condition) -> PlannedResult:
    """The planned result for the condition in which a turn ends."""
    return _BY_REASON.get(condition.reason) or _RESULTS[condition.status]

"""Why one asset has its status: what blocks it, or how it reached its intended state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Decision, Status, Verdict
from lehr.model.diff import Diff
from lehr.model.operation import LedgerEntry, Operation
from lehr.query.asset_rows import INERT, NO_TURN, Row, known_asset, row_of
from lehr.query.partition_view import Reading

_CHAIN = 8
STORY = 8
"""Decisions of a story."""

Look = Callable[[AssetId], "tuple[Row, Decision | None] | None"]
"""The status of an asset, and its last decision; None if nothing is known of it."""


class NumberedDecision(msgspec.Struct, frozen=True):
    """A decision and its number."""

    number: int
    decision: Decision


class Link(msgspec.Struct, frozen=True):
    """One step along the chain of assets that wait for each other.

    Attributes:
        row: status of the asset that is waited for.
        cycle: True if the asset is already in the chain: the assets wait for each other forever.
    """

    row: Row
    cycle: bool = False


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer to "why?" for one asset.

    Attributes:
        row: its status, since when, and when it is retried.
        verdicts: those of every check in the last decision, waiting ones first.
        diff: the differences then; None when nothing was compared.
        chain: for an asset that waits for others, those, and those that they wait for.
        controls: those that are active on it now.
        operation: the push under way, or else the last one.
        story: the decisions that led here, newest first, back to the one before the last push.
        ledger: the state last applied to production, or found in it.
        came_with: sequence in which intent last changed it.
    """

    row: Row
    verdicts: tuple[Verdict, ...] = ()
    diff: Diff | None = None
    chain: tuple[Link, ...] = ()
    controls: tuple[Control, ...] = ()
    operation: Operation | None = None
    story: tuple[NumberedDecision, ...] = ()
    ledger: LedgerEntry | None = None
    came_with: int = 0

    @property
    def rows(self) -> tuple[Row, ...]:
        """The status of the asset, and of those along the chain."""
        return (self.row, *(link.row for link in self.chain))


def explain(reading: Reading, id: str) -> Explanation:
    """Why the asset `id` has its status.

    Raises:
        LehrError: there never was such an asset.
    """
    asset, came_with = known_asset(reading, id)
    key = AssetKey(reading.partition, asset.id)
    decisions = reading.records.decisions(reading.partition, asset.id, STORY)
    operations = reading.records.operations(reading.partition, asset.id, 1)
    operation = operations[0] if operations else None
    last = decisions[0][1] if decisions else None
    row = row_of(reading, asset)
    return Explanation(
        row=row,
        verdicts=() if last is None else tuple(sorted(last.verdicts, key=lambda item: item.allow)),
        diff=last.diff if last is not None else None,
        chain=chain_of(row, last, partial(_status_of, reading)),
        controls=active_controls(reading, asset),
        operation=operation,
        story=story_of(decisions, operation),
        ledger=reading.records.ledger(key),
        came_with=came_with,
    )


def active_controls(reading: Reading, asset: Asset) -> tuple[Control, ...]:
    """The controls that are active now and select `asset`, in the order in which they were given.

    An approval is for one exact diff: it only counts while that is the diff of the last decision.
    """
    _version, controls = reading.records.controls(reading.partition, reading.now)
    return controls_over(asset, controls)


def controls_over(asset: Asset, controls: Iterable[Control]) -> tuple[Control, ...]:
    """Those of `controls` that select `asset`, without approvals."""
    return tuple(
        control
        for control in controls
        if control.kind is not ControlKind.APPROVAL and control.selector.matches(asset)
    )


def story_of(
    decisions: list[tuple[int, Decision]], operation: Operation | None
) -> tuple[NumberedDecision, ...]:
    """From the newest decision back to the one before the start of the last push."""
    story = [NumberedDecision(number, decision) for number, decision in decisions]
    if operation is None:
        return tuple(story)
    started = [
        index
        for index, item in enumerate(story)
        if item.decision.operation == operation.id and item.decision.condition.status is Status.PUSHING
    ]
    return tuple(story[: started[0] + 2] if started else story)


def _status_of(reading: Reading, id: AssetId) -> tuple[Row, Decision | None] | None:
    last = reading.intent.last(AssetKey(reading.partition, id))
    if last is None:
        return None
    row = row_of(reading, last[0])
    decisions = reading.records.decisions(reading.partition, id, 1) if row.status == Status.WAITING else []
    return row, decisions[0][1] if decisions else None


def chain_of(row: Row, decision: Decision | None, look: Look) -> tuple[Link, ...]:
    """The assets that are waited for, and those that they wait for: breadth first, bounded."""
    chain: list[Link] = []
    met: set[AssetId] = {row.id}
    ahead = list(_waits_for(decision)) if row.status == Status.WAITING else []
    while ahead and len(chain) < _CHAIN:
        id = ahead.pop(0)
        seen = look(id)
        if seen is None:
            continue
        found, last = seen
        cycle = id in met
        chain.append(Link(found, cycle))
        if not cycle and found.status == Status.WAITING:
            ahead.extend(_waits_for(last))
        met.add(id)
    return tuple(chain)


def _waits_for(decision: Decision | None) -> tuple[AssetId, ...]:
    if decision is None:
        return ()
    named = (id for verdict in decision.verdicts if not verdict.allow for id in verdict.wait_for)
    return tuple(dict.fromkeys((*decision.awaits, *named)))


def headline(explanation: Explanation) -> str:
    """One sentence, without the time, about the status of the asset."""
    row = explanation.row
    if row.status == INERT:
        return f"{row.id} has no production, so nothing is pushed"
    if row.status == NO_TURN:
        return f"{row.id} has had no turn yet"
    return f"{row.id} {_SAYS[Status(row.status)]}: {row.message or row.reason}"


_SAYS = {
    Status.CONVERGED: "has converged",
    Status.TURNED_DOWN: "is turned down",
    Status.ORPHANED: "is orphaned",
    Status.PUSHING: "is being pushed",
    Status.WAITING: "is waiting",
    Status.HELD: "is held",
    Status.RETRYING: "is being retried",
    Status.STALLED: "is stalled",
    Status.UNKNOWN: "is in an unknown state",
}

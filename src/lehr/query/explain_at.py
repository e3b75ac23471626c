"""Why one asset had its status at another time, from what is still recorded of it.

Decisions are recorded when a verdict changes, so the last one before a time holds the status at that time.
History is pruned from its beginning: what is older than the oldest entry of the feed may be gone, unless it
is the newest of its kind, and this is reported.
"""

from __future__ import annotations

from functools import partial

import msgspec

from lehr.base.errors import LehrError
from lehr.base.moments import Moment, rfc3339
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Decision
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.query.asset_rows import INERT, NO_TURN, Row, after_decision, known_asset
from lehr.query.events import position_before
from lehr.query.explain import STORY, Explanation, chain_of, controls_over, story_of
from lehr.query.partition_view import Reading
from lehr.sdk.store import PrunedError

_FIRST_ROWS = 64
"""Rows that are read at first; each time that is not enough, four times as many."""


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """The moment that an explanation is about, and what is known of it.

    Attributes:
        at: the moment.
        incarnation: the one that was in force (`hello@3`); empty if none was.
        intent_is_kept: whether its assets can still be read.
        history_since: of history from before this time, only what was still so is kept; null if nothing was
            pruned.
    """

    at: Moment
    incarnation: str
    intent_is_kept: bool
    history_since: Moment | None

    def misses(self, since: float | None) -> bool:
        """Whether something may be missing of an asset whose status at the moment began at `since`."""
        if self.history_since is None:
            return False
        return self.at < self.history_since or (since is not None and since < self.history_since)


def explain_at(reading: Reading, id: str, at: float) -> tuple[Past, Explanation]:
    """Why the asset `id` had its status at `at`, in wall-clock seconds.

    Raises:
        LehrError: there never was such an asset, or intent did not have it yet; the time is in the future; or
            what was decided by then is no longer kept.
    """
    if at > reading.now:
        raise LehrError(
            f"{rfc3339(at)} is in the future", code="QRY127", fix="`lehr plan` shows what would be pushed now"
        )
    latest, _came_with = known_asset(reading, id)
    past = _past(reading, at)
    asset = _asset_then(reading, past, latest)
    decisions, operation = _decisions(reading, latest.id, at), _operation(reading, latest.id, at)
    last = decisions[0][1] if decisions else None
    if last is None:
        _require_no_turn(reading, past, latest, asset)
    row = _row(reading, asset or latest, last, departed=asset is None and past.intent_is_kept)
    controls = reading.records.past_controls(reading.partition, at)
    return past, Explanation(
        row=row,
        verdicts=() if last is None else tuple(sorted(last.verdicts, key=lambda item: item.allow)),
        diff=None if last is None else last.diff,
        chain=chain_of(row, last, partial(_status_then, reading, past)),
        controls=controls_over(asset or latest, controls),
        operation=operation,
        story=story_of(decisions, operation),
        ledger=_ledger(reading, latest.id, at, operation),
    )


def _past(reading: Reading, at: float) -> Past:
    sequence = reading.in_force(at)
    kept = True
    try:
        if sequence:
            reading.intent.require_kept(reading.partition, sequence)
    except PrunedError:
        kept = False
    name = f"{reading.partition}@{sequence}" if sequence else ""
    return Past(at=at, incarnation=name, intent_is_kept=kept, history_since=_history_since(reading))


def _history_since(reading: Reading) -> float | None:
    first = position_before(reading, float("-inf"))
    if first == 0:
        return None
    entries = reading.records.feed(reading.partition, first, 1)
    return entries[0].at if entries else reading.now


def _asset_then(reading: Reading, past: Past, latest: Asset) -> Asset | None:
    """The asset in the incarnation that was in force; None if it is not there, or that is not known."""
    if not past.incarnation or not past.intent_is_kept:
        return None
    sequence = int(past.incarnation.rpartition("@")[2])
    return reading.intent.asset(AssetKey(reading.partition, latest.id), sequence)


def _require_no_turn(reading: Reading, past: Past, latest: Asset, asset: Asset | None) -> None:
    """Check that an asset of which no decision is left up to the moment had no turn by then.

    Raises:
        LehrError: it was not in intent, or its decisions were pruned.
    """
    when = rfc3339(past.at)
    if asset is None and past.intent_is_kept:
        raise LehrError(
            f"intent did not have {latest.id} at {when}",
            code="QRY129",
            why=f"{past.incarnation} was in force" if past.incarnation else "nothing was published yet",
            fix=f"`lehr blame {latest.id}` shows which commit declared it",
        )
    # The newest decision about an asset is never pruned.
    if past.history_since is None or not reading.records.decisions(reading.partition, latest.id, 1):
        return
    raise LehrError(
        f"it is not known any more why {latest.id} had its status at {when}",
        code="QRY128",
        why=f"no decision of that time is kept: history from before {rfc3339(past.history_since)} was pruned",
        fix="name a later time; `lehr run --prune-older-than` sets how much is kept",
    )


def _decisions(reading: Reading, id: AssetId, at: float) -> list[tuple[int, Decision]]:
    """The decisions about an asset up to `at`, newest first, as many as a story has."""
    limit = _FIRST_ROWS
    while True:
        rows = reading.records.decisions(reading.partition, id, limit)
        found = [item for item in rows if item[1].at <= at]
        if len(found) >= STORY or len(rows) < limit:
            return found[:STORY]
        limit *= 4


def _operation(reading: Reading, id: AssetId, at: float) -> Operation | None:
    """The push that was under way at `at`, or else the last one before, as it was then."""
    limit = _FIRST_ROWS
    while True:
        rows = reading.records.operations(reading.partition, id, limit)
        found = next((item for item in rows if item.started_at <= at), None)
        if found is None and len(rows) == limit:
            limit *= 4
            continue
        if found is None or found.ended_at is None or found.ended_at <= at:
            return found
        return msgspec.structs.replace(found, ended_at=None, result=None, message="")


def _ledger(reading: Reading, id: AssetId, at: float, operation: Operation | None) -> LedgerEntry | None:
    """The content applied last by `at`; None if that is not known."""
    entry = reading.records.ledger(AssetKey(reading.partition, id))
    if entry is not None and entry.at <= at:
        return entry
    if operation is None or operation.ended_at is None or operation.result is not Result.DONE:
        return None
    content, digest, goal = operation.content, operation.content_digest, operation.goal
    return LedgerEntry(reading.partition, id, digest, content, Goal(goal), operation.id, operation.ended_at)


def _row(reading: Reading, asset: Asset, last: Decision | None, *, departed: bool = False) -> Row:
    """The row as the last decision left it."""
    if last is not None:
        return after_decision(Row(asset.id, asset.type, NO_TURN, departed=departed), last)
    if reading.inert(asset.type):
        return Row(asset.id, asset.type, INERT, message="it has no production")
    return Row(asset.id, asset.type, NO_TURN, message="no turn yet")


def _status_then(reading: Reading, past: Past, id: AssetId) -> tuple[Row, Decision | None] | None:
    last = reading.intent.last(AssetKey(reading.partition, id))
    decisions = _decisions(reading, id, past.at)
    if last is None or not decisions:
        return None
    decision = decisions[0][1]
    return _row(reading, last[0], decision), decision

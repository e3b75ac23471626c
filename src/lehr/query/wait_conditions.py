"""Whether awaited conditions of assets hold: pure rules, asked again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from lehr.base.diagnostics import errors
from lehr.base.moments import Moment
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import Control
from lehr.model.decision import Status
from lehr.model.incarnation import Incarnation
from lehr.model.pinning import pin
from lehr.model.reason import Reason
from lehr.query.asset_rows import INERT, Row
from lehr.query.partition_view import Reading
from lehr.query.run_state import RunState
from lehr.sdk.store import PrunedError

"""Reason of assets that are converged at the incarnation that they are pinned to."""

_SHOWN = 12
"""Characters of a revision."""


class Unmet(msgspec.Struct, frozen=True):
    """The remaining obstacles of a wait.

    Attributes:
        what: one line for each thing; empty once nothing is left.
        final: waiting longer would not help: a person has to act first.
        fix: what that person can do.
    """

    what: tuple[str, ...] = ()
    final: bool = False
    fix: str = ""


MET = Unmet()


class HeldBack(msgspec.Struct, frozen=True):
    """An asset that a pin keeps at content other than the newest incarnation's."""

    id: AssetId
    incarnation: int
    until: Moment | None


# --- the run and the newest commit ---------------------------------------------------------


def missing_run(run: RunState, partition: str | None, place: str, seen: str) -> Unmet:
    """What is missing for anything to happen: a `lehr run` for this partition.

    Args:
        partition: the awaited one; None for whichever it keeps.
        place: state folder, or URL of the server.
        seen: when a `lehr run` was last seen, for people; "" if never.
    """
    if not run.active and run.process is not None:
        return Unmet((f"`lehr run` (process {run.process}) does not answer yet",))
    if not run.active:
        ago = f"the last one was seen {seen}" if seen else "none was ever active there"
        what = f"no `lehr run` is active on {place}; {ago}"
        return Unmet(
            (what,),
            final=True,
            fix="start `lehr run`, or name the right state with --state (on another machine: --server)",
        )
    if partition is not None and run.partition not in (None, partition):
        what = f"the `lehr run` on {place} keeps partition {run.partition}, not {partition}"
        return Unmet((what,), final=True, fix=f"start `lehr run` on the workspace of {partition}")
    return MET


def unpublished(attempt: Attempt | None, newest: Incarnation | None) -> Unmet:
    """What is missing for the newest commit to be in force.

    Args:
        attempt: what the newest look at the source resulted in.
    """
    if attempt is None:
        return Unmet(("the source was not read yet",))
    revision = revision_of(attempt)
    if attempt.publication is Publication.REFUSED:
        return Unmet((refusal(attempt),), final=True, fix="see `lehr why --all`, and commit a fix")
    if attempt.publication is Publication.UNREADABLE:
        why = next((item.what for item in errors(attempt.diagnostics)), "its source does not answer")
        return Unmet((f"{revision} cannot be read: {why}",))
    if newest is None or newest.sequence < attempt.sequence:
        return Unmet((f"{attempt.partition}@{attempt.sequence} cannot be read from the store yet",))
    return MET


def refusal(attempt: Attempt) -> str:
    """The refusal of the newest commit, in a line."""
    found = errors(attempt.diagnostics)
    first = f": {found[0].what}" if found else ""
    more = "" if len(found) < 2 else f" (1 of {len(found)} problems)"
    return f"{revision_of(attempt)} was refused{first}{more}"


def revision_of(attempt: Attempt) -> str:
    """The subject of an attempt: the newest commit, or the newest revision of another source."""
    if not attempt.sources:
        return "the newest commit"
    return f"the newest commit {attempt.sources[0].revision[:_SHOWN]}"


# --- assets --------------------------------------------------------------------------------


def unconverged(reading: Reading, found: Sequence[Row], *, allow_pinned: bool) -> Unmet:
    """What is missing for assets to be as in the newest incarnation.

    Args:
        allow_pinned: an asset that a pin holds back counts once it is as its pin requires.
    """
    pending = not_converged(reading, found)
    if pending:
        return Unmet(tuple(f"{row.id}: {row.status} {row.message}".rstrip() for row in pending))
    held = () if allow_pinned else held_back(reading, found)
    if held:
        what = (f"{item.id}: pinned to {reading.partition}@{item.incarnation}" for item in held)
        return Unmet(tuple(what), final=True, fix="`lehr unpin` them, or pass --allow-pinned")
    return MET


def not_converged(reading: Reading, found: Iterable[Row]) -> list[Row]:
    """Those of `found` on which something is left to do, for the newest incarnation or their pin.

    A status alone may be older than the newest incarnation, or than a pin. So what was last applied
    to, or found in, production must have the content that is intended now.
    """
    pin_of = _pinning(reading)
    return [row for row in found if not (row.settled and _as_intended_now(reading, row, pin_of))]


def held_back(reading: Reading, found: Iterable[Row]) -> tuple[HeldBack, ...]:
    """Those of `found` whose pin keeps them at other content than the newest incarnation's."""
    pin_of = _pinning(reading)
    held = []
    for row in found:
        last = None if row.departed else reading.intent.last(AssetKey(reading.partition, row.id))
        holds = None if last is None else pin_of(last[0])
        if last is None or holds is None or holds.incarnation is None:
            continue
        kept = _asset_at(reading, row.id, holds.incarnation)
        if kept is None or kept.digest != last[0].digest:
            held.append(HeldBack(row.id, holds.incarnation, holds.expires_at))
    return tuple(held)


def not_at(found: Iterable[Row], status: Status) -> list[Row]:
    """Those of `found` that have another status than `status`."""
    return [row for row in found if row.status not in (status, INERT)]


def _pinning(reading: Reading) -> Callable[[Asset], Control | None]:
    """Which pin holds an asset, by the rule that its turns go by."""
    _version, controls = reading.records.controls(reading.partition, reading.now)
    return lambda asset: pin(asset, 0, controls).pin


def _asset_at(reading: Reading, id: AssetId, sequence: int) -> Asset | None:
    try:
        return reading.intent.asset(AssetKey(reading.partition, id), sequence)
    except PrunedError:
        return None


def _as_intended_now(reading: Reading, row: Row, pin_of: Callable[[Asset], Control | None]) -> bool:
    if row.status == INERT or row.departed:
        return True
    key = AssetKey(reading.partition, row.id)
    entry, last = reading.records.ledger(key), reading.intent.last(key)
    if entry is None or last is None:
        return False
    asset, came_with = last
    holds = pin_of(asset)
    if (holds is not None) is not (row.reason == Reason.PINNED):
        return False
    intended: Asset | None = asset
    if holds is not None and holds.incarnation is not None:
        intended = reading.intent.asset(key, holds.incarnation)
    elif entry.content >= came_with:
        return True
    applied = _asset_at(reading, row.id, entry.content)  # pruned: it was out of production, and has come back
    return applied is not None and intended is not None and applied.digest == intended.digest

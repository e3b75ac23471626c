"""Whether awaited conditions of assets hold: pure functions, called repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from lehr.base.diagnostics import errors
from lehr.base.moments import Moment
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.content_key import same_content
from lehr.model.decision import Status
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.incarnation import Incarnation
from lehr.model.pinning import Holds, Pinning, applied_content, pin
from lehr.model.reason import Reason
from lehr.model.release import NO_RELEASES
from lehr.query.asset_rows import INERT, Row
from lehr.query.partition_view import Reading
from lehr.query.run_state import RunState
from lehr.rollouts.policy import policies_of
from lehr.sdk.store import PrunedError

_SHOWN = 12
"""Number of characters shown of a revision."""


class Unmet(msgspec.Struct, frozen=True):
    """The remaining obstacles of a wait.

    Attributes:
        what: one line for each obstacle; empty if there is none.
        final: waiting longer would not help: an operator must act first.
        fix: what the operator can do.
    """

    what: tuple[str, ...] = ()
    final: bool = False
    fix: str = ""


MET = Unmet()


class HeldBack(msgspec.Struct, frozen=True):
    """An asset that a pin or a release keeps at content other than the newest incarnation's.

    Attributes:
        until: when its pin expires; None if it does not.
        released: True if it waits to be released, and no person has to act.
    """

    id: AssetId
    incarnation: int
    until: Moment | None
    released: bool = False


# --- the run and the newest commit ---------------------------------------------------------


def missing_run(run: RunState, partition: str | None, place: str, seen: str) -> Unmet:
    """The obstacle if no `lehr run` is active for this partition.

    Args:
        partition: the awaited one; None for any.
        place: state folder, or URL of the server.
        seen: when a `lehr run` was last seen, as text; "" if never.
    """
    if not run.active and run.process is not None:
        return Unmet((f"`lehr run` (process {run.process}) does not answer yet",))
    if not run.active:
        ago = f"last seen {seen}" if seen else "never active there"
        what = f"no `lehr run` is active on {place}; {ago}"
        return Unmet(
            (what,),
            final=True,
            fix="start `lehr run`, or name the right state with --state (or --server for another machine)",
        )
    if partition is not None and run.partition not in (None, partition):
        what = f"the `lehr run` on {place} enforces partition {run.partition}, not {partition}"
        return Unmet((what,), final=True, fix=f"start `lehr run` on the workspace of {partition}")
    return MET


def unpublished(attempt: Attempt | None, newest: Incarnation | None) -> Unmet:
    """The obstacle if the newest commit is not in force.

    Args:
        attempt: result of the newest pass over the source.
    """
    if attempt is None:
        return Unmet(("the source has not been read yet",))
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
    """The refusal of the newest commit, on one line."""
    found = errors(attempt.diagnostics)
    first = f": {found[0].what}" if found else ""
    more = "" if len(found) < 2 else f" (1 of {len(found)} problems)"
    return f"{revision_of(attempt)} was refused{first}{more}"


def revision_of(attempt: Attempt) -> str:
    """The subject of an attempt: the newest commit, or the newest revision of another source."""
    if not attempt.sources:
        return "the newest commit"
    return f"the newest commit {attempt.sources[0].revision[:_SHOWN]}"


def in_force(attempt: Attempt) -> str:
    """Under which name the newest commit is in force."""
    revision = revision_of(attempt).removeprefix("the newest ")
    return f"{revision} is in force as {attempt.partition}@{attempt.sequence}"


# --- assets --------------------------------------------------------------------------------


def unconverged(reading: Reading, found: Sequence[Row], *, allow_pinned: bool) -> Unmet:
    """The obstacles if assets do not match the newest incarnation.

    Args:
        allow_pinned: an asset held back by a pin counts once it matches its pin.
    """
    pending = not_converged(reading, found)
    if pending:
        return Unmet(tuple(f"{row.id}: {row.status} {row.message}".rstrip() for row in pending))
    held = held_back(reading, found)
    pinned = () if allow_pinned else tuple(item for item in held if not item.released)
    if pinned:
        what = (f"{item.id}: pinned to {reading.partition}@{item.incarnation}" for item in pinned)
        return Unmet(tuple(what), final=True, fix="lift the pins with `lehr unpin`, or pass --allow-pinned")
    what = (
        f"{item.id}: as in {reading.partition}@{item.incarnation}; newer content is not released to it yet"
        for item in held
        if item.released
    )
    return Unmet(tuple(what))


def not_converged(reading: Reading, found: Iterable[Row]) -> list[Row]:
    """Those of `found` that are not settled at the newest incarnation or their pin.

    The status alone may be older than the newest incarnation or the pin. Therefore the content last applied
    to, or found in, production must be the one that is intended now.
    """
    pin_of = _pinning(reading)
    return [row for row in found if not (row.settled and _as_intended_now(reading, row, pin_of))]


def held_back(reading: Reading, found: Iterable[Row]) -> tuple[HeldBack, ...]:
    """Those of `found` that a pin or release keeps at content other than the newest incarnation's."""
    pin_of = _pinning(reading)
    held = []
    for row in found:
        last = None if row.departed else reading.intent.last(AssetKey(reading.partition, row.id))
        pinning = None if last is None else pin_of(last[0])
        if last is None or pinning is None or not (pinning.pin or pinning.awaits_release):
            continue
        kept = asset_at(reading, row.id, pinning.content)
        if kept is None or kept.digest != last[0].digest:
            until = None if pinning.pin is None else pinning.pin.expires_at
            held.append(HeldBack(row.id, pinning.content, until, pinning.awaits_release))
    return tuple(held)


def not_at(found: Iterable[Row], status: Status) -> list[Row]:
    """Those of `found` that have another status than `status`."""
    return [row for row in found if row.status not in (status, INERT)]


def _pinning(reading: Reading) -> Callable[[Asset], Pinning]:
    """The pin and the release of an asset, by the same rule as in its turns."""
    partition, records = reading.partition, reading.records
    _version, controls = records.controls(partition, reading.now)
    releases = NO_RELEASES.updated(*records.released(partition))
    newest = reading.newest()
    governing = 0 if newest is None else newest.sequence
    policies = policies_of(reading.intent.assets(partition, governing, [ROLLOUT_POLICY]))

    def same(id: AssetId, one: int, other: int) -> bool:
        return same_content(asset_at(reading, id, one), asset_at(reading, id, other))

    def pinning(asset: Asset) -> Pinning:
        holds = Holds(controls, releases.of(asset.id, policies.of(asset) is not None))
        entry = records.ledger(AssetKey(partition, asset.id)) if holds.released else None
        return pin(asset, governing, holds, applied=applied_content(entry, asset), same=same)

    return pinning


def asset_at(reading: Reading, id: AssetId, sequence: int) -> Asset | None:
    """An asset as of an incarnation; None if it is not there, or the incarnation is pruned."""
    try:
        return reading.intent.asset(AssetKey(reading.partition, id), sequence)
    except PrunedError:
        return None


def _as_intended_now(reading: Reading, row: Row, pin_of: Callable[[Asset], Pinning]) -> bool:
    if row.status == INERT or row.departed:
        return True
    key = AssetKey(reading.partition, row.id)
    entry, last = reading.records.ledger(key), reading.intent.last(key)
    if entry is None or last is None:
        return False
    asset, came_with = last
    pinning = pin_of(asset)
    if pinning.awaits_release is not (row.reason == Reason.AWAITING_RELEASE):
        return False
    if (pinning.pin is not None and not pinning.awaits_release) is not (row.reason == Reason.PINNED):
        return False
    intended: Asset | None = asset
    if pinning.pin is not None or pinning.awaits_release:
        intended = reading.intent.asset(key, pinning.content)
    elif entry.content >= came_with:
        return True
    # If that incarnation is pruned, the asset was out of production, and is declared again.
    applied = asset_at(reading, row.id, entry.content)
    return applied is not None and intended is not None and applied.digest == intended.digest

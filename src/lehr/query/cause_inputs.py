"""The inputs of root causes, read from the store and kept up to date with its feed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.decision import Condition, Status
from lehr.model.feed import ChangeKind
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.reason import Reason
from lehr.query.asset_rows import NO_TURN
from lehr.query.partition_view import Reading
from lehr.rollouts.policy import policies_of
from lehr.sdk.store import Records, Span, Standing, Unsettled
from lehr.sdk.watch import FeedGoneError

_NO_TURN = Condition(Status.WAITING, NO_TURN, "no turn yet", "wait until `lehr run` processes it")

_MOST_CHANGES = 500
"""With more entries of the feed, reading everything again is faster."""


class CauseInputs(NamedTuple):
    """The assets of a partition that are not settled, or wait for a release.

    Attributes:
        position: of the feed, before they were read.
        policies: of those that wait for a release, the rollout policy that governs each; None for none.
    """

    position: int
    unsettled: Mapping[AssetId, Unsettled]
    policies: Mapping[AssetId, AssetId | None]


def cause_inputs(reading: Reading, before: CauseInputs | None = None) -> CauseInputs:
    """The inputs now. Those of an earlier time make it fast: it takes as long as what has changed since."""
    position = reading.records.position(reading.partition)
    changed = None if before is None else _changed(reading, before.position, position)
    if before is None or changed is None:
        unsettled = {item.standing.asset: item for item in reading.records.unsettled(reading.partition)}
        unsettled.update(_without_turn(reading))
        return CauseInputs(position, unsettled, _policies(reading, _waiting_for_release(unsettled)))
    if not changed:
        return before._replace(position=position)
    unsettled = dict(before.unsettled)
    for id in changed:
        _replace(unsettled, id, reading)
    waiting = _waiting_for_release(unsettled)
    known = {id: before.policies[id] for id in waiting if id in before.policies}
    return CauseInputs(
        position, unsettled, known | _policies(reading, [id for id in waiting if id not in known])
    )


def unsettled_of(standing: Standing, records: Records, partition: Partition) -> Unsettled | None:
    """An asset with its recorded condition; None if it is settled, and waits for no release."""
    condition = standing.condition
    if condition.status is Status.WAITING:
        for _number, last in records.decisions(partition, standing.asset, 1):
            waits = tuple(verdict for verdict in last.verdicts if not verdict.allow)
            return Unsettled(standing, last.awaits, waits)
    if condition.status.settled and condition.reason != Reason.AWAITING_RELEASE:
        return None
    return Unsettled(standing)


def _changed(reading: Reading, since: int, position: int) -> Iterable[AssetId] | None:
    """The assets with records that changed after position `since` of the feed; None for any."""
    if position == since:
        return ()
    if not since < position <= since + _MOST_CHANGES:
        return None
    try:
        entries = reading.records.feed(reading.partition, since, _MOST_CHANGES)
    except FeedGoneError:
        return None
    changes = [change for entry in entries for change in entry.changes]
    if any(change.kind is ChangeKind.INCARNATION for change in changes):
        return None
    return dict.fromkeys(change.asset for change in changes if change.asset)


def _replace(unsettled: dict[AssetId, Unsettled], id: AssetId, reading: Reading) -> None:
    standing = reading.records.standing(AssetKey(reading.partition, id))
    if standing is None:
        return
    unsettled.pop(id, None)
    found = unsettled_of(standing, reading.records, reading.partition)
    if found is not None:
        unsettled[id] = found


def _waiting_for_release(unsettled: Mapping[AssetId, Unsettled]) -> list[AssetId]:
    return [id for id, item in unsettled.items() if item.standing.condition.reason == Reason.AWAITING_RELEASE]


def _without_turn(reading: Reading) -> dict[AssetId, Unsettled]:
    newest = reading.newest()
    if newest is None:
        return {}
    return {
        head.id: Unsettled(Standing(head.id, _NO_TURN, newest.created_at, Digest("")))
        for head in reading.records.without_turn(reading.partition)
        if not reading.inert(head.type)
    }


def _policies(reading: Reading, ids: Iterable[AssetId]) -> dict[AssetId, AssetId | None]:
    """The rollout policies that govern these assets."""
    newest, among = reading.newest(), frozenset(ids)
    if newest is None or not among:
        return {}
    intent, partition = reading.intent, reading.partition
    policies = policies_of(intent.assets(partition, newest.sequence, [ROLLOUT_POLICY]))
    found: dict[AssetId, AssetId | None] = dict.fromkeys(among)
    for asset in intent.assets(partition, newest.sequence, span=Span(ids=among)):
        policy = policies.of(asset)
        found[asset.id] = None if policy is None else policy.id
    return found

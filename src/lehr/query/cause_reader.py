"""Reads the root causes of a partition from its store."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, AssetKey
from lehr.model.decision import Condition, Status
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.reason import Reason
from lehr.query.asset_rows import NO_TURN
from lehr.query.causes import Circumstances, RootCauses, root_causes_of
from lehr.query.partition_view import Reading
from lehr.rollouts.policy import policies_of
from lehr.sdk.store import Span, Standing, Unsettled

_NO_TURN = Condition(Status.WAITING, NO_TURN, "no turn yet", "wait until `lehr run` processes it")


def read_root_causes(
    reading: Reading, *, most: int = 5, among: Collection[AssetId] | None = None, of: AssetId | None = None
) -> RootCauses:
    """The root causes of all assets that are not converged, and of those that wait for a release.

    Args:
        most: assets of a cause that are named.
        among: count and name only these; None for all.
        of: only the cause that this asset counts under, if any; None for all.
    """
    unsettled = {item.standing.asset: item for item in reading.records.unsettled(reading.partition)}
    unsettled.update(_without_turn(reading))
    waiting = (
        id for id, item in unsettled.items() if item.standing.condition.reason == Reason.AWAITING_RELEASE
    )
    policies = _policies(reading, waiting)

    def settled(id: AssetId) -> Condition | None:
        standing = reading.records.standing(AssetKey(reading.partition, id))
        return None if standing is None else standing.condition

    circumstances = Circumstances(settled, policies.get)
    found = root_causes_of(unsettled, circumstances, most=most, among=among)
    if of is not None:
        own = {cause.id for cause in root_causes_of(unsettled, circumstances, most=0, among=(of,))}
        found = tuple(cause for cause in found if cause.id in own)
    return RootCauses(sum(cause.count for cause in found), found)


def _without_turn(reading: Reading) -> dict[AssetId, Unsettled]:
    newest = reading.newest()
    if newest is None:
        return {}
    return {
        head.id: Unsettled(Standing(head.id, _NO_TURN, newest.created_at, Digest("")))
        for head in reading.records.without_turn(reading.partition)
        if not reading.inert(head.type)
    }


def _policies(reading: Reading, ids: Iterable[AssetId]) -> dict[AssetId, AssetId]:
    """The rollout policies that govern these assets."""
    newest, among = reading.newest(), frozenset(ids)
    if newest is None or not among:
        return {}
    intent, partition = reading.intent, reading.partition
    policies = policies_of(intent.assets(partition, newest.sequence, [ROLLOUT_POLICY]))
    found = {}
    for asset in intent.assets(partition, newest.sequence, span=Span(ids=among)):
        policy = policies.of(asset)
        if policy is not None:
            found[asset.id] = policy.id
    return found

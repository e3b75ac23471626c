"""Reads the root causes of a partition from its store."""

from __future__ import annotations

from collections.abc import Collection

from lehr.model.asset import AssetId, AssetKey
from lehr.model.decision import Condition
from lehr.query.cause_inputs import CauseInputs, cause_inputs
from lehr.query.causes import Circumstances, RootCauses, root_causes_of
from lehr.query.partition_view import Reading


def read_root_causes(
    reading: Reading,
    *,
    most: int = 5,
    among: Collection[AssetId] | None = None,
    of: AssetId | None = None,
    inputs: CauseInputs | None = None,
) -> RootCauses:
    """The root causes of all assets that are not converged, and of those that wait for a release.

    Args:
        most: assets of a cause that are named.
        among: count and name only these; None for all.
        of: only the cause that this asset counts under, if any; None for all.
        inputs: None to read them.
    """
    unsettled, policies = (inputs or cause_inputs(reading))[1:]

    def settled(id: AssetId) -> Condition | None:
        standing = reading.records.standing(AssetKey(reading.partition, id))
        return None if standing is None else standing.condition

    circumstances = Circumstances(settled, policies.get)
    found = root_causes_of(unsettled, circumstances, most=most, among=among)
    if of is not None:
        own = {cause.id for cause in root_causes_of(unsettled, circumstances, most=0, among=(of,))}
        found = tuple(cause for cause in found if cause.id in own)
    return RootCauses(sum(cause.count for cause in found), found)

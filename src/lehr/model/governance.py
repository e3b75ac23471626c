"""Governing assets that the Enforcer itself reads; those of checks are next to their check."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.model.declared import TYPE_TYPE
from lehr.model.policy import POLICY_TYPE
from lehr.model.selector import Selector
from lehr.model.types import AssetType

OBSERVE_ONLY = "lehr.ObserveOnly"
DELETION_BUDGET = "lehr.DeletionBudget"
ROLLOUT_POLICY = "lehr.RolloutPolicy"


class ObserveOnly(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Only observe the selected assets: compare them with production, and never push. For adoption.

    Attributes:
        select: which assets.
        reason: why, shown by `lehr why`.
    """

    select: Selector
    reason: Annotated[str, msgspec.Meta(min_length=1)]


class DeletionBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much may be removed from production, over all turndowns of the partition.

    Attributes:
        removals: assets that may be removed within `per_seconds`.
        per_seconds: length of that time.
    """

    removals: Annotated[int, msgspec.Meta(ge=0)] = 20
    per_seconds: Annotated[float, msgspec.Meta(gt=0)] = 3600.0


GOVERNANCE_TYPES = (
    TYPE_TYPE,
    POLICY_TYPE,
    AssetType(OBSERVE_ONLY, ObserveOnly, governs=True),
    AssetType(DELETION_BUDGET, DeletionBudget, governs=True),
)

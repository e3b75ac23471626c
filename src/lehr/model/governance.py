"""Governing assets that the Enforcer itself reads; those of checks stand beside their check."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.model.selector import Selector
from lehr.model.types import AssetType

OBSERVE_ONLY = "lehr.ObserveOnly"


class ObserveOnly(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Do everything but the push for the assets selected: for adoption, or a first look.

    Attributes:
        select: which assets.
        reason: why, shown by `lehr why`.
    """

    select: Selector
    reason: Annotated[str, msgspec.Meta(min_length=1)]


GOVERNANCE_TYPES = (AssetType(OBSERVE_ONLY, ObserveOnly, governs=True),)

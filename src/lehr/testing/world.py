"""Things: assets whose production is one string, for simulations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.governance import GOVERNANCE_TYPES
from lehr.model.types import AnyReference, AssetType, Registry
from lehr.rollouts.policy import ROLLOUT_POLICY_TYPE

THING = "test.Thing"
PARTITION = Partition("test")


class Thing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Production of one string.

    Attributes:
        value: what production should hold.
        reads: other things whose values the push also reads.
        destroys: True makes every change of it destructive.
        versioned: True makes the value its version; else a value that is a number is its capacity,
            and the value `?` has an unknown capacity.
    """

    value: str = ""
    reads: list[AnyReference] = []
    destroys: bool = False
    versioned: bool = False


def thing(id: str, value: str = "", addons: Mapping[str, Any] | None = None, **fields: Any) -> Asset:
    """An asset of type `test.Thing`."""
    return make_asset(AssetId(id), THING, Thing(value, **fields), addons or {})


def registry(types: Iterable[AssetType] = ()) -> Registry:
    """Things, types that Lehr itself understands, and `types`."""
    return Registry((AssetType(THING, Thing), *GOVERNANCE_TYPES, ROLLOUT_POLICY_TYPE, *types), ADDONS)


class Crash(BaseException):
    """The control plane dies here. Nothing catches it but the test."""

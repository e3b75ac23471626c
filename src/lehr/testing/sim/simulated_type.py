"""Descriptions of simulated production, one for each asset type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lehr.base.errors import StalledError
from lehr.model.asset import AssetId
from lehr.model.diff import Effects, Goal, Target
from lehr.sdk.plugin import Reader


class SimulatedType(msgspec.Struct, frozen=True):
    """Production of one asset type.

    Attributes:
        intended: production for a target that should be PRESENT; plain data.
        effects: of going to `intended` from `observed`, which may both be None for absent:
            `effects(target, read, intended, observed)`.
        connected: other assets with whose names a target is made, where production connects them.
    """

    type: str
    intended: Callable[[Target, Reader], Any]
    effects: Callable[[Target, Reader, Any, Any], Effects] = lambda target, read, intended, observed: (
        Effects()
    )
    connected: Callable[[Target, Reader], Iterable[AssetId]] = lambda target, read: ()

    def wanted(self, target: Target, read: Reader) -> Any:
        """Intended production for the goal of `target`; None for nothing."""
        if target.goal is Goal.ABSENT:
            return None
        value = self.intended(target, read)
        return value if target.goal is Goal.PRESENT else {str(target.goal): value}


def plain(type: str) -> SimulatedType:
    """Production that holds the asset's payload unchanged, without effects on others."""
    return SimulatedType(type, _payload)


def _payload(target: Target, read: Reader) -> Any:
    asset = read.asset(target.id)
    if asset is None:
        raise StalledError(f"the incarnation has no asset {target.id}")
    return asset.document()["payload"]

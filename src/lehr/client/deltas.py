"""Deltas: the changes of each asset since it was last taken."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import msgspec

from lehr.model.asset import Asset, AssetId


class Delta(msgspec.Struct, frozen=True, gc=False):
    """An asset's change from one state to another; `before` or `after` is None where it does not exist.

    In a resync, both are the same.
    """

    id: AssetId
    before: Asset | None
    after: Asset | None


class DeltaQueue:
    """Deltas in the order in which assets first changed, one per asset.

    A second change of an asset is merged into one that has not been taken yet: so the queue never holds more
    entries than there are assets, however slow its reader is. Assets that appear and disappear in between are
    not reported. Use it as a handler of an informer.
    """

    def __init__(self) -> None:
        self._pending: OrderedDict[AssetId, Delta] = OrderedDict()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pending)

    def __call__(self, delta: Delta) -> None:
        """Add a change."""
        known = self._pending.get(delta.id)
        if known is None:
            self._pending[delta.id] = delta
            self._arrived.set()
        elif known.before is None and delta.after is None:
            del self._pending[delta.id]
        else:
            self._pending[delta.id] = Delta(delta.id, known.before, delta.after)

    async def take(self) -> Delta:
        """Wait for the delta of the asset that changed longest ago."""
        while not self._pending:
            self._arrived.clear()
            await self._arrived.wait()
        return self._pending.popitem(last=False)[1]

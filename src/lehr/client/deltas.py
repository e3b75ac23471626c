"""Deltas: what has happened to each asset since somebody last looked."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import msgspec

from lehr.model.asset import Asset, AssetId


class Delta(msgspec.Struct, frozen=True, gc=False):
    """How an asset went from one state to another; `before` or `after` is None if it was or is not there.

    In a resync, both are the same.
    """

    id: AssetId
    before: Asset | None
    after: Asset | None


class DeltaQueue:
    """Deltas in the order in which assets first changed, one an asset.

    A second change of an asset that nobody has taken yet is joined to the first: so the queue never holds
    more than there are assets, however slow its reader is. What came and went in between is not told at
    all. Use it as a handler of an informer.
    """

    def __init__(self) -> None:
        self._pending: OrderedDict[AssetId, Delta] = OrderedDict()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pending)

    def __call__(self, delta: Delta) -> None:
        """Something has happened."""
        known = self._pending.get(delta.id)
        if known is None:
            self._pending[delta.id] = delta
            self._arrived.set()
        elif known.before is None and delta.after is None:
            del self._pending[delta.id]
        else:
            self._pending[delta.id] = Delta(delta.id, known.before, delta.after)

    async def take(self) -> Delta:
        """The delta of the asset that changed longest ago, once there is one."""
        while not self._pending:
            self._arrived.clear()
            await self._arrived.wait()
        return self._pending.popitem(last=False)[1]

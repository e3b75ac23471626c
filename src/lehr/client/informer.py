"""The shared informer: one watch and one cache for many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.log import Log
from lehr.client.deltas import Delta
from lehr.client.reflector import Reflector
from lehr.model.asset import Asset, AssetId
from lehr.sdk.watch import Batch, Watchable

log = Log()

Handler = Callable[[Delta], None]
"""Called for every change. Must return at once; put slow work into a `WorkQueue` or a `DeltaQueue`."""

IndexBy = Callable[[Asset], Iterable[str]]
"""Returns the keys under which an asset is found."""


class SharedInformer:
    """A cache that follows intent and notifies its handlers.

    Handlers are notified of an incarnation after the cache has all of it, so none ever sees half of one. An
    error in one handler is logged and does not affect the others.

    Attributes:
        sequence: of the cache's incarnation; None before the first list.
    """

    def __init__(
        self, watchable: Watchable, clock: Clock, chance: Chance, *, resync: float | None = None
    ) -> None:
        """Every `resync` seconds, handlers are notified of every asset again; never if None."""
        self._assets: dict[AssetId, Asset] = {}
        self._indexes: dict[str, _Index] = {}
        self._handlers: list[Handler] = []
        self._clock = clock
        self._resync = resync
        self._listed = asyncio.Event()
        self._reflector = Reflector(watchable, self, clock, chance)

    # --- the cache -----------------------------------------------------------------

    @property
    def sequence(self) -> int | None:
        return self._reflector.sequence

    def __len__(self) -> int:
        return len(self._assets)

    def __iter__(self) -> Iterator[Asset]:
        return iter(self._assets.values())

    def get(self, id: AssetId) -> Asset | None:
        """The asset, or None if no asset has this id."""
        return self._assets.get(id)

    def indexed(self, index: str, key: str) -> list[Asset]:
        """The assets found under `key`, by id."""
        return [self._assets[id] for id in sorted(self._indexes[index].of(key))]

    # --- handlers ---------------------------------------------------------------

    def add_index(self, name: str, by: IndexBy) -> None:
        """Add an index with the keys that `by` returns."""
        index = self._indexes[name] = _Index(by)
        for asset in self._assets.values():
            index.change(None, asset)

    def add_handler(self, handler: Handler) -> None:
        """Notify `handler` of all current assets, then of every change."""
        self._handlers.append(handler)
        for asset in list(self._assets.values()):
            _call(handler, Delta(asset.id, None, asset))

    async def listed(self) -> None:
        """Wait until the cache is complete for the first time."""
        await self._listed.wait()

    async def run(self) -> None:
        """Follow until cancelled. Raises as `Reflector.run` does."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reflector.run(self._listed.set))
            if self._resync is not None:
                tasks.create_task(self._resync_every(self._resync))

    async def _resync_every(self, seconds: float) -> None:
        while True:
            await self._clock.sleep(seconds)
            self._notify([Delta(asset.id, asset, asset) for asset in self._assets.values()])

    # --- changes ------------------------------------------------------------------

    async def replace(self, sequence: int, assets: Iterable[Asset]) -> None:
        """Implements `Sink`: handlers are not notified of unchanged assets."""
        listed = {asset.id: asset for asset in assets}
        gone = [id for id in self._assets if id not in listed]
        differs = (asset for id, asset in listed.items() if not _same(self._assets.get(id), asset))
        await self.apply(Batch(sequence, tuple(differs), tuple(gone)))

    async def apply(self, batch: Batch) -> None:
        """Implements `Sink`."""
        assets, deltas = self._assets, []
        for asset in batch.changed:
            deltas.append(Delta(asset.id, assets.get(asset.id), asset))
            assets[asset.id] = asset
        for id in batch.gone:
            before = assets.pop(id, None)
            if before is not None:
                deltas.append(Delta(id, before, None))
        for index in self._indexes.values():
            for delta in deltas:
                index.change(delta.before, delta.after)
        self._notify(deltas)

    def _notify(self, deltas: list[Delta]) -> None:
        for handler in self._handlers:
            for delta in deltas:
                _call(handler, delta)


class _Index:
    def __init__(self, by: IndexBy) -> None:
        self._by = by
        self._ids: dict[str, set[AssetId]] = {}

    def of(self, key: str) -> set[AssetId]:
        return self._ids.get(key, set())

    def change(self, before: Asset | None, after: Asset | None) -> None:
        old = set() if before is None else set(self._by(before))
        new = set() if after is None else set(self._by(after))
        if old == new:
            return
        for key in old - new:
            ids = self._ids[key]
            ids.discard(before.id)  # type: ignore[union-attr]  # an asset with a key was in the cache
            if not ids:
                del self._ids[key]
        for key in new - old:
            self._ids.setdefault(key, set()).add(after.id)  # type: ignore[union-attr]


def _same(one: Asset | None, other: Asset) -> bool:
    return one is not None and one.digest == other.digest


def _call(handler: Handler, delta: Delta) -> None:
    try:
        handler(delta)
    except Exception:
        log.exception("a handler failed, the others are still called", asset=delta.id)

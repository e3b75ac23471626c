"""Readers bound to one incarnation, which record what was read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from lehr.base.digest import Digest, digest_all
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.types import Registry
from lehr.store import StoredIntent

T = TypeVar("T")


class RememberedIntent:
    """Reads of single assets, with the latest ones kept.

    An incarnation never changes (invariant I2), so what was read of one stays right for ever.
    """

    def __init__(self, intent: StoredIntent, size: int = 16_384) -> None:
        """Keep up to `size` assets."""
        self._intent = intent
        self._size = size
        # Of a plain dict, the oldest entry is found the slower the more were deleted before it.
        self._kept: OrderedDict[tuple[AssetKey, int], Asset | None] = OrderedDict()
        self.last = intent.last
        self.newest = intent.newest
        self.heads = intent.heads
        self.addon_since = intent.addon_since
        self.once_mentioned_by = intent.once_mentioned_by

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        """As `StoredIntent.asset`."""
        place = (key, sequence)
        try:
            return self._kept[place]
        except KeyError:
            pass
        asset = self._intent.asset(key, sequence)
        if len(self._kept) >= self._size:
            self._kept.popitem(last=False)
        self._kept[place] = asset
        return asset


class RecordingReader:
    """`lehr.sdk.plugin.Reader` over the store.

    Attributes:
        reads: digest by id of every asset that was asked for; None for one that is not there.
    """

    def __init__(
        self, intent: RememberedIntent, registry: Registry, partition: Partition, sequence: int
    ) -> None:
        self._intent = intent
        self._registry = registry
        self._partition = partition
        self._sequence = sequence
        self._assets: dict[AssetId, Asset | None] = {}

    @property
    def incarnation(self) -> int:
        return self._sequence

    @property
    def reads(self) -> dict[AssetId, Digest | None]:
        return {id: asset.digest if asset else None for id, asset in self._assets.items()}

    def know(self, asset: Asset) -> None:
        """Spare a look-up: `asset` is how it stands in this incarnation."""
        self._assets[asset.id] = asset

    def asset(self, id: AssetId) -> Asset | None:
        if id not in self._assets:
            self._assets[id] = self._intent.asset(AssetKey(self._partition, id), self._sequence)
        return self._assets[id]

    def payload(self, id: AssetId, kind: type[T]) -> T:
        asset = self._present(id)
        try:
            return self._registry.payload(asset, kind)
        except TypeError as error:
            raise StalledError(str(error), fix="correct the reference in intent") from error

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        return self._registry.addon(self._present(id), name, kind)

    def _present(self, id: AssetId) -> Asset:
        asset = self.asset(id)
        if asset is None:
            raise StalledError(
                f"incarnation {self._sequence} has no asset {id}", fix="correct the reference in intent"
            )
        return asset


def content_digest(asset: Asset, reads: Mapping[AssetId, Digest | None]) -> Digest:
    """Digest of an asset and of all that its plugin read to apply it."""
    others = sorted(id for id in reads if id != asset.id)
    if not others:
        return asset.digest
    return digest_all((asset.digest, *(part for id in others for part in (id, reads[id] or "absent"))))

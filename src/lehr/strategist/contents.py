"""Contents of assets at incarnations, read from the store. Blocks while it reads."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lehr.base.digest import Digest
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.content_key import NOT_CONTENT, content_key
from lehr.model.types import Registry, addon_names
from lehr.sdk.store import PrunedError, Store

_NOT_CONTENT = tuple(f"/addons/{name}/" for name in sorted(NOT_CONTENT))


class Content(msgspec.Struct, frozen=True):
    """The content of an asset in an incarnation.

    Attributes:
        reads: the assets that are part of it: those that it refers to, except to be ordered by them.
        leaves: whether it asks for the asset's turndown.
    """

    key: Digest
    reads: tuple[AssetId, ...]
    leaves: bool


class Contents:
    """Contents of assets at incarnations. Those that were read are kept until they are forgotten."""

    def __init__(self, store: Store, registry: Registry, partition: Partition) -> None:
        self._store = store
        self._registry = registry
        self.partition = partition
        self._known: dict[AssetId, dict[int, Content | None]] = {}

    def asset(self, id: AssetId, sequence: int) -> Asset | None:
        """An asset of an incarnation; None if it is not there, or the incarnation is pruned."""
        try:
            return self._store.intent.asset(AssetKey(self.partition, id), sequence)
        except PrunedError:
            return None

    def content(self, asset: Asset, sequence: int) -> Content:
        """The content of an asset as an incarnation has it."""
        mentions = self._registry.mentions(asset)
        targets = {item.target for item in mentions if not item.path.startswith(_NOT_CONTENT)}
        reads = tuple(sorted(targets - {asset.id}))
        key = content_key(asset, [(id, self.asset(id, sequence)) for id in reads])
        return Content(key, reads, TURNDOWN in addon_names(asset))

    def at(self, id: AssetId, sequence: int) -> Content | None:
        """The same by its id; None if the incarnation does not have it."""
        if not sequence:
            return None
        known = self._known.setdefault(id, {})
        if sequence not in known:
            asset = self.asset(id, sequence)
            known[sequence] = None if asset is None else self.content(asset, sequence)
        return known[sequence]

    def forget(self, ids: Iterable[AssetId]) -> None:
        """Keep nothing of these any longer."""
        for id in ids:
            self._known.pop(id, None)

    def forget_all(self) -> None:
        """Keep nothing any longer."""
        self._known.clear()

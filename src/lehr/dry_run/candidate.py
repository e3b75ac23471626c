"""The incarnation that publishing a workspace would create, readable as if it were published."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.types import Registry, addon_names
from lehr.sdk.store import Head, StoredIntent

_NOBODY_KNOWS = Digest("candidate")


class PublishedIntent:
    """Published intent as it is: the candidate that changes nothing, for which no workspace is read.

    Attributes:
        newest: header of the newest incarnation.
    """

    def __init__(self, published: StoredIntent, newest: Incarnation) -> None:
        self.newest = newest
        self._published = published

    def __getattr__(self, name: str) -> Any:
        return getattr(self._published, name)


class CandidateIntent:
    """The part of `lehr.sdk.store.StoredIntent` that turns read: published intent, and one more incarnation.

    If the workspace changes nothing, there is no additional incarnation, because nothing would be published.

    Attributes:
        newest: header of the newest incarnation.
    """

    def __init__(
        self,
        published: StoredIntent,
        partition: Partition,
        newest: Incarnation | None,
        assets: Mapping[AssetId, Asset],
        changes: Iterable[AssetChange],
        registry: Registry,
        now: float,
    ) -> None:
        """Lay a workspace over published intent.

        Args:
            newest: the incarnation that the workspace is compared with; None before the first.
            assets: all assets of the workspace; `changes`: how they differ from `newest`.
            now: wall-clock seconds at which it would be published.
        """
        self._published = published
        self._partition = partition
        self._assets = assets
        self._changes = {change.id: change for change in changes}
        self._registry = registry
        if newest is None or self._changes:
            sequence = 1 if newest is None else newest.sequence + 1
            unknown = _NOBODY_KNOWS
            newest = Incarnation(partition, sequence, unknown, unknown, (), unknown, now, len(assets))
            self._published_last = sequence - 1
        else:
            self._published_last = newest.sequence
        self.newest = newest
        self.versions = published.versions  # of assets that have left intent, so published ones

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        """As `StoredIntent.incarnation`. All methods also know the incarnation of the workspace."""
        if sequence > self._published_last:
            return self.newest
        return self._published.incarnation(partition, sequence)

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        if sequence >= self.newest.sequence:
            return self._assets.get(key.id)
        return self._published.asset(key, sequence)

    def assets(self, partition: Partition, sequence: int, types: Sequence[str]) -> Iterator[Asset]:
        wanted = frozenset(types)
        return (asset for _id, asset in sorted(self._assets.items()) if asset.type in wanted)

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        for _id, asset in sorted(self._assets.items()):
            yield Head(asset.id, asset.type, asset.digest)

    def last(self, key: AssetKey, sequence: int | None = None) -> tuple[Asset, int] | None:
        asset = self._assets.get(key.id)
        is_newest = sequence is None or sequence >= self.newest.sequence
        if asset is not None and key.id in self._changes and is_newest:
            return asset, self.newest.sequence
        return self._published.last(key, sequence)

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        found = self._published.next_change(key, sequence)
        if found is None and key.id in self._changes and sequence < self.newest.sequence:
            return self.newest.sequence
        return found

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        if (asset := self._assets.get(key.id)) is not None and addon not in addon_names(asset):
            return None
        since = self._published.addon_since(key, addon)
        return self.newest.created_at if since is None and asset is not None else since

    def past_and_present_referrers(self, key: AssetKey) -> list[AssetId]:
        found = {*self._published.past_and_present_referrers(key), *self._mentioned_by.get(key.id, ())}
        return sorted(found)

    @functools.cached_property
    def _mentioned_by(self) -> dict[AssetId, list[AssetId]]:
        """The changed assets that refer to an asset."""
        found: dict[AssetId, list[AssetId]] = {}
        for change in self._changes.values():
            for mention in () if change.after is None else self._registry.mentions(change.after):
                found.setdefault(mention.target, []).append(change.id)
        return found

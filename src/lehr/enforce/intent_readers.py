"""Readers of intent for plugins, which record what was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeVar

from lehr.base.digest import Digest, digest_all
from lehr.base.errors import NeedError, StalledError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.types import Registry
from lehr.sdk.plugin import version_read

T = TypeVar("T")


class Assets(Protocol):
    """Reads single assets. Implementation: `lehr.enforce.lookups.Lookups`."""

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        """As `StoredIntent.asset`.

        Raises:
            NeedError: it is not in memory.
        """
        ...

    async def run(self, look: Callable[[], T]) -> T:
        """As `Lookups.run`."""
        ...


class RecordingReader:
    """`lehr.sdk.plugin.Reader` over the store.

    Attributes:
        reads: digest by id of every asset that was asked for; None for one that does not exist.
        missed: assets that were asked for and not in memory; the caller asks again once they are.
        understands: up to which version of which types the reader understands, as
            `AssetPlugin.versions`; None for one that always understands the newest.
    """

    def __init__(
        self,
        intent: Assets,
        registry: Registry,
        partition: Partition,
        sequence: int,
        removed: Callable[[Asset], bool] = lambda asset: False,
        sequence_of: Callable[[AssetId], int] | None = None,
    ) -> None:
        """Read incarnation `sequence`.

        Args:
            removed: whether the turndown of an asset has removed it: it is not there then.
            sequence_of: the incarnation at which an asset is read instead. May raise `NeedError`.
        """
        self._removed = removed
        self._sequence_of = sequence_of
        self._intent = intent
        self._registry = registry
        self._partition = partition
        self._sequence = sequence
        self._assets: dict[AssetId, Asset | None] = {}
        self._elsewhere: dict[AssetId, int] = {}
        self.missed: dict[AssetId, None] = {}
        self.understands: Mapping[str, int] | None = None

    @property
    def incarnation(self) -> int:
        return self._sequence

    @property
    def reads(self) -> dict[AssetId, Digest | None]:
        return {id: asset.digest if asset else None for id, asset in self._assets.items()}

    @property
    def elsewhere(self) -> tuple[tuple[AssetId, int], ...]:
        """Assets that were read at another incarnation, and at which."""
        return tuple(self._elsewhere.items())

    def others(self, id: AssetId) -> tuple[AssetId, ...]:
        """Ids of the assets that were asked for other than `id`."""
        assets = self._assets
        if len(assets) == 1 and id in assets:
            return ()
        return tuple(other for other in assets if other != id)

    def content_digest(self, asset: Asset) -> Digest:
        """Digest of `asset` and of everything that was read to apply it."""
        return content_digest(asset, self.reads) if self.others(asset.id) else asset.digest

    def know(self, asset: Asset) -> None:
        """Save a look-up: `asset` is its version in this incarnation, and is read although removed."""
        self._assets[asset.id] = asset

    def know_same(self, other: RecordingReader) -> None:
        """Take over the reads of another reader of the same incarnation; they count as reads of this one."""
        self._assets = {**other._assets, **self._assets}
        self._elsewhere = {**other._elsewhere, **self._elsewhere}

    def asset(self, id: AssetId) -> Asset | None:
        try:
            return self._assets[id]
        except KeyError:
            pass
        try:
            asset = self._look(id)
        except NeedError:
            self.missed[id] = None
            raise
        self._assets[id] = asset
        return asset

    def _look(self, id: AssetId) -> Asset | None:
        sequence = self._sequence if self._sequence_of is None else self._sequence_of(id)
        asset = self._intent.asset(AssetKey(self._partition, id), sequence)
        if sequence != self._sequence:
            self._elsewhere[id] = sequence
        return None if asset is not None and self._removed(asset) else asset

    async def fetch_missed(self) -> None:
        """Read the assets that were missed.

        Raises:
            LehrError: one cannot be read.
        """
        while self.missed:
            await self.fetch(next(iter(self.missed)))

    async def fetch(self, id: AssetId) -> None:
        """Read an asset into memory.

        Raises:
            LehrError: it cannot be read.
        """
        if id not in self._assets:
            self._assets[id] = await self._intent.run(partial(self._look, id))
        self.missed.pop(id, None)

    def payload(self, id: AssetId, kind: type[T]) -> T:
        asset = self._present(id)
        version = None if self.understands is None else version_read(self.understands, asset.type, kind)
        try:
            return self._registry.payload(asset, kind, version)
        except TypeError as error:
            raise StalledError(str(error), code="ENF102", fix="correct the reference in intent") from error

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        return self._registry.addon(self._present(id), name, kind)

    def _present(self, id: AssetId) -> Asset:
        asset = self.asset(id)
        if asset is None:
            raise StalledError(
                f"incarnation {self._sequence} has no asset {id}",
                code="ENF103",
                fix="correct the reference in intent",
            )
        return asset


def content_digest(asset: Asset, reads: Mapping[AssetId, Digest | None]) -> Digest:
    """Digest of an asset and of everything that its plugin read to apply it."""
    others = sorted(id for id in reads if id != asset.id)
    if not others:
        return asset.digest
    return digest_all((asset.digest, *(part for id in others for part in (id, reads[id] or "absent"))))

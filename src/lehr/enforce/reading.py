"""Readers bound to one incarnation, which record what was read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from lehr.base.digest import Digest, digest_all
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.damage import DamagedError
from lehr.model.types import Registry
from lehr.sdk.plugin import version_read
from lehr.sdk.store import StoredIntent

T = TypeVar("T")


class RememberedIntent:
    """Reads of single assets, with the latest ones cached.

    An incarnation never changes (invariant I2), so a read of one stays right for ever, and is right
    for later ones that have not changed the asset, as far as `advance` knows.
    """

    def __init__(self, intent: StoredIntent, size: int = 16_384) -> None:
        """Keep up to `size` assets."""
        self._intent = intent
        self._size = size
        # Of a plain dict, the oldest entry is found the slower the more were deleted before it.
        self._kept: OrderedDict[tuple[AssetKey, int], Asset | None] = OrderedDict()
        # From the incarnation `_first` on: with which one each asset changed last, if it did.
        self._first = self._newest = 0
        self._changed_with: dict[AssetId, int] = {}
        self.last = intent.last
        self.incarnation = intent.incarnation
        self.versions = intent.versions
        self.heads = intent.heads
        self.next_change = intent.next_change
        self.addon_since = intent.addon_since
        self.once_mentioned_by = intent.once_mentioned_by

    def advance(self, before: int, sequence: int, changed: Iterable[AssetId]) -> None:
        """Incarnation `sequence` differs from incarnation `before` in `changed` alone."""
        # The changes between the two are not known: an asset may have changed there and back.
        adjoins = before == self._newest and sequence == before + 1
        if not adjoins or len(self._changed_with) >= self._size:
            self._first = sequence
            self._changed_with.clear()
        else:
            self._changed_with.update(dict.fromkeys(changed, sequence))
        self._newest = sequence

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        """As `StoredIntent.asset`."""
        place = (key, self._same_as(key.id, sequence))
        try:
            return self._kept[place]
        except KeyError:
            pass
        asset = self._intent.asset(key, sequence)
        if len(self._kept) >= self._size:
            self._kept.popitem(last=False)
        self._kept[place] = asset
        return asset

    def _same_as(self, id: AssetId, sequence: int) -> int:
        """The first incarnation that is known to have the asset as `sequence` has it."""
        if not self._first <= sequence <= self._newest:
            return sequence
        since = self._changed_with.get(id, self._first)
        return since if since <= sequence else sequence


def last_of_type(intent: RememberedIntent, key: AssetKey, type: str) -> tuple[Asset, int] | None:
    """The last version of an asset that had this type, and the sequence it came with.

    None if it does not exist or was pruned. A later one with the same id may be of another type.
    """
    last = intent.last(key)
    if last is None or last[0].type == type:
        return last
    for sequence, asset in intent.versions(key, last[1]):
        if asset is not None and asset.type == type:
            return asset, sequence
    return None


def last_known(intent: RememberedIntent, key: AssetKey, type: str) -> tuple[Asset, int] | None:
    """The last version of an asset, and the sequence it came with; None if it never existed.

    Of one that cannot be read, its known parts: a person who names it by its id means it.
    """
    try:
        return intent.last(key)
    except DamagedError:
        return make_asset(key.id, type, None, {}), 0


class Assets(Protocol):
    """Reads single assets."""

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        """As `StoredIntent.asset`."""
        ...


class RecordingReader:
    """`lehr.sdk.plugin.Reader` over the store.

    Attributes:
        reads: digest by id of every asset that was asked for; None for one that does not exist.
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
    ) -> None:
        """Read incarnation `sequence`, without assets that their turndown has `removed`."""
        self._removed = removed
        self._intent = intent
        self._registry = registry
        self._partition = partition
        self._sequence = sequence
        self._assets: dict[AssetId, Asset | None] = {}
        self.understands: Mapping[str, int] | None = None

    @property
    def incarnation(self) -> int:
        return self._sequence

    @property
    def reads(self) -> dict[AssetId, Digest | None]:
        return {id: asset.digest if asset else None for id, asset in self._assets.items()}

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

    def asset(self, id: AssetId) -> Asset | None:
        try:
            return self._assets[id]
        except KeyError:
            asset = self._intent.asset(AssetKey(self._partition, id), self._sequence)
            if asset is not None and self._removed(asset):
                asset = None
            self._assets[id] = asset
            return asset

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

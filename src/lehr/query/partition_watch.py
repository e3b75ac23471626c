"""Watching a partition of a store: one reader of the store for any number of watchers.

A watcher is just a position in the sequence of incarnations: it gets one incarnation after the other,
whenever it asks. However many and however slow the watchers are, nothing is buffered for them; one that falls
behind the kept changes must list again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence

from lehr.base.blocking import Blocking, Inline
from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.damage import DamagedError
from lehr.model.incarnation import AssetChange
from lehr.query.arrivals import Arrivals
from lehr.sdk.store import PrunedError, Store
from lehr.sdk.watch import Batch, ListAgainError, Listing

Wanted = Callable[[Asset], bool]
"""Whether a watcher wants an asset."""

_MOST_CHANGES = 50_000
"""Maximum changes of one incarnation. Beyond it, watchers list again, which they can do page by page."""

_KEPT_CHANGES = 50_000

_POLL_SECONDS = 1.0


class IncarnationFeed:
    """The changes of each incarnation of a partition.

    `notify_published` hints at a new one; without a hint, a new one is found by polling. Methods that are not
    coroutines and read the store block, and are for threads.
    """

    def __init__(
        self,
        store: Store,
        partition: Partition,
        *,
        poll: float = _POLL_SECONDS,
        kept: int = _KEPT_CHANGES,
        reading: Blocking | None = None,
    ) -> None:
        """Polls every `poll` seconds while a watcher waits.

        Args:
            kept: changes that are kept in memory, for watchers that ask at about the same time.
            reading: runs reads of the store; by default they are run where they are asked for.
        """
        self.partition = partition
        self.reading = reading or Inline()
        self._most_kept = kept
        self._store = store
        self._kept: OrderedDict[int, Sequence[AssetChange]] = OrderedDict()
        self._weight = 0
        self._arrivals = Arrivals(partition, self._newest, self.reading, poll)

    @property
    def announced(self) -> int:
        """Sequence of the newest incarnation that was announced or found."""
        return self._arrivals.announced

    def notify_published(self, sequence: int = 0) -> None:
        """Signal that there may be a new incarnation, and which, if that is known."""
        self._arrivals.notify(sequence)

    async def newest(self) -> int:
        """Sequence of the newest incarnation that can be read; 0 before the first.

        Raises:
            TransientError, StalledError: the store cannot be read.
        """
        return await self._arrivals.newest()

    def _newest(self) -> int:
        header = self._store.intent.newest(self.partition)
        return 0 if header is None else header.sequence

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait until there is an incarnation after `after`. False if there is none within that many seconds.

        Raises:
            TransientError, StalledError: the store cannot be read.
        """
        return await self._arrivals.wait(after, seconds)

    def changes(self, sequence: int) -> Sequence[AssetChange]:
        """Changes of an incarnation, by id.

        Raises:
            ListAgainError: it was pruned, or changed too much.
            TransientError: it cannot be read now.
        """
        known = self._kept.get(sequence)
        if known is not None:
            return known
        header = self._store.intent.incarnation(self.partition, sequence)
        if header is None:  # reads may lag behind notifications
            raise TransientError(f"incarnation {self.partition}@{sequence} cannot be read yet", code="QRY124")
        if header.added + header.changed + header.removed > _MOST_CHANGES:
            raise ListAgainError(sequence - 1, f"{header.name} changed more than {_MOST_CHANGES:,} assets")
        try:
            found = tuple(self._store.intent.changes(self.partition, sequence - 1, sequence))
        except PrunedError as error:
            raise ListAgainError(sequence - 1, error.why) from error
        except DamagedError as error:
            # A watcher that lists needs only what is in force: the damage may be in what it
            # replaced.
            raise ListAgainError(sequence - 1, error.what) from error
        self._keep(sequence, found)
        return found

    def _keep(self, sequence: int, found: Sequence[AssetChange]) -> None:
        if not self._most_kept:
            return
        self._kept[sequence] = found
        self._weight += len(found) + 1
        while self._weight > self._most_kept and len(self._kept) > 1:
            _oldest, dropped = self._kept.popitem(last=False)
            self._weight -= len(dropped) + 1


class PartitionWatch:
    """A partition, or a wanted part of it. Implements `lehr.sdk.watch.Watchable`.

    An asset that is no longer wanted is gone for a watcher, even if it still exists.
    """

    def __init__(
        self,
        store: Store,
        feed: IncarnationFeed,
        *,
        types: Sequence[str] | None = None,
        wanted: Wanted = lambda asset: True,
        heartbeat: float = 10.0,
    ) -> None:
        """Yields an empty batch if nothing happens for `heartbeat` seconds. `types` are those wanted."""
        self._store = store
        self._feed = feed
        self._types = types
        self._wanted = wanted
        self._heartbeat = heartbeat

    async def list(self) -> Listing:
        sequence = await self._feed.newest()
        assets = self._store.intent.assets(self._feed.partition, sequence, self._types) if sequence else ()
        return Listing(sequence, filter(self._wanted, assets))

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        newest = await self._feed.newest()
        if after > newest:
            raise ListAgainError(after, f"the newest incarnation is {newest}: this is another state")
        while True:
            if await self._feed.wait(after, self._heartbeat):
                after += 1
                yield await self._feed.reading.run(self.batch, after)
            else:
                yield Batch(after)

    def batch(self, sequence: int) -> Batch:
        """An incarnation's changes of the wanted assets; as `IncarnationFeed.changes`."""
        changed: list[Asset] = []
        gone: list[AssetId] = []
        for change in self._feed.changes(sequence):
            if change.after is not None and self._is_wanted(change.after):
                changed.append(change.after)
            elif change.before is not None and self._is_wanted(change.before):
                gone.append(change.id)
        return Batch(sequence, tuple(changed), tuple(gone))

    def _is_wanted(self, asset: Asset) -> bool:
        return (self._types is None or asset.type in self._types) and self._wanted(asset)

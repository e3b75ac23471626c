"""How the Enforcer follows intent: as every reader of it does, by a reflector (`lehr.client`).

Unlike an informer it keeps no assets: of a million assets it knows only the heads, and reads each
when its turn comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from lehr.base.errors import StalledError, TransientError
from lehr.base.log import Log
from lehr.client.reflector import Reflector
from lehr.enforce.plugin_errors import one_line
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import Incarnation
from lehr.query.partition_watch import IncarnationFeed, PartitionWatch
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Head
from lehr.sdk.watch import Batch

log = Log()

_POLL_SECONDS = 5.0
_HEARTBEAT_SECONDS = 3600.0

Heads = Mapping[AssetId, Head | None]
"""Assets as an incarnation has them; None for those that it no longer has."""


class IntentFollower:
    """Passes on the incarnations of a partition, one after the other. A `lehr.client.reflector.Sink`.

    Attributes:
        sequence: of the incarnation that was passed on last; 0 before the first.
        trouble: why later ones cannot be passed on until an operator acts; empty when they can.
    """

    def __init__(
        self,
        runtime: Runtime,
        listed: Callable[[], Awaitable[int]],
        changed: Callable[[Incarnation, Heads], Awaitable[None]],
        progressed: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow the partition of `runtime`.

        Args:
            listed: takes the newest incarnation as a whole, and returns its sequence.
            changed: takes the differences from the one before.
            progressed: called after an incarnation was passed on, and when intent cannot be followed.
        """
        self.sequence = 0
        self.trouble = ""
        self._progressed = progressed
        self._runtime = runtime
        self._listed = listed
        self._changed = changed
        partition, store, clock = runtime.partition, runtime.store, runtime.clock
        self._feed = IncarnationFeed(store, partition, poll=_POLL_SECONDS, kept=0, reading=runtime.reading)
        self._watch = PartitionWatch(store, self._feed, heartbeat=_HEARTBEAT_SECONDS)
        self._reflector = Reflector(self._watch, self, clock, runtime.chance)

    async def begin(self) -> None:
        """Pass on all existing incarnations.

        Raises:
            TransientError, StalledError: it cannot be read.
        """
        await self._reflector.list()

    async def run(self) -> None:
        """Follow until cancelled, whatever happens: nothing else would notice later publications."""
        while True:
            try:
                await self._reflector.run()
            except StalledError as error:
                log.warning("intent cannot be read; retrying", error=str(error))
                self.trouble = str(error)
            except Exception as error:
                log.exception("intent cannot be followed; retrying")
                self.trouble = f"intent cannot be followed: {one_line(error)}"
            self._progressed()
            await self._runtime.clock.sleep(_POLL_SECONDS)

    def notify_published(self, sequence: int = 0) -> None:
        """Hint that there may be a new incarnation, and which. Without the hint, it is found later."""
        self._feed.notify_published(sequence)

    @property
    def behind(self) -> bool:
        """True while an incarnation was announced and not yet passed on."""
        return self._feed.announced > self.sequence

    async def replace(self, sequence: int, assets: Iterable[Asset]) -> None:
        """Implements `Sink`. The assets are left where they are."""
        if sequence > self.sequence:
            await self._list()

    async def apply(self, batch: Batch) -> None:
        """Implements `Sink`."""
        if batch.sequence <= self.sequence:
            return
        if not self.sequence:
            await self._list()
            return
        heads: dict[AssetId, Head | None] = {
            asset.id: Head(asset.id, asset.type, asset.digest) for asset in batch.changed
        }
        runtime = self._runtime
        header = await runtime.reading.run(
            runtime.store.intent.incarnation, runtime.partition, batch.sequence
        )
        if header is None:  # reads may lag behind notifications
            raise TransientError(
                f"incarnation {runtime.partition}@{batch.sequence} cannot be read yet", code="ENF101"
            )
        await self._changed(header, heads | dict.fromkeys(batch.gone))
        self._passed_on(batch.sequence)

    async def _list(self) -> None:
        runtime = self._runtime
        newest = await runtime.reading.run(runtime.store.intent.newest, runtime.partition)
        if newest is not None and newest.sequence > self.sequence:
            self._passed_on(await self._listed())

    def _passed_on(self, sequence: int) -> None:
        self.sequence = sequence
        self.trouble = ""
        self._progressed()  # an incarnation without assets to enforce is followed by no turn

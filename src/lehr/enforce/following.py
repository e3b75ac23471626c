"""How the Enforcer follows intent: as every reader of it does, by a reflector (`lehr.client`).

Unlike an informer it keeps no assets: of a million assets it knows only their heads, and reads each
when its turn comes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

import structlog

from lehr.base.errors import StalledError, TransientError
from lehr.client.reflector import Reflector
from lehr.enforce.failing import brief
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import Incarnation
from lehr.query.partition_watch import Feed, PartitionWatch
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Head
from lehr.sdk.watch import Batch, ListAgainError

log = structlog.get_logger()

_POLL_SECONDS = 5.0
_HEARTBEAT_SECONDS = 3600.0

Heads = Mapping[AssetId, Head | None]
"""Assets as an incarnation has them; None for those that it no longer has."""


class Following:
    """Hands on one incarnation of a partition after the other. A `lehr.client.reflector.Sink`.

    Attributes:
        sequence: of the incarnation that was handed on last; 0 before the first.
        trouble: why later ones cannot be handed on until a person acts; empty when they can.
    """

    def __init__(
        self,
        runtime: Runtime,
        listed: Callable[[Incarnation], None],
        changed: Callable[[Incarnation, Heads], None],
        troubled: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow the partition of `runtime`.

        Args:
            listed: takes the newest incarnation as a whole.
            changed: takes the differences from the one before.
            troubled: called when intent cannot be followed.
        """
        self.sequence = 0
        self.trouble = ""
        self._troubled = troubled
        self._runtime = runtime
        self._listed = listed
        self._changed = changed
        partition, store, clock = runtime.partition, runtime.store, runtime.clock
        self._feed = Feed(store, partition, clock, poll=_POLL_SECONDS, kept=0)
        self._watch = PartitionWatch(store, self._feed, heartbeat=_HEARTBEAT_SECONDS)
        self._reflector = Reflector(self._watch, self, clock, runtime.chance)

    async def begin(self) -> None:
        """Hand on all incarnations there are.

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
                log.warning("intent cannot be read, it is looked at again", error=str(error))
                self.trouble = str(error)
            except Exception as error:
                log.exception("intent could not be followed, it is looked at again")
                self.trouble = f"intent could not be followed: {brief(error)}"
            self._troubled()
            await self._runtime.clock.sleep(_POLL_SECONDS)

    def told(self) -> None:
        """There may be a new incarnation. That is a hint: without it, one is found all the same."""
        with contextlib.suppress(TransientError, StalledError):
            self._feed.told()

    @property
    def behind(self) -> bool:
        """True while an incarnation was announced and not handed on."""
        return self._feed.heard_of > self.sequence

    def catch_up(self) -> None:
        """Hand on everything there is, immediately."""
        try:
            for sequence in range(self.sequence + 1, self._feed.newest + 1):
                self.apply(self._watch.batch(sequence))
        except ListAgainError:
            self._list()

    def replace(self, sequence: int, assets: Iterable[Asset]) -> None:
        """Implements `Sink`. The assets are left where they are."""
        if sequence > self.sequence:
            self._list()

    def apply(self, batch: Batch) -> None:
        """Implements `Sink`."""
        if batch.sequence <= self.sequence:
            return
        if not self.sequence:
            self._list()
            return
        heads: dict[AssetId, Head | None] = {
            asset.id: Head(asset.id, asset.type, asset.digest) for asset in batch.changed
        }
        header = self._runtime.store.intent.incarnation(self._runtime.partition, batch.sequence)
        if header is None:  # reads may lag behind notifications
            raise TransientError(
                f"incarnation {self._runtime.partition}@{batch.sequence} cannot be read yet", code="ENF101"
            )
        self._changed(header, heads | dict.fromkeys(batch.gone))
        self.sequence = batch.sequence
        self.trouble = ""

    def _list(self) -> None:
        newest = self._runtime.store.intent.newest(self._runtime.partition)
        if newest is not None and newest.sequence > self.sequence:
            self._listed(newest)
            self.sequence = newest.sequence
            self.trouble = ""

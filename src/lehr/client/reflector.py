"""The reflector: lists once, then watches forever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from lehr.base.backoff import delay
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import TransientError
from lehr.base.log import Log
from lehr.model.asset import Asset
from lehr.sdk.watch import Batch, ListAgainError, Watchable

log = Log()

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 30.0


class Sink(Protocol):
    """Receives intent from a reflector.

    If one raises a `TransientError`, it is called again with the same arguments.
    """

    async def replace(self, sequence: int, assets: Iterable[Asset]) -> None:
        """All assets of one incarnation."""
        ...

    async def apply(self, batch: Batch) -> None:
        """The changes of a later incarnation."""
        ...


class Reflector:
    """Keeps a `Sink` in sync with a `Watchable`.

    Attributes:
        sequence: of the sink's incarnation; None before the first list.
    """

    def __init__(self, watchable: Watchable, sink: Sink, clock: Clock, chance: Chance) -> None:
        self.sequence: int | None = None
        self._watchable = watchable
        self._sink = sink
        self._clock = clock
        self._chance = chance

    async def list(self) -> int:
        """Pass all assets to the sink. Returns their incarnation's sequence.

        Raises:
            TransientError, StalledError: it cannot be listed.
        """
        listing = await self._watchable.list()
        await self._sink.replace(listing.sequence, listing.assets)
        self.sequence = listing.sequence
        return listing.sequence

    async def run(self, came: Callable[[], None] = lambda: None) -> None:
        """Follow until cancelled; `came` is called after each update.

        Raises:
            StalledError: it can be neither listed nor watched until it is fixed.
        """
        failures = 0
        while True:
            try:
                sequence = self.sequence
                if sequence is None:
                    sequence = await self.list()
                    came()
                async for batch in self._watchable.watch(sequence):
                    failures = 0
                    await self._take(batch)
                    came()
            except ListAgainError as error:
                log.info("listing again", why=error.why)
                self.sequence = None
            except TransientError as error:
                if not failures:
                    log.warning("cannot list or watch, retrying", error=str(error))
            failures += 1
            jitter = self._chance.uniform(0.0, 1.0)
            pause = delay(failures, jitter, first=_FIRST_SECONDS, longest=_LONGEST_SECONDS)
            await self._clock.sleep(pause)

    async def _take(self, batch: Batch) -> None:
        assert self.sequence is not None
        if batch.sequence <= self.sequence and (batch.changed or batch.gone):
            # Everything above relies on the contract of `Watchable`.
            raise ListAgainError(self.sequence, f"a batch of incarnation {batch.sequence} arrived after it")
        await self._sink.apply(batch)
        self.sequence = max(self.sequence, batch.sequence)

"""The reflector: lists once, then watches, for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from lehr.base.backoff import delay
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import TransientError
from lehr.model.asset import Asset
from lehr.sdk.watch import Batch, ListAgainError, Watchable

log = structlog.get_logger()

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 30.0


class Sink(Protocol):
    """Takes what a reflector brings. Both methods return at once.

    If one raises a `TransientError`, what it was given comes again.
    """

    def replace(self, sequence: int, assets: Iterable[Asset]) -> None:
        """Everything that there is, in one incarnation."""
        ...

    def apply(self, batch: Batch) -> None:
        """What an incarnation after that changed."""
        ...


class Reflector:
    """Keeps a `Sink` as a `Watchable` is.

    Attributes:
        sequence: of the incarnation that the sink is at; None before the first list.
    """

    def __init__(self, watchable: Watchable, sink: Sink, clock: Clock, chance: Chance) -> None:
        self.sequence: int | None = None
        self._watchable = watchable
        self._sink = sink
        self._clock = clock
        self._chance = chance

    async def list(self) -> int:
        """Bring everything that there is. Returns of which incarnation that is.

        Raises:
            TransientError, StalledError: it cannot be listed.
        """
        listing = await self._watchable.list()
        self._sink.replace(listing.sequence, listing.assets)
        self.sequence = listing.sequence
        return listing.sequence

    async def run(self, came: Callable[[], None] = lambda: None) -> None:
        """Follow until cancelled; `came` is called after everything that has come.

        Raises:
            StalledError: it can be neither listed nor watched until somebody mends it.
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
                    self._take(batch)
                    came()
            except ListAgainError as error:
                log.info("what is watched is listed again", why=error.why)
                self.sequence = None
            except TransientError as error:
                if not failures:
                    log.warning("what is watched cannot be reached, it is tried again", error=str(error))
            failures += 1
            jitter = self._chance.uniform(0.0, 1.0)
            pause = delay(failures, jitter, first=_FIRST_SECONDS, longest=_LONGEST_SECONDS)
            await self._clock.sleep(pause)

    def _take(self, batch: Batch) -> None:
        assert self.sequence is not None
        if batch.sequence <= self.sequence and (batch.changed or batch.gone):
            # Whoever is watched keeps to the contract, or nothing that rests on it does.
            raise ListAgainError(self.sequence, f"a batch of incarnation {batch.sequence} came after it")
        self._sink.apply(batch)
        self.sequence = max(self.sequence, batch.sequence)

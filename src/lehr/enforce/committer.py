"""Group commit: what many turns write at about the same time goes into one transaction.

While one transaction is being made durable, others' writes gather for the next. So one fsync serves
many pushes, and no write is reported before it is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.base.log import Log
from lehr.model.damage import DamagedError
from lehr.model.writes import KeepLease, Refused, Write
from lehr.sdk.store import Store

log = Log()

MOST_WRITES = 2000
"""Most writes of one transaction; the rest goes into the next."""

_RETRY_SECONDS = 1.0


RefusedWrite = Callable[[Write, Refused], None]
"""Called with a write that the store refused, and its answer."""

Committed = Callable[[Sequence[Write], Sequence[Any]], object]
"""Called with the writes of a commit, and the answer to each."""


class _Pending(msgspec.Struct, eq=False):
    writes: tuple[Write, ...]
    answer: asyncio.Future[list[Any]] | None
    refused: RefusedWrite | None = None


class Committer:
    """Carries out writes in the order in which they were given.

    `post` hands over writes that must not be lost: while the store is unavailable they are kept
    and retried. `ask` needs an answer now, and raises otherwise.

    Attributes:
        trouble: why the store is unavailable; None while it is not.
        committed_at: monotonic seconds of the last commit; at first, of the start.
    """

    def __init__(
        self,
        store: Store,
        blocking: Blocking,
        clock: Clock,
        committed: Committed = lambda writes, answers: None,
    ) -> None:
        """`committed` is called after each commit."""
        self._store = store
        self._blocking = blocking
        self._clock = clock
        self._committed = committed
        self._pending: list[_Pending] = []
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._lease: KeepLease | None = None
        self._until = 0.0
        self.committed_at = clock.monotonic()
        self.trouble: TransientError | None = None
        self._ended: BaseException | None = None
        self._singly = 0

    def under(self, lease: KeepLease) -> None:
        """Write only while this lease, which was just taken, is held, and renew it. Invariant: I5."""
        self._lease = lease
        self._until = self._clock.monotonic() + lease.seconds

    @property
    def may_start(self) -> bool:
        """Whether a push may start: not in the second half of a lease that could not be renewed.

        A later one could still be running when the lease ends, without any failure.
        """
        lease = self._lease
        return lease is None or self._clock.monotonic() < self._until - lease.seconds / 2

    def post(self, writes: Sequence[Write], refused: RefusedWrite | None = None) -> None:
        """Write these down as soon as possible. `refused`: called for each that the store refuses."""
        if writes:
            self._add(_Pending(tuple(writes), None, refused))

    async def ask(self, *writes: Write) -> list[Any]:
        """Write these down and return the store's answers.

        Raises:
            TransientError: the store is unavailable for now; nothing was written.
            StalledError: it is broken, or `run` has ended.
            Exception: these cannot be written down; nothing was written.
        """
        self.require()
        answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._add(_Pending(writes, answer))
        return await answer

    def require(self) -> None:
        """Raise the error with which `run` has ended, if it has."""
        if self._ended is not None:
            raise self._ended

    async def flush(self) -> None:
        """Wait until nothing is pending."""
        await self._idle.wait()

    def _add(self, item: _Pending) -> None:
        self._pending.append(item)
        self._idle.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Commit for ever.

        Raises:
            StalledError: the store is broken and needs an operator; or another control plane
                has taken over.
            Exception: a defect; something that must not be lost cannot be written down.
        """
        try:
            while True:
                await self._arrived.wait()
                await self._commit(self._take())
                if not self._pending:
                    self._arrived.clear()
                    self._idle.set()
        except Exception as error:
            self._ended = error  # later callers would wait for ever
            self._refuse(self._pending, error)
            raise

    async def _commit(self, batch: list[_Pending]) -> None:
        sent = self._clock.monotonic()
        lease = [] if self._lease is None else [replace(self._lease, at=self._clock.now())]
        writes = [*lease, *(write for item in batch for write in item.writes)]
        try:
            answers = await self._blocking.run(self._store.commit, writes)
        except TransientError as error:
            await self._put_back(batch, error)
        except DamagedError as error:
            self._contain(batch, error)  # only callers that need that row see this
        except StalledError as error:
            self._refuse(batch, error)
            raise
        except Exception as error:
            self._contain(batch, error)
        else:
            if lease:
                self._until = sent + answers[0]
            if self.trouble is not None:
                self.trouble = None
                log.warning("store available again; nothing was lost")
            self.committed_at = self._clock.monotonic()
            self._committed(writes[len(lease) :], answers[len(lease) :])
            _answer(batch, answers[len(lease) :])

    def _contain(self, batch: list[_Pending], error: Exception) -> None:
        """Nothing of `batch` could be written, because of one of them: only that one may fail."""
        if len(batch) > 1:
            self._pending[:0] = batch
            self._singly = len(batch)
            return
        if not batch or batch[0].answer is None:
            raise error  # it must not be lost
        self._refuse(batch, error)
        log.error("a write cannot be stored", exc_info=error)

    def _take(self) -> list[_Pending]:
        # A caller that has been cancelled would not use its grant: a push admitted, and never
        # begun.
        self._pending = [item for item in self._pending if item.answer is None or not item.answer.cancelled()]
        count = size = 0
        for item in self._pending:
            if count and (self._singly or size + len(item.writes) > MOST_WRITES):
                break
            count += 1
            size += len(item.writes)
        self._singly = max(0, self._singly - 1)
        batch, self._pending = self._pending[:count], self._pending[count:]
        return batch

    async def _put_back(self, batch: list[_Pending], error: TransientError) -> None:
        if self.trouble is None:
            log.warning("store unavailable; writes are kept", error=str(error))
        self.trouble = error
        self._refuse(batch, error)
        self._pending[:0] = [item for item in batch if item.answer is None]
        if not self._pending:
            self._arrived.clear()
            self._idle.set()
        await self._clock.sleep(_RETRY_SECONDS)

    def _refuse(self, batch: list[_Pending], error: Exception) -> None:
        for item in batch:
            if item.answer is not None and not item.answer.done():
                item.answer.set_exception(error)


def _answer(batch: list[_Pending], answers: list[Any]) -> None:
    place = 0
    for item in batch:
        end = place + len(item.writes)
        if item.answer is not None and not item.answer.done():
            item.answer.set_result(answers[place:end])
        if item.refused is not None:
            for write, answer in zip(item.writes, answers[place:end], strict=True):
                if isinstance(answer, Refused):
                    item.refused(write, answer)
        place = end

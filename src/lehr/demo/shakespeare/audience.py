"""A client that sends requests continuously over persistent connections and counts every answer."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from lehr.base.clock import Clock
from lehr.demo.client import Connection, Response

_SEATS = 8
_BETWEEN = 0.03  # seconds between an answer and the next request of a connection
_KEPT_FAILURES = 5


class Audience:
    """A continuous client of the global balancer. A request that is not answered with 200 is lost.

    Attributes:
        answered: requests by (cluster, version) that were answered with 200.
        errors: those by (cluster, version) that were answered otherwise, by a replica.
        lost: requests that were not answered with 200.
        failures: what happened to the lost ones, the newest last; a few of them.
        newest: the last answer.
    """

    def __init__(self, port: int, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self.answered: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.lost = 0
        self.failures: deque[str] = deque(maxlen=_KEPT_FAILURES)
        self.newest: Response | None = None

    @property
    def total(self) -> int:
        """Requests that were answered."""
        return self.answered.total()

    def counts(self, cluster: str) -> tuple[int, int]:
        """The requests that replicas of a cluster have answered, and how many of the answers were errors."""
        answered, errors = (
            sum(count for (where, _), count in counter.items() if where == cluster)
            for counter in (self.answered, self.errors)
        )
        return answered + errors, errors

    def sit_down(self) -> None:
        """Start sending requests."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._sit()) for _ in range(_SEATS)]

    async def leave(self) -> None:
        """Stop; running requests are dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _sit(self) -> None:
        while True:
            try:
                async with Connection(self._port) as connection:
                    while connection.kept:
                        self._count(await connection.get())
                        await self._clock.sleep(_BETWEEN)
            except (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                self._lose(f"{type(error).__name__}: {error}")
                await self._clock.sleep(_BETWEEN)

    def _count(self, response: Response) -> None:
        if response.status == 200:
            self.answered[response.cluster, response.version] += 1
            self.newest = response
        else:
            if response.version:
                self.errors[response.cluster, response.version] += 1
            self._lose(f"{response.status} {response.body.strip()}")

    def _lose(self, how: str) -> None:
        self.lost += 1
        self.failures.append(how)

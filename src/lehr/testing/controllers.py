"""Controllers under virtual time: intent changes, hours pass, the controller dies, and a test looks on.

In: the tested function (`lehr.client.Reconciler`), a story, and a seed. Out: nothing, or what went
wrong, the same every time. The function changes the production that the test gives it.

Architecture invariant: it runs the same informer, queue and controller as in production.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from lehr.base.chance import Chance
from lehr.base.errors import TransientError
from lehr.client import Controller, Reconciler, controller_of
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.sdk.watch import Batch, ListAgainError, Listing
from lehr.testing import virtual

_KEPT_BATCHES = 100


class Intent:
    """Published intent, in memory. Implements `lehr.sdk.watch.Watchable`.

    Attributes:
        sequence: of the newest incarnation; 0 before the first.
        assets: as they are in it.
    """

    def __init__(self) -> None:
        self.sequence = 0
        self.assets: dict[AssetId, Asset] = {}
        self._batches: dict[int, Batch] = {}
        self._reachable = True
        self._news = asyncio.Event()

    def publish(self, *changed: Asset, gone: tuple[str, ...] = ()) -> None:
        """Publish one incarnation, with these assets new or changed, and those removed."""
        self.sequence += 1
        self._batches[self.sequence] = Batch(self.sequence, changed, tuple(map(AssetId, gone)))
        self._batches.pop(self.sequence - _KEPT_BATCHES, None)
        self.assets.update((asset.id, asset) for asset in changed)
        for id in gone:
            del self.assets[AssetId(id)]
        self._wake()

    def forget(self) -> None:
        """Make watchers list again, as if they had been away for too long."""
        self._batches.clear()
        self._wake()

    def reachable(self, can_be: bool) -> None:
        """Whether anybody can list or watch."""
        self._reachable = can_be
        self._wake()

    async def list(self) -> Listing:
        self._require_reachable()
        return Listing(self.sequence, list(self.assets.values()))

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        while True:
            self._require_reachable()
            if after == self.sequence:
                await self._news.wait()
                continue
            if after + 1 not in self._batches:
                raise ListAgainError(after, "it was forgotten")
            after += 1
            yield self._batches[after]

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _require_reachable(self) -> None:
        if not self._reachable:
            raise TransientError("intent cannot be reached")


class Stage:
    """A controller, and what a story can do to it. Made by `play`.

    Attributes:
        intent: what it watches.
        clock: virtual; also the controller's.
    """

    def __init__(self, reconciler: Reconciler, loop: virtual.VirtualLoop, seed: int, workers: int) -> None:
        self.intent = Intent()
        self.clock = virtual.VirtualClock(loop)
        self._reconciler = reconciler
        self._loop = loop
        self._chance = Chance(seed)
        self._workers = workers
        self._controller: Controller | None = None
        self._lives: list[tuple[virtual.Host, asyncio.Task[None]]] = []

    def publish(
        self, id: str, payload: Any, type: str = "test.Asset", addons: Mapping[str, Any] | None = None
    ) -> None:
        """Publish an incarnation in which one asset is new, or differs. `payload` is as the type has it."""
        self.intent.publish(make_asset(AssetId(id), type, payload, addons or {}))

    def withdraw(self, *ids: str) -> None:
        """Publish an incarnation that no longer has these assets."""
        self.intent.publish(gone=ids)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, which takes none."""
        await self.clock.sleep(seconds)
        if self._controller is not None and self._lives[-1][1].done():
            await self._lives[-1][1]  # raises its last error

    def failures(self, id: str) -> int:
        """How often the function has failed in a row, asked about this asset."""
        return 0 if self._controller is None else self._controller.queue.failures(AssetId(id))

    def start(self) -> None:
        """Start the controller, with nothing in its memory."""
        assert self._controller is None, "it runs already"
        host = virtual.Host(f"controller {len(self._lives) + 1}")
        self._controller = controller_of(
            self._reconciler, self.intent, self.clock, self._chance, workers=self._workers
        )
        self._lives.append((host, host.run_on(self._controller.run(), host.name)))

    def kill(self) -> None:
        """End the controller immediately, as `kill -9` does: none of its `finally` blocks runs."""
        assert self._controller is not None, "it does not run"
        self._controller = None
        self._loop.hold(self._lives[-1][0])

    async def close(self) -> None:
        """End everything that was ever started."""
        for host, task in self._lives:
            task.cancel()
            self._loop.release(host)
        await asyncio.gather(*(task for _host, task in self._lives), return_exceptions=True)


Story = Callable[[Stage], Awaitable[None]]
"""The events, and the expected result."""


def play(reconciler: Reconciler, story: Story, *, seed: int = 1, workers: int = 4) -> None:
    """Run a controller under virtual time, while `story` happens.

    Args:
        reconciler: the tested function. It sleeps and reads the time by `Request.clock`.
        seed: chooses among the possible orders of tasks, and the jitter of retries.
        workers: how many assets the controller looks at at a time.

    Raises:
        Exception: whatever the story raised, or `NotVirtualError`: see `lehr.testing.virtual.run`.
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, virtual.VirtualLoop)
        stage = Stage(reconciler, loop, seed, workers)
        stage.start()
        try:
            await story(stage)
        finally:
            await stage.close()

    virtual.run(main, seed=seed)

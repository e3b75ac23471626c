"""The time for which a process has the lease of its partition, and what acts under it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from lehr.base.blocking import Blocking
from lehr.enforce.committer import Committed, Committer
from lehr.enforce.enforcer import Enforcer
from lehr.enforce.turns import Turned
from lehr.model.writes import ReturnLease
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.strategist.strategist import Strategist

_FLUSH_SECONDS = 5.0


class Tenure:
    """A committer, and an Enforcer and a Strategist that write through it: of no use after the lease is lost.

    Use: `await begin()`, and if it raises or later, `await end()`.

    Attributes:
        begun: True once the lease is taken.
    """

    def __init__(
        self,
        runtime: Runtime,
        blocking: Blocking,
        plugins: Sequence[AssetPlugin],
        checks: Sequence[CheckPlugin],
        claims: Claims | None,
        committed: Committed,
        turned: Turned,
    ) -> None:
        """A tenure that has not begun. Arguments as in `control.parts.Parts`, `Committer` and `Turns`."""
        self.begun = False
        self.committer = Committer(runtime.store, blocking, runtime.clock, committed)
        self.enforcer = Enforcer(
            runtime, self.committer, plugins, checks, claims, turned, self._begin_releasing
        )
        self.strategist = Strategist(runtime, self.committer, self.enforcer)
        self._partition = runtime.partition
        self._committing: asyncio.Task[None] | None = None
        self._releasing: asyncio.Task[None] | None = None

    async def begin(self, owner: str) -> None:
        """Take the lease, and begin to enforce.

        Raises:
            LeaseHeldError: another process has it; this may be called again.
            TransientError, StalledError: the store is out of order.
        """
        if self._committing is None:
            self._committing = asyncio.create_task(self.committer.run(), name="committer")
        await self.enforcer.start(owner)
        self.begun = True

    def _begin_releasing(self) -> None:
        """Without any policy there is no Strategist to run."""
        if self._releasing is None:
            self._releasing = asyncio.create_task(self.strategist.run(), name="strategist")

    async def broken(self) -> None:
        """Wait until something ends, and raise why.

        Raises:
            LeaseLostError: another process has taken over.
            StalledError: the store is broken.
            Exception: a defect has ended one of the loops, and assets might no longer be healed.
        """
        assert self._committing is not None
        loops = asyncio.ensure_future(self.enforcer.broken())
        try:
            await asyncio.wait((self._committing, loops), return_when=asyncio.FIRST_COMPLETED)
            for task in (self._committing, loops):
                if task.done():
                    task.result()
        finally:
            loops.cancel()
            await asyncio.gather(loops, return_exceptions=True)

    async def end(self, grace: float = 0.0) -> None:
        """Stop enforcing, and return the lease. Pushes may take `grace` seconds to finish."""
        if self._releasing is not None:
            self._releasing.cancel()
            await asyncio.gather(self._releasing, return_exceptions=True)
        await self.enforcer.stop(grace)
        if self._committing is None:
            return
        if self.committer.trouble is None and not self._committing.done():
            if self.begun:
                self.committer.post([ReturnLease(self._partition, self.enforcer.epoch)])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self.committer.flush()
        self._committing.cancel()
        await asyncio.wait((self._committing,), timeout=_FLUSH_SECONDS)

"""Follows a run to its end, and production until it shows the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.model.diff import Diff
from lehr.model.operation import DONE, Outcome, Result
from lehr.plugins.workflow.engines import Engine, Order, Run, RunState
from lehr.plugins.workflow.outcomes import SUPERSEDED, outcome_of
from lehr.plugins.workflow.payload import Signal, Workflow
from lehr.plugins.workflow.reporter import Reporter
from lehr.sdk.plugin import Push
from lehr.sdk.secrets import Hidden

_FIRST_POLL, _LONGEST_POLL, _GROWTH = 0.05, 2.0, 1.5
_UNREACHABLE_SECONDS = 60.0


class Following:
    """Follows the run of one push.

    Args:
        operation: id of the push that has started the run.
        push: the one that follows it.
    """

    def __init__(
        self,
        engine: Engine,
        order: Order,
        operation: str,
        push: Push,
        clock: Clock,
        workflow: Workflow,
        hidden: Hidden,
    ) -> None:
        self._engine = engine
        self._order = order
        self._operation = operation
        self._push = push
        self._clock = clock
        self._workflow = workflow
        self._hidden = hidden
        self._reporter = Reporter(push, hidden)
        self._asked = False

    async def outcome(self, look: Callable[[], Awaitable[Diff]]) -> Outcome:
        """The outcome of the push, after the run has ended.

        Args:
            look: compares production.
        """
        run = await self._ended()
        if isinstance(run, Outcome):
            return run
        outcome = outcome_of(run, self._workflow, self._order.workflow, self._hidden, asked=self._asked)
        return await self._settled(look) if run.state is RunState.COMPLETED else outcome

    async def _ended(self) -> Run | Outcome:
        """The run once it has ended; an outcome if that cannot be known."""
        pause, lost_at = _FIRST_POLL, self._clock.monotonic() + _UNREACHABLE_SECONDS
        while True:
            try:
                run = await self._engine.find(self._order.asset)
                if run is None or run.operation != self._operation:
                    return _unknown("its engine does not know the run any more")
                self._reporter.report(await self._engine.progress(run))
                if not run.running:
                    return run
                await self._stop(run)
                lost_at = self._clock.monotonic() + _UNREACHABLE_SECONDS
            except StalledError as error:
                return self._not_known(error)
            except (TransientError, WaitingError) as error:
                if self._clock.monotonic() >= lost_at:
                    return self._not_known(error)
                self._reporter.now(str(error))
            await self._clock.sleep(pause)
            pause = min(_GROWTH * pause, _LONGEST_POLL)

    async def _stop(self, run: Run) -> None:
        """Ask the run to end if newer content has overtaken it, and intent allows that."""
        how = self._workflow.when_superseded
        if self._push.superseded and not self._asked and how != "finish":
            await self._engine.cancel(run, how.signal if isinstance(how, Signal) else "")
            self._asked = True
            self._push.progress("newer content has overtaken it: it was asked to end")

    async def _settled(self, look: Callable[[], Awaitable[Diff]]) -> Outcome:
        """Look until production shows the result of a run that has completed."""
        pause = _FIRST_POLL
        deadline = self._clock.monotonic() + self._workflow.settle_seconds
        while True:
            failure: LehrError | None = None
            try:
                if (await look()).empty:
                    return DONE
            except StalledError as error:
                return Outcome(Result.STALLED, self._hidden.shown(str(error)))
            except (TransientError, WaitingError) as error:
                failure = error
            if self._clock.monotonic() >= deadline:
                if failure is not None:
                    return _unknown(f"it has ended, and production cannot be observed: {failure}")
                return SUPERSEDED if self._asked else DONE
            await self._clock.sleep(pause)
            pause = min(_GROWTH * pause, _LONGEST_POLL)

    def _not_known(self, error: LehrError) -> Outcome:
        return _unknown(f"it was started, and its engine cannot be asked: {self._hidden.shown(str(error))}")


def _unknown(message: str) -> Outcome:
    return Outcome(Result.UNKNOWN, message)

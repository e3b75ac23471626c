"""The asset plugin of `lehr.Workflow`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write; `observing` asks production; `compare` compares it, and knows
the effects; `engines` is what an engine must do, and `connections` makes one; `outcomes` knows what the end
of a run means; `notes` lead `status` to the engine of a push.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple

from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError, WaitingError
from lehr.model.asset import AssetKey
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.plugins.workflow.addresses import EngineAddress
from lehr.plugins.workflow.compare import compared
from lehr.plugins.workflow.connections import Connections
from lehr.plugins.workflow.engines import REQUEST_SECONDS, Engine, Order, RunState, UnansweredError
from lehr.plugins.workflow.following import Following
from lehr.plugins.workflow.notes import Note, Notes
from lehr.plugins.workflow.observing import Observer, Revealed
from lehr.plugins.workflow.outcomes import SUPERSEDED, outcome_of
from lehr.plugins.workflow.payload import (
    MOST_COMMAND_SECONDS,
    MOST_SECONDS,
    MOST_SETTLE_SECONDS,
    WORKFLOW,
    Workflow,
    removal_argument,
)
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.secrets import Hidden, NoSecrets, Secrets, SecretValue, revealed

LOOK_AGAIN = 5.0
"""Seconds between two looks at production that a run is changing."""

_START_WITHIN = 20.0
"""Seconds after its beginning in which a push may start a run: one that was paused for longer must not."""

_TO_END = 120.0  # seconds that a push may take on top of its run


class Work(NamedTuple):
    """Intent, and what belongs to it.

    Attributes:
        key: the secret of the engine.
        order: what a push starts.
    """

    workflow: Workflow
    goal: Goal
    observing: Revealed
    key: SecretValue | None
    order: Order

    @property
    def hidden(self) -> Hidden:
        """Hides all of its secrets."""
        return self.observing.hidden


class WorkflowPlugin(AssetPlugin):
    """Keeps production as intended by workflows of other engines.

    * Production is what the observation shows. A diff names the declared fields that differ.
    * A push starts a run, follows it to its end, and looks until production shows the result. A run that has
      completed and leaves a difference ends the push as done: the next diff shows that it was ineffective.
    * An engine never has two runs of one asset at once. A diff waits for a run that no push follows.
    * The outcome is unknown if the start has no answer, or the push is cancelled. Then `status` is RUNNING
      until the run has ended. The next push reports the end of such a run instead of starting another one.

    Args:
        observer: asks production.
        connections: the engines.
        notes: lead to the engine of a push.
        clock: time.
        secrets: provides credentials, variables, keys and passwords.
        request_seconds: for one request to an engine.
    """

    types = (WORKFLOW,)
    traits = Traits(
        goals=frozenset({Goal.ABSENT}),
        pushes=100,
        diff_timeout=MOST_COMMAND_SECONDS + 3 * REQUEST_SECONDS,
        push_timeout=MOST_SECONDS + MOST_SETTLE_SECONDS + _TO_END,
    )

    def __init__(
        self,
        observer: Observer,
        connections: Connections,
        notes: Notes,
        clock: Clock,
        *,
        secrets: Secrets | None = None,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._observer = observer
        self._connections = connections
        self._notes = notes
        self._clock = clock
        self._secrets = secrets or NoSecrets()
        self._request_seconds = request_seconds
        self._starting: Counter[AssetKey] = Counter()
        self._starts: set[asyncio.Task[None]] = set()
        self._open_until: dict[AssetKey, float] = {}
        self._unreported: dict[AssetKey, str] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the declared fields; see `compare.compared` for the paths."""
        work = await self._work(target, read)
        engine = await self._connections.engine(work.workflow.engine, work.key)
        found = await self._compared(target, work)
        if found.empty:
            self._unreported.pop(target.key, None)
            return found
        run = await engine.find(target.key)
        if run is None or not run.running:
            return found
        if run.work == work.order.work and not target.lost:
            return replace(found, look_again=LOOK_AGAIN, notes=(f"{run.id} is running",))
        raise WaitingError(
            f"{run.id} has a run that has not ended",
            until=self._clock.now() + LOOK_AGAIN,
            code="WFL107",
            why=f"push {run.operation} started it" if run.operation else "no push of Lehr started it",
            fix="wait until it has ended, or end it in its engine",
        )

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Start a run, follow it, and look until production shows the result."""
        deadline = self._clock.monotonic() + _START_WITHIN
        work = await self._work(target, read)
        engine = await self._connections.engine(work.workflow.engine, work.key)
        diff = await self._compared(target, work)
        if diff.empty:
            return DONE
        order = replace(work.order, operation=push.operation.id)
        run = await engine.find(target.key)
        if run is not None and run.running:
            if run.work != order.work:
                raise TransientError(
                    f"{run.id} has a run that has not ended", code="WFL108", fix="Lehr compares again"
                )
            await self._note(order, work, run.operation)
            return await self._followed(target, work, engine, push, run.operation)
        lost = self._unreported.pop(target.key, None)
        if run is not None and run.operation == lost and run.work == order.work:
            return outcome_of(run, work.workflow, order.workflow, work.hidden)
        if push.superseded:
            return SUPERSEDED
        _require_approved(diff, push)
        await self._note(order, work, order.operation)
        try:
            await self._start(engine, order, deadline)
        except UnansweredError as error:
            return Outcome(Result.UNKNOWN, work.hidden.shown(str(error)))
        push.progress(f"{order.workflow} started")
        return await self._followed(target, work, engine, push, order.operation)

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a start waits for its answer, and while the run of the push has not ended.

        A start without an answer, or of a process that was killed, may still be carried out for a while.
        """
        key = operation.key
        if self._starting[key]:
            return Progress.RUNNING
        note = await self._notes.read(key)
        if note is not None and note.operation == operation.id:
            engine = await self._connections.engine(note.engine, await self._key_of(note.engine))
            run = await engine.find(key)
            if run is not None and run.operation == note.run:
                if not run.running and run.state is not RunState.COMPLETED:
                    self._unreported[key] = run.operation
                return Progress.RUNNING if run.running else Progress.ENDED
        if self._clock.monotonic() < self._open_until.get(key, 0.0):
            return Progress.RUNNING
        self._open_until.pop(key, None)
        recent = self._clock.now() < operation.started_at + _START_WITHIN + self._request_seconds
        return Progress.RUNNING if recent and operation.result is None else Progress.ENDED

    async def close(self) -> None:
        for task in tuple(self._starts):
            task.cancel()
        if self._starts:
            await asyncio.wait(tuple(self._starts))
        await self._observer.close()
        await self._connections.close()
        self._notes.close()

    async def _work(self, target: Target, read: Reader) -> Work:
        workflow = read.payload(target.id, Workflow)
        name, argument = _ordered(workflow, target.goal)
        order = Order(target.key, "", name, argument, workflow.timeout_seconds)
        observe = workflow.observe
        credentials, variables = None, dict[str, SecretValue]()
        if observe.http is not None and observe.http.credentials is not None:
            credentials = await self._secrets.read(observe.http.credentials)
        if observe.command is not None:
            variables = await revealed(self._secrets, observe.command.environment)
        key = await self._key_of(workflow.engine)
        hidden = Hidden([*filter(None, (credentials, key)), *variables.values()])
        return Work(workflow, target.goal, Revealed(credentials, variables, hidden), key, order)

    async def _key_of(self, engine: EngineAddress) -> SecretValue | None:
        given = engine.temporal.api_key if engine.temporal is not None else None
        if engine.dbos is not None:
            given = engine.dbos.password
        return None if given is None else await self._secrets.read(given)

    async def _compared(self, target: Target, work: Work) -> Diff:
        observed = await self._observer.observe(work.workflow.observe, target.id, work.observing)
        return compared(work.workflow, observed, work.goal, work.hidden)

    async def _note(self, order: Order, work: Work, run: str) -> None:
        await self._notes.write(order.asset, Note(order.operation, run, work.workflow.engine))

    async def _start(self, engine: Engine, order: Order, deadline: float) -> None:
        """Start a run. If this is cancelled, the request continues, and `status` reports it."""
        if self._clock.monotonic() > deadline:
            raise TransientError(
                "the push was interrupted for too long before it started anything",
                code="WFL109",
                fix="Lehr compares again",
            )
        key, task = order.asset, asyncio.ensure_future(engine.start(order))
        self._starting[key] += 1
        self._starts.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._starting[key] -= 1
            self._starts.discard(task)
            if not task.cancelled() and isinstance(task.exception(), UnansweredError):
                self._open_until[key] = self._clock.monotonic() + self._request_seconds

        task.add_done_callback(ended)
        await asyncio.shield(task)

    async def _followed(self, target: Target, work: Work, engine: Engine, push: Push, run: str) -> Outcome:
        following = Following(engine, work.order, run, push, self._clock, work.workflow, work.hidden)
        outcome = await following.outcome(lambda: self._compared(target, work))
        if outcome.result is Result.DONE and target.goal is Goal.ABSENT:
            await self._notes.forget(target.key)
        return outcome


def _ordered(workflow: Workflow, goal: Goal) -> tuple[str, dict[str, Any]]:
    """The name and the argument of the workflow that leads to `goal`."""
    if goal is Goal.PRESENT:
        return workflow.workflow, workflow.argument()
    if goal is not Goal.ABSENT:
        raise StalledError(
            f"a {WORKFLOW} cannot be {goal}", code="WFL110", fix="use a turndown, which starts `remove`"
        )
    if workflow.remove is None:
        raise StalledError(
            "this workflow cannot be turned down",
            code="WFL111",
            why="it has no `remove`",
            fix="add `remove`, or let the asset go",
        )
    return workflow.remove.workflow, removal_argument(workflow, workflow.remove)


def _require_approved(diff: Diff, push: Push) -> None:
    """Invariant: I4. A destructive workflow is started for the exact diff that was approved."""
    if diff.effects.destructive and diff.digest() != push.operation.diff_digest:
        raise TransientError(
            "production has changed since this was approved",
            code="WFL112",
            fix="review the new diff, and approve it if it is right",
        )

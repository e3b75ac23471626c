"""An engine of workflows in memory, whose workflows change a small REST API, with faults on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from lehr.model.asset import AssetKey
from lehr.plugins.workflow.engines import BusyError, Engine, Order, Run, RunProgress, RunState, id_of
from tests.rest_api import Api


@dataclass
class MemoryRun:
    """A run, and the order that started it."""

    order: Order
    run: Run
    steps: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


class MemoryEngine:
    """All engines of a test, which outlive the plugins that use them.

    Attributes:
        runs: oldest first.
        seconds: that a run takes.
        failing: the message with which each run fails; empty for none.
        final: whether that failure is final.
        effective: whether a run changes anything.
        held: runs do not end while this is set.
        trouble: called before each request; it may raise.
        after_start: called after a run was started; it may raise.
    """

    def __init__(self, api: Api, path: str) -> None:
        self.api = api
        self.path = path
        self.runs: list[MemoryRun] = []
        self.seconds = 0.01
        self.failing = ""
        self.final = False
        self.effective = True
        self.held = False
        self.trouble: Callable[[str], None] = lambda what: None
        self.after_start: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def most_at_once(self) -> int:
        return self._most

    _most = 0

    def of(self, asset: AssetKey) -> Sequence[MemoryRun]:
        return [item for item in self.runs if item.order.asset == asset]

    async def start(self, order: Order) -> None:
        await asyncio.sleep(0)
        self.trouble("start")
        if any(item.run.running for item in self.of(order.asset)):
            raise BusyError("it is running")
        run = Run(id_of(order.asset), RunState.RUNNING, "", order.operation, order.work)
        item = MemoryRun(order, run)
        self.runs.append(item)
        self._most = max(self._most, sum(other.run.running for other in self.of(order.asset)))
        task = asyncio.get_running_loop().create_task(self._carry_out(item))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.after_start()
        await asyncio.sleep(0)

    async def find(self, asset: AssetKey) -> Run | None:
        await asyncio.sleep(0)
        self.trouble("find")
        found = self.of(asset)
        return found[-1].run if found else None

    async def progress(self, run: Run) -> RunProgress:
        await asyncio.sleep(0)
        self.trouble("progress")
        [item] = [item for item in self.runs if item.run.operation == run.operation]
        return RunProgress(tuple(item.steps), "flash" if run.running else "")

    async def cancel(self, run: Run, signal: str) -> None:
        await asyncio.sleep(0)
        self.trouble("cancel")
        [item] = [item for item in self.runs if item.run.operation == run.operation]
        item.asked.append(signal)

    async def close(self) -> None:
        pass

    def end(self, item: MemoryRun, state: RunState, message: str = "", *, final: bool = False) -> None:
        item.run = replace(item.run, state=state, message=message, final=final)

    async def _carry_out(self, item: MemoryRun) -> None:
        item.steps.append("drain")
        await asyncio.sleep(self.seconds)
        while self.held and not item.asked:  # noqa: ASYNC110 - tests set these
            await asyncio.sleep(0.001)
        if not item.run.running:
            return
        if item.asked:
            self.end(item, RunState.CANCELLED)
        elif self.failing:
            self.end(item, RunState.FAILED, self.failing, final=self.final)
        else:
            if self.effective:
                self.change(item.order.workflow, item.order.argument)
            item.steps.append("flash")
            self.end(item, RunState.COMPLETED)

    def change(self, workflow: str, argument: dict[str, Any]) -> None:
        if workflow == "Decommission":
            if self.path in self.api.items:
                self.api.delete(self.path)
        else:
            self.api.put(self.path, {"version": argument["version"]})


def as_engine(engine: MemoryEngine) -> Engine:
    """The type checker's proof that it is one."""
    return engine

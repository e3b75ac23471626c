"""What an engine must do: start a workflow, find its run, report its progress, and ask it to end."""

from __future__ import annotations

import enum
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from lehr.base.digest import digest, short
from lehr.base.errors import TransientError
from lehr.model.asset import AssetKey

REQUEST_SECONDS = 10.0
"""For one request to an engine."""

MOST_STEPS = 200
"""Steps of a run that are reported."""


class BusyError(TransientError):
    """The engine has not started a run, since one of the same asset has not ended."""


class UnansweredError(TransientError):
    """A request to start a run has no answer: the engine may carry it out, now or a little later."""


class Order(msgspec.Struct, frozen=True):
    """A run to start.

    Attributes:
        operation: id of the push.
        workflow: its name.
        argument: plain data.
        seconds: after which the engine ends the run.
    """

    asset: AssetKey
    operation: str
    workflow: str
    argument: dict[str, Any]
    seconds: float

    @property
    def work(self) -> str:
        """Identifies the workflow and its argument."""
        return short(digest([self.workflow, self.argument]))


class RunState(enum.Enum):
    """The state of a run. TERMINATED is the end that a person or a program has put to it."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    TIMED_OUT = "timed out"


class Run(msgspec.Struct, frozen=True):
    """A run of a workflow, as its engine shows it.

    Attributes:
        id: what people look for in the engine.
        part: identifies the run among those with this id; empty if there is only one.
        operation: id of the push that started it; empty if no push has.
        work: `Order.work`.
        message: of a failure. It may be long, and may contain secrets.
        final: whether the workflow declares that it is useless to try again.
    """

    id: str
    state: RunState
    part: str = ""
    operation: str = ""
    work: str = ""
    message: str = ""
    final: bool = False

    @property
    def running(self) -> bool:
        """Whether it may still change production."""
        return self.state is RunState.RUNNING


class RunProgress(msgspec.Struct, frozen=True):
    """How far a run has come. The texts may contain secrets.

    Attributes:
        steps: which have ended, oldest first, at most `MOST_STEPS`.
        now: what it does or waits for; empty if that is not known.
    """

    steps: tuple[str, ...] = ()
    now: str = ""


class Engine(Protocol):
    """An engine of workflows. Implementations: `TemporalEngine`, `DbosEngine`.

    All methods raise `StalledError` if only a person can help, and `TransientError` if the engine cannot be
    asked now.
    """

    async def start(self, order: Order) -> None:
        """Start a run, unless one of the same asset has not ended.

        Raises:
            BusyError: one has not ended.
            UnansweredError: it is not known whether it was started.
        """
        ...

    async def find(self, asset: AssetKey) -> Run | None:
        """The newest run of an asset; None if the engine knows of none."""
        ...

    async def progress(self, run: Run) -> RunProgress:
        """How far `run` has come."""
        ...

    async def cancel(self, run: Run, signal: str) -> None:
        """Ask `run` to end: by this signal, or if it is empty, by the means of the engine."""
        ...

    async def close(self) -> None:
        """Release connections. Runs continue."""
        ...


def id_of(asset: AssetKey) -> str:
    """The id that all runs of an asset share, or begin with."""
    return f"lehr:{asset.partition}:{quote(asset.id, safe='')}"

"""Histories in which the plugin is in another process: calls are messages, and are lost, cut off and garbled.

The program's own client of the protocol calls the server for plugins in Python, without gRPC between the two.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import AsyncGenerator
from typing import Any, NoReturn

from lehr.base.errors import TransientError
from lehr.plugins.remote.channel import (
    CANCEL,
    DESCRIBE,
    DIFF,
    PUSH,
    STATUS,
    WATCH,
    Channel,
    LostError,
    Method,
    SilentError,
)
from lehr.plugins.remote.connection import Connection, Opened
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.plugins.remote.service import Served, Service
from lehr.sdk.plugin import AssetPlugin
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.production import Production, SimulatedPlugin
from lehr.testing.sim.suite import History
from lehr.testing.virtual import VirtualClock

_SALT = 0x504C5547
_LONGEST_SECONDS = 2.0


class TransportFault(enum.Enum):
    """A fault of one call.

    UNSENT, UNANSWERED: the request or the answer is lost. LATE: it takes a while. GARBLED: the answer has no
    result. DEAD: the plugin's process ends while it is carried out.
    """

    UNSENT = enum.auto()
    UNANSWERED = enum.auto()
    LATE = enum.auto()
    GARBLED = enum.auto()
    DEAD = enum.auto()


class SimulatedChannel(Channel):
    """Calls a `Service` of the same process, with every message encoded and decoded.

    Args:
        fault: chosen for each call; None for none.
    """

    def __init__(self, service: Service, plugins: SimulatedPluginProcesses) -> None:
        self._service = service
        self._plugins = plugins
        self._tasks: set[asyncio.Task[Any]] = set()
        self.dead = False

    async def call(self, method: Method, request: Any, seconds: float) -> Any:
        """As `Channel.call`."""
        fault = self._plugins.fault(method)
        self._require_alive()
        await self._delay(fault)
        if fault is TransportFault.UNSENT:
            raise LostError(f"the plugin has not answered {method.name}", code="PLG124")
        if fault is TransportFault.DEAD:
            self.die()
            raise LostError(f"the plugin has not answered {method.name}", code="PLG124")
        answering: Any = _UNARY[method]
        task = self._started(answering(self._service, _sent(request), _Context()))
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            task.cancel()
            raise SilentError(f"the plugin has not answered {method.name} in time", code="PLG123")
        self._require_alive()
        answer = _answer_of(task, method)
        if fault is TransportFault.UNANSWERED:
            raise LostError(f"the plugin has not answered {method.name}", code="PLG124")
        return _garbled(answer) if fault is TransportFault.GARBLED else answer

    async def stream(self, method: Method, request: Any) -> AsyncGenerator[Any, None]:
        """As `Channel.stream`."""
        fault = self._plugins.fault(method)
        self._require_alive()
        await self._delay(fault)
        if fault is TransportFault.UNSENT:
            raise LostError(f"the plugin has not answered {method.name}", code="PLG124")
        answers: asyncio.Queue[Any] = asyncio.Queue()
        task = self._started(_pumped(_STREAMS[method](self._service, _sent(request), _Context()), answers))
        task.add_done_callback(lambda ended: answers.put_nowait(None))
        try:
            while (answer := await answers.get()) is not None:
                if fault is TransportFault.DEAD:
                    self.die()
                self._require_alive()
                if fault is TransportFault.UNANSWERED:
                    raise LostError(f"the plugin has not answered {method.name}", code="PLG124")
                yield method.answer.FromString(answer.SerializeToString())
        finally:
            task.cancel()  # a push is a task of its own
        self._require_alive()
        _answer_of(task, method)

    async def is_healthy(self, seconds: float) -> bool:
        """A process that lives is."""
        return not self.dead

    def die(self) -> None:
        """The plugin's process ends, with everything that it was doing."""
        self.dead = True
        for task in (*self._tasks, *self._service.tasks()):
            task.cancel()

    async def close(self) -> None:
        """The plugin's process ends with its host."""
        self.die()

    def _started(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left

    def _require_alive(self) -> None:
        if self.dead:
            raise LostError("the plugin has ended", code="PLG124")

    async def _delay(self, fault: TransportFault | None) -> None:
        if fault is TransportFault.LATE:
            await self._plugins.pause()


class SimulatedPluginProcesses:
    """Starts processes of one plugin: an opener of connections.

    Args:
        dice: for faults, which stop once production is steady.
    """

    def __init__(self, served: Served, production: Production, clock: VirtualClock, dice: Dice) -> None:
        self._served = served
        self._production = production
        self._clock = clock
        self._dice = dice
        self._often = dice.pick((0.0, 0.02, 0.1))

    async def open(self) -> Opened:
        """A new process."""
        return Opened(SimulatedChannel(Service(self._served), self))

    async def changed(self) -> bool:
        """Sometimes the program is replaced."""
        return not self._production.steady and self._dice.happens(self._often)

    def fault(self, method: Method) -> TransportFault | None:
        """The fault of a call; None for none."""
        if self._production.steady or method is DESCRIBE or not self._dice.happens(self._often):
            return None
        return self._dice.pick(tuple(TransportFault))

    async def pause(self) -> None:
        """Wait a while."""
        await self._clock.sleep(self._dice.seconds(0.0, _LONGEST_SECONDS))


class RemoteHistory(History):
    """A random history whose plugin is in another process."""

    def served(self, plugin: SimulatedPlugin) -> AssetPlugin:
        """The client of `plugin`."""
        dice = Dice(self.seed ^ _SALT)
        served = Served("simulated", "1", plugin, self.registry)
        processes = SimulatedPluginProcesses(served, self.production, self.clock, dice)
        connection = Connection(
            "simulated",
            processes,
            self.clock,
            jitter=lambda: dice.seconds(0.0, 1.0),
            description=Service(served).description(),
        )
        return RemotePlugin(connection, plugin.types, self.clock)


class _AbortedError(Exception):
    """A method has ended with a status other than OK."""


class _Context:
    async def abort(self, code: object, details: str) -> NoReturn:
        raise _AbortedError(details)


def _sent(message: Any) -> Any:
    return type(message).FromString(message.SerializeToString())


def _answer_of(task: asyncio.Task[Any], method: Method) -> Any:
    """The answer; a method that has failed has none, as over gRPC."""
    if task.cancelled() or task.exception() is not None:
        raise TransientError(
            f"the plugin has not answered {method.name}", code="PLG124", why="status UNKNOWN"
        )
    answer = task.result()
    return answer if answer is None else method.answer.FromString(answer.SerializeToString())


async def _pumped(answers: AsyncGenerator[Any, None], into: asyncio.Queue[Any]) -> None:
    async with contextlib.aclosing(answers):
        async for answer in answers:
            into.put_nowait(answer)


def _garbled(answer: Any) -> Any:
    """An answer that makes no sense."""
    return type(answer)()


_UNARY = {
    DESCRIBE: Service.describe,
    DIFF: Service.diff,
    CANCEL: Service.cancel,
    STATUS: Service.status,
}
_STREAMS: dict[Method, Any] = {PUSH: Service.push, WATCH: Service.watch}

"""Virtual time: a seeded asyncio loop in which waiting costs nothing.

In: a coroutine function and a seed. Out: what the coroutine returns, or what went wrong.

How it works:

* Time stops while a callback is ready, and then jumps to the next timer. Hours of virtual time take
  as long as the Python code that runs in them.
* The seed chooses the order in which tasks that are ready together continue, and in which timers that are due
  at the same instant fire: asyncio leaves both open. What asyncio promises is kept: a plain callback
  (`call_soon`, a future's done callback) runs in the order of its scheduling; no task overtakes it and it
  overtakes no task.
* The same seed gives the same run, bit by bit, for code that is itself deterministic. Sets of
  strings are not, unless PYTHONHASHSEED is fixed.
* Nothing ready and no timer set is a deadlock, and is raised as one, naming who waits where. A run whose
  timers never end is not: bound it with `asyncio.timeout`, which is also virtual.
* A task's exception that is never retrieved fails the run.
* What lives outside the loop has no virtual time: threads, sockets, processes, signals, the wall
  clock and unseeded randomness raise `NotVirtualError` (`lehr.testing.seal` lists what is caught).
  Blocking calls go through `lehr.base.blocking.Inline`.

The jump of the clock is after trio's `autojump` clock, the seeded order after trio's own.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import heapq
import inspect
import itertools
import math
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from lehr.base.chance import Chance
from lehr.base.errors import LehrError
from lehr.testing.seal import NotVirtualError, refuse_outside, sealed

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = 1_767_571_200.0
"""Wall-clock start of a run unless it names another: Monday, 5 January 2026, 00:00 UTC."""

_TASK_STEP = "task step"
_MANY_TIMERS = 100
_MANY_TASKS = 100


class DeadlockError(LehrError):
    """Tasks wait, nothing is ready, and no timer will change that."""


class UnhandledError(LehrError):
    """The loop received a report of a problem without an exception."""


def run(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int, start: float = EPOCH) -> T:
    """Run `main()` in its own loop under virtual time, and return its result.

    Tasks that are left when it ends are cancelled, as in `asyncio.run`.

    Args:
        seed: chooses among the orders that asyncio leaves open.
        start: wall-clock seconds at which `VirtualClock` starts.

    Raises:
        DeadlockError: nothing can ever happen again.
        NotVirtualError: a thread, socket, process or signal, the wall clock or unseeded randomness
            was asked for.
        Exception: whatever `main()`, or a task that was never awaited, raised; with a note that
            names the seed and the virtual time.
    """
    loop = VirtualLoop(seed, start)
    try:
        with sealed(), asyncio.Runner(loop_factory=lambda: loop) as runner:
            result = runner.run(main())
        loop.raise_unhandled()
    except Exception as error:
        error.add_note(f"virtual time: seed {seed}, {loop.time():g} s after the start")
        raise
    return result


class Host:
    """A simulated machine or process: everything that runs on it can be held, and ended, as one.

    Tasks belong to the host on which they were begun; `run_on` begins the first.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def run_on(self, coroutine: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Begin `coroutine` as a task on this host."""
        context = contextvars.copy_context()
        context.run(HOST.set, self)
        return context.run(lambda: asyncio.get_running_loop().create_task(coroutine, name=name))


HOST: contextvars.ContextVar[Host | None] = contextvars.ContextVar("host", default=None)
"""The host that the running code belongs to."""


class _Task(asyncio.Task[Any]):
    """A task that knows its place among all, and the host on which it was begun."""

    birth: int
    host: Host | None


class VirtualLoop(asyncio.BaseEventLoop):
    """The event loop behind `run`. `time()` counts virtual seconds from 0.

    Architecture invariant: it reads no clock, no selector and no randomness but the seed's.
    """

    # Of asyncio.BaseEventLoop (3.11 to 3.14): `_run_once` and what schedules its calls are replaced here.
    _ready: collections.deque[asyncio.Handle]
    _scheduled: list[tuple[float, asyncio.TimerHandle]]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, seed: int, start: float = EPOCH) -> None:
        super().__init__()
        self.start = start
        self._seconds = 0.0
        self._chance = Chance(seed)
        self._births = itertools.count()
        self._tasks: list[weakref.ref[_Task]] = []
        self._most_tasks = _MANY_TASKS
        self._held: dict[Host, list[asyncio.Handle]] = {}
        self._unhandled: list[Exception] = []
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._on_exception)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._seconds

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """As in the base class, whose checks for debugging take as long as the rest."""
        self._check_closed()  # type: ignore[attr-defined]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """As in the base class; timers are compared as tuples, which takes a tenth of the time."""
        self._check_closed()  # type: ignore[attr-defined]
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, (when, timer))
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """As in the base class."""
        return self.call_at(self._seconds + delay, callback, *args, context=context)

    def tasks_of(self, host: Host) -> list[asyncio.Task[Any]]:
        """Tasks begun on `host`, oldest first; including ended ones that are still referenced."""
        return [task for task in self._known() if task.host is host]

    def hold(self, host: Host) -> None:
        """Stop everything of `host`, as a stopped process: what becomes ready or due waits."""
        self._held.setdefault(host, [])

    def release(self, host: Host) -> None:
        """Resume `host` where it was held; waiting tasks run in the order in which they became ready."""
        self._ready.extend(self._held.pop(host, ()))

    def raise_unhandled(self) -> None:
        """Raise the first problem that no task or caller has seen, if there is one."""
        for task in self._known():
            if task.done() and task._log_traceback:
                self._unhandled.append(_noted(task.exception(), f"never retrieved from {_where(task)}"))
        if self._unhandled:
            first, self._unhandled = self._unhandled[0], []
            raise first

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """As `call_soon`, for callers in this thread only."""
        try:
            self._check_thread()  # type: ignore[attr-defined]
        except RuntimeError as error:
            raise NotVirtualError("another thread called into a virtual loop", fix=_FIX) from error
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> NoReturn:
        """Refused: threads have no virtual time."""
        refuse_outside("run_in_executor")

    def _run_once(self) -> None:
        if self._unhandled:
            self.raise_unhandled()
        timers = self._scheduled
        if timers and (timers[0][1]._cancelled or len(timers) > _MANY_TIMERS):
            self._drop_cancelled_timers()
        if not self._ready and not self._stopping:
            self._jump()
        if self._scheduled and self._scheduled[0][0] <= self._seconds:
            self._collect_due()
        if self._held:
            self._put_held_aside()
        if len(self._ready) > 1:
            self._ready = collections.deque(self._ordered(self._ready))
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _jump(self) -> None:
        when = self._scheduled[0][0] if self._scheduled else math.inf
        if math.isinf(when):
            pending = [task for task in self._known() if not task.done()]
            waiting = "; ".join(_where(task) for task in pending)
            raise DeadlockError(
                "deadlock: nothing is ready and no timer is set",
                why=f"{len(pending)} pending: {waiting}",
                fix="look for who should have woken the first of them",
            )
        self._seconds = max(self._seconds, when)

    def _collect_due(self) -> None:
        timers, now = self._scheduled, self._seconds
        while timers and timers[0][0] <= now:
            _when, timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            self._ready.append(timer)

    def _put_held_aside(self) -> None:
        ready: collections.deque[asyncio.Handle] = collections.deque()
        for handle in self._ready:
            host = handle._context.get(HOST)  # type: ignore[attr-defined]
            aside = None if host is None else self._held.get(host)
            (ready if aside is None else aside).append(handle)
        self._ready = ready

    def _drop_cancelled_timers(self) -> None:
        """As in the base class: a cancelled timer must neither set the time nor pile up."""
        timers = self._scheduled
        if len(timers) > _MANY_TIMERS and self._timer_cancelled_count * 2 > len(timers):
            for _when, timer in timers:
                timer._scheduled = not timer._cancelled  # type: ignore[attr-defined]
            self._scheduled = [item for item in timers if not item[1]._cancelled]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0
        while self._scheduled and self._scheduled[0][1]._cancelled:
            heapq.heappop(self._scheduled)[1]._scheduled = False  # type: ignore[attr-defined]
            self._timer_cancelled_count -= 1

    def _ordered(self, handles: Iterable[asyncio.Handle]) -> Iterator[asyncio.Handle]:
        """`handles` with each run of neighbours whose order asyncio leaves open permuted."""
        for kind, group in itertools.groupby(handles, key=_kind):
            neighbours = list(group)
            if kind is None or len(neighbours) == 1:
                yield from neighbours
                continue
            if kind == _TASK_STEP:
                # asyncio keeps tasks in sets, so that cancelling them all wakes them by address;
                # without this, equal seeds would give unequal runs.
                neighbours.sort(key=lambda handle: getattr(_task_of(handle), "birth", -1))
            yield from self._permuted(neighbours)

    def _permuted(self, items: list[asyncio.Handle]) -> list[asyncio.Handle]:
        for last in range(len(items) - 1, 0, -1):
            # The bound itself can come out of a uniform draw by rounding.
            chosen = min(int(self._chance.uniform(0, last + 1)), last)
            items[last], items[chosen] = items[chosen], items[last]
        return items

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        task = _Task(coro, loop=loop, **kwargs)
        task.birth = next(self._births)
        task.host = HOST.get()
        # Bare references, sifted now and then: they keep the order of birth, as a weak set does not.
        self._tasks.append(weakref.ref(task))
        if len(self._tasks) > self._most_tasks:
            self._tasks = [weakref.ref(known) for known in self._known()]
            self._most_tasks = 2 * len(self._tasks) + _MANY_TASKS
        return task

    def _known(self) -> list[_Task]:
        """Tasks, oldest first; including ended ones that are still referenced."""
        return [task for known in self._tasks if (task := known()) is not None]

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        message = str(context.get("message", "unhandled problem"))
        task = context.get("task") or context.get("future")
        if isinstance(task, asyncio.Task):
            message = f"{message}: {_where(task)}"
        self._unhandled.append(_noted(context.get("exception"), message))

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none: nothing outside the loop can happen."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""


class VirtualClock:
    """`lehr.base.clock.Clock` on a virtual loop.

    Each clock has its own wall time, so that two processes of one simulation can disagree about it;
    monotonic time is the loop's.
    """

    def __init__(self, loop: VirtualLoop | None = None) -> None:
        """A clock on `loop`, by default the loop that runs.

        Raises:
            NotVirtualError: no virtual loop runs.
        """
        running = loop or asyncio.get_running_loop()
        if not isinstance(running, VirtualLoop):
            raise NotVirtualError("a virtual clock needs a virtual loop", fix="use lehr.testing.virtual.run")
        self._loop = running
        self._offset = 0.0

    def now(self) -> float:
        return self._loop.start + self._loop._seconds + self._offset

    def monotonic(self) -> float:
        return self._loop._seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251 - this is a clock

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back, by `seconds`. Timers do not notice."""
        self._offset += seconds


_FIX = "go through lehr.base.blocking, with Inline under virtual time"
_WITHIN = ("shutdown_asyncgens", "shutdown_default_executor")
_OUTSIDE = (
    "add_reader",
    "add_signal_handler",
    "add_writer",
    *(
        name
        for name, method in vars(asyncio.AbstractEventLoop).items()
        if inspect.iscoroutinefunction(method) and name not in _WITHIN
    ),
)
"""Methods of a loop that need sockets, processes, threads or signals: whatever waits, but for two."""


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refused(self: VirtualLoop, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_outside(name)

    return refused


for _name in _OUTSIDE:
    setattr(VirtualLoop, _name, _refusal(_name))


def _task_of(handle: asyncio.Handle) -> Any:
    return getattr(getattr(handle, "_callback", None), "__self__", None)


def _kind(handle: asyncio.Handle) -> str | float | None:
    """Equal for neighbours whose order asyncio leaves open; None where the order is promised."""
    if isinstance(handle, asyncio.TimerHandle):
        return handle.when()
    if not isinstance(_task_of(handle), asyncio.Task):
        return None
    name = getattr(getattr(handle, "_callback", None), "__name__", "")
    # A public method of a task (`cancel`) is a plain callback; its own steps are not public.
    return None if name and hasattr(asyncio.Task, name) else _TASK_STEP


def _noted(error: BaseException | None, message: str) -> Exception:
    if not isinstance(error, Exception):
        return UnhandledError(message, why=repr(error) if error else "")
    error.add_note(message)
    return error


def _where(task: asyncio.Task[Any]) -> str:
    """Name of `task` and the innermost line that it is at."""
    coroutine: Any = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    place = ""
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        place = f" at {frame.f_code.co_filename}:{frame.f_lineno}"
        coroutine = coroutine.cr_await
        if (by_hand := getattr(coroutine, "gi_frame", None)) is not None:
            # A generator that carries a coroutine on, as in lehr.enforce.time_limit.
            coroutine = by_hand.f_locals.get("work")
    return f"{task.get_name()} ({name}{place})"

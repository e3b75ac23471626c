"""The worker process: `python -m lehr.generate.engine.worker`, with `WorkerOptions` as JSON.

It speaks `lehr.generate.outcome.protocol` on its stdin and stdout, and exits when stdin is closed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from msgspec.structs import replace

from lehr.base.chance import Chance
from lehr.base.clock import Clock, SystemClock
from lehr.generate.engine.build import Build
from lehr.generate.engine.installed import digest_of_installed
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Fork, Run
from lehr.generate.outcome.problem_list import reported
from lehr.generate.outcome.protocol import (
    LENGTH_BYTES,
    OVERTAKE,
    Built,
    Changed,
    Contents,
    Part,
    SandboxLimits,
    Unkept,
    Wanted,
    WorkerOptions,
    Working,
    frame,
)
from lehr.generate.sandbox import forks
from lehr.generate.sandbox.denials import preload
from lehr.generate.sandbox.forker import Forker, OtherForker
from lehr.generate.sandbox.forks import RunResult, Take, Work
from lehr.generate.sandbox.meter import Overrun
from lehr.model.types import Registry

# --- rebuilds for verification, in another interpreter with another hash seed ----

_PAUSE_SECONDS = 5.0


class LazyForker:
    """An `OtherForker` for a worker: started on first use, and again after it has died.

    Args:
        interrupt: descriptor that the worker must serve first.
        chance: makes each of them different.
        pause: seconds between two calls, which leave the processor to others.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        clock: Clock,
        interrupt: int,
        chance: Chance,
        pause: float = _PAUSE_SECONDS,
    ) -> None:
        self._interrupt = interrupt
        self._chance = chance
        self._clock = clock
        self._pause = pause
        self._due = clock.monotonic()
        self._other: OtherForker | None = None
        self.run = Run(limits, clock, self._call, self._call)

    def ready(self) -> bool:
        """Whether it has started and its pause is over. Starts it."""
        if self._other is None:
            seed = int(self._chance.uniform(1, 1 << 32))
            # Objects are placed by the system's allocator, and sets have another order.
            self._other = OtherForker({"PYTHONHASHSEED": str(seed), "PYTHONMALLOC": "malloc"})
        return self._other.ready() and self._clock.monotonic() >= self._due

    def close(self) -> None:
        """End it, if it exists."""
        if self._other is not None:
            self._other.close()
            self._other = None

    def _call(self, work: Work, limits: SandboxLimits, clock: Clock, take: Take) -> RunResult:
        try:
            if self._other is not None:
                return self._other.run(work, limits, clock, take, self._interrupt)
        except (EOFError, OSError):
            self.close()
        finally:
            self._due = clock.monotonic() + self._pause
        return RunResult(b"", Overrun.INTERRUPTED, 0)


T = TypeVar("T")

_MOST_ASSETS = 5000
"""Number of assets in one message."""

_SILENCE_SECONDS = 1.0  # interval after which the parent is notified that work continues

_CHUNK = 1 << 20

_BRIEF_SECONDS = 5

_BATCH = 256
"""Number of files requested at once: enough to hide the round trip, few enough to hold in memory."""


class Channel:
    """The worker's end of the conversation.

    Args:
        incoming: descriptor.
    """

    def __init__(self, incoming: int, outgoing: BinaryIO) -> None:
        self.incoming = incoming
        self._outgoing = outgoing

    def send(self, message: object) -> None:
        """Send one message."""
        self._outgoing.write(frame(message))
        self._outgoing.flush()

    def receive(self, kind: type[T]) -> T | None:
        """The next message; None at the end of the stream."""
        length = self._exactly(LENGTH_BYTES)
        if length is None:
            return None
        body = self._exactly(int.from_bytes(length, "big"))
        return None if body is None else msgspec.msgpack.decode(body, type=kind)

    def waiting(self) -> bool:
        """True if there is something to receive."""
        return bool(select.select([self.incoming], [], [], 0)[0])

    def _exactly(self, size: int) -> bytes | None:
        """Exactly this many bytes, so that waiting input stays visible; None if the stream ends before."""
        content = bytearray()
        while len(content) < size:
            chunk = os.read(self.incoming, min(size - len(content), _CHUNK))
            if not chunk:
                return None
            content += chunk
        return bytes(content)

    def fetch(self, paths: Sequence[str]) -> Iterator[bytes]:
        """Contents of files, in the order of `paths`, requested in batches."""
        for start in range(0, len(paths), _BATCH):
            self.send(Wanted(tuple(paths[start : start + _BATCH])))
            answer = self.receive(Contents)
            if answer is None:
                raise EOFError("the parent is gone")
            yield from answer.contents


def main(arguments: str) -> None:
    """Serve until the parent closes the pipe."""
    options = msgspec.json.decode(arguments, type=WorkerOptions)
    channel = _own_pipes()
    limits = options.limits
    registry = _registry(options.registry)
    preload()
    clock = SystemClock()
    with (
        contextlib.closing(Forker()) as forker,
        contextlib.closing(_memo(options)) as memo,
        contextlib.closing(LazyForker(_brief(limits), clock, channel.incoming, Chance())) as elsewhere,
    ):
        overtaken = _Overtaken()
        call = functools.partial(forker.run, interrupt=overtaken.descriptor)
        call_many = functools.partial(forks.run, interrupt=overtaken.descriptor)
        run = Run(
            limits, clock, _with_progress(call, channel), _with_progress(call_many, channel), forker.run
        )
        _serve(channel, Build(registry, channel.fetch, run, memo, elsewhere), memo, overtaken)


class _Overtaken:
    """Descriptor that becomes readable when the parent has something newer to build."""

    def __init__(self) -> None:
        self.descriptor, self._tell = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._tell, False)
        signal.signal(signal.Signals[OVERTAKE], self._note)

    def forget(self) -> None:
        """Note that the pending signal was handled."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, _CHUNK):
                pass

    def _note(self, _number: int, _frame: object) -> None:
        with contextlib.suppress(BlockingIOError):  # it was notified often enough
            os.write(self._tell, b"x")


def _serve(channel: Channel, build: Build, memo: Memo, overtaken: _Overtaken) -> None:
    while (changed := channel.receive(Changed)) is not None:
        overtaken.forget()
        built = build.build(changed)
        problem = memo.take_problem()
        if problem:
            channel.send(Unkept(problem))
        _answer(channel, built)
        _work_until_input(channel, build.idle())
        if built.again:
            received = channel.receive(Contents)
            if received is None:
                return
            build.verify(received.contents)
            _work_until_input(channel, build.idle())


def _brief(limits: SandboxLimits) -> SandboxLimits:
    """Limits for rebuilds that only serve verification."""
    cpu, wall = min(limits.cpu_seconds, _BRIEF_SECONDS), min(limits.wall_seconds, _BRIEF_SECONDS)
    return replace(limits, cpu_seconds=cpu, wall_seconds=wall)


def _memo(options: WorkerOptions) -> Memo:
    if options.memo is None:
        return Memo()
    installed = digest_of_installed(options.registry, msgspec.json.encode(options.limits).decode())
    return Memo(Path(options.memo), installed, writes=options.keeps)


def _work_until_input(channel: Channel, work: Iterator[None]) -> None:
    """Do `work` until newer input arrives."""
    while not channel.waiting():
        try:
            next(work)
        except StopIteration:
            return


def _with_progress(run: Fork, channel: Channel) -> Fork:
    """`run` that regularly notifies the parent of progress, however long it takes."""

    def reporting(work: Work, limits: SandboxLimits, clock: Clock, take: Take) -> RunResult:
        last_report = clock.monotonic()

        def take_and_report(body: bytes) -> None:
            nonlocal last_report
            take(body)
            if clock.monotonic() - last_report > _SILENCE_SECONDS:
                last_report = clock.monotonic()
                channel.send(Working())

        return run(work, limits, clock, take_and_report)

    return reporting


def _answer(channel: Channel, built: Built) -> None:
    last = max(0, len(built.upserts) - _MOST_ASSETS)
    for start in range(0, last, _MOST_ASSETS):
        channel.send(Part(built.upserts[start : start + _MOST_ASSETS]))
    sent = -(-last // _MOST_ASSETS) * _MOST_ASSETS
    channel.send(replace(built, upserts=built.upserts[sent:], diagnostics=reported(built.diagnostics)))


def _own_pipes() -> Channel:
    """Reserve stdin and stdout for the protocol: a stray print must not corrupt it."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(incoming, os.fdopen(outgoing, "wb", 1 << 20))


def _registry(factory: str) -> Registry:
    module, _, function = factory.partition(":")
    registry = getattr(importlib.import_module(module), function)()
    if not isinstance(registry, Registry):
        raise TypeError(f"{factory} returned {type(registry).__name__}, not a registry of types")
    return registry


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)  # everything is closed, and ending the interpreter takes another 30 ms

"""The parent's side of generation: starts the worker, sends it input, and kills it when it hangs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from lehr.base.blocking import Blocking
from lehr.base.errors import TransientError
from lehr.base.log import Log
from lehr.generate.engine.memory import Memory, Origins
from lehr.generate.outcome.protocol import (
    LENGTH_BYTES,
    OVERTAKE,
    Answer,
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
from lehr.model.asset import Asset
from lehr.sdk.generation import Generated, OvertakenError
from lehr.sdk.source import Snapshot

_BUFFER = 1 << 20
_SHOWN_BYTES = 2000
_FAREWELL_SECONDS = 2.0

_log = Log()

_answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


class GenerationWorker:
    """Turns snapshots into assets in a worker process that lives as long as this object.

    Implements `lehr.sdk.generation.Generation`. The worker is started on first use, and again after it had to
    be killed; then everything is rebuilt.

    Args:
        registry_factory: `module:function` that returns the registry, imported in the worker.
        blocking: reads contents of files.
        answer_seconds: seconds of silence after which a conversation is aborted.
        limits: limits for each call of a generator.
        memo: file in which the worker keeps its outputs for its successors; None for none.
        keeps: False for a worker that only reads the outputs of others from `memo`.
        environment: overrides of the standard environment of workers (`PYTHONHASHSEED`).
    """

    def __init__(
        self,
        registry_factory: str,
        blocking: Blocking,
        *,
        answer_seconds: float = 300.0,
        limits: SandboxLimits | None = None,
        memo: Path | None = None,
        keeps: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._registry_factory = registry_factory
        self._blocking = blocking
        self._answer_seconds = answer_seconds
        self._limits = limits or SandboxLimits()
        self._memo = memo
        self._keeps = keeps
        self._environment = dict(environment or {})
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._stderr: BinaryIO | None = None
        self._memory = Memory()
        self._again: asyncio.Task[None] | None = None
        self._listens = False  # whether the worker has sent anything yet

    @property
    def pid(self) -> int | None:
        """Process id of the worker; None while there is none."""
        return None if self._process is None else self._process.pid

    async def begin(self) -> None:
        """Start the worker now, so that it is ready when it is used. `generate` reports failures."""
        async with self._turn:
            if self._process is None:
                with contextlib.suppress(OSError):
                    await self._start()

    async def generate(self, snapshot: Snapshot) -> Generated:
        async with self._turn:
            if self._again is not None:
                await self._again
            try:
                async with asyncio.timeout(self._answer_seconds) as silence:
                    sent, built = await self._converse(snapshot, silence)
            except TimeoutError as err:
                await self._end(kill=True)
                raise TransientError(
                    f"generation did not answer for {self._answer_seconds:g} seconds",
                    code="GEN101",
                    why="a generator hangs, or the machine is overloaded",
                    fix="Lehr restarts it; check what the newest change does",
                ) from err
            except (EOFError, OSError, msgspec.MsgspecError) as err:
                why = await self._end(kill=True) or str(err)
                raise TransientError(
                    "the generation worker died", code="GEN102", why=why, fix="Lehr restarts it"
                ) from err
            except BaseException:
                await self._end(kill=True)  # nothing else can be sent in the middle of a conversation
                raise
            if built.overtaken:
                self._memory.record(sent)
                raise OvertakenError
            if built.again:
                self._again = asyncio.create_task(self._resend(snapshot, built.again))
            return self._memory.take(snapshot, sent, built)

    def overtake(self) -> None:
        """Implements `lehr.sdk.generation.Overtakable`."""
        if self._turn.locked() and self._process is not None and self._listens:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.Signals[OVERTAKE])

    async def close(self) -> None:
        async with self._turn:
            await self._end()

    async def _converse(self, snapshot: Snapshot, silence: asyncio.Timeout) -> tuple[Changed, Built]:
        process = self._process or await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        sent = self._memory.changed(snapshot)
        message: object = sent
        upserts: list[Asset] = []
        origins = Origins()
        while True:
            if message is not None:
                process.stdin.write(frame(message))
                await process.stdin.drain()
            length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
            answer = _answer.decode(await process.stdout.readexactly(length))
            message = None
            self._listens = True
            silence.reschedule(asyncio.get_running_loop().time() + self._answer_seconds)
            match answer:
                case Wanted():
                    message = Contents(await self._blocking.run(_read, snapshot, answer.paths))
                case Working():
                    pass
                case Unkept():
                    _log.warning("outputs of generators are not kept", file=str(self._memo), why=answer.why)
                case Part():
                    origins.share(answer.upserts)
                    upserts += answer.upserts
                case Built():
                    origins.share(answer.upserts)
                    return sent, replace(answer, upserts=(*upserts, *answer.upserts))

    async def _resend(self, snapshot: Snapshot, paths: tuple[str, ...]) -> None:
        """Send contents of files once more, for the worker to verify outputs, without delaying other work."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        try:
            contents = await self._blocking.run(_read, snapshot, paths)
        except Exception:  # a problem of the source is reported when it is read for an answer
            contents = ()
        with contextlib.suppress(OSError):  # including the worker's death
            process.stdin.write(frame(Contents(contents)))
            await process.stdin.drain()

    async def _start(self) -> asyncio.subprocess.Process:
        memo = None if self._memo is None else str(self._memo.absolute())
        options = WorkerOptions(self._registry_factory, self._limits, memo, self._keeps)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-s", "-P", "-m", "lehr.generate.engine.worker"),
            msgspec.json.encode(options).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._stderr,
            cwd="/",
            env=_environment() | self._environment,
            start_new_session=True,  # an interrupt from the terminal is meant for the parent
            limit=_BUFFER,
        )
        return self._process

    async def _end(self, *, kill: bool = False) -> str:
        """End the worker, if there is one. Returns the end of its stderr."""
        again, self._again = self._again, None
        if again is not None:
            again.cancel()
            await asyncio.wait([again])
        self._listens = False
        process, self._process = self._process, None
        stderr, self._stderr = self._stderr, None
        self._memory.forget()
        if process is not None:
            await _reap(process, kill=kill)
        if stderr is None:
            return ""
        with stderr:
            return _end_of_output(stderr)


def _read(snapshot: Snapshot, paths: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(map(snapshot.read, paths))


def _environment() -> dict[str, str]:
    """Not our environment, except for package paths: the worker must know the types that we know."""
    path = os.environ.get("PYTHONPATH")
    folders = "" if path is None else os.pathsep.join(map(os.path.abspath, path.split(os.pathsep)))
    # A fixed hash seed makes the order of sets the same in every worker.
    return {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"} | ({"PYTHONPATH": folders} if folders else {})


async def _reap(process: asyncio.subprocess.Process, *, kill: bool) -> None:
    """Wait for the worker to exit: it does when its stdin is closed, unless it hangs."""
    assert process.stdin is not None
    process.stdin.close()
    if not kill:
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await process.wait()
        except TimeoutError:
            kill = True
    if kill and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # including a generator that it may be running
    await process.wait()


def _end_of_output(stderr: BinaryIO) -> str:
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - _SHOWN_BYTES))
    return stderr.read().decode(errors="replace").strip()

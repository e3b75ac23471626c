"""A control plane in its own process, used as any user would."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from lehr import wiring
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.control.client import SOCKET
from lehr.control.state_folder import default_state
from lehr.demo.repository import environment
from lehr.model.attempt import Attempt
from lehr.model.types import Registry
from lehr.query.asset_rows import rows
from lehr.query.partition_view import Reading
from lehr.query.wait_conditions import not_converged

LEHR = (sys.executable, "-c", "import sys; from lehr.cli.main import main; sys.exit(main())")
"""The program that this one is, whether it is installed or only importable."""

_STOP_SECONDS = 20.0


class Plane:
    """`lehr run` on the workspace at `folder`, and the state that it keeps of it.

    Args:
        log: file for its output.
    """

    def __init__(self, folder: Path, log: Path, clock: Clock) -> None:
        self._folder = folder
        self._log = log
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self.state = default_state(folder)

    @property
    def process(self) -> int:
        """The pid of `lehr run`."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start `lehr run`. In its own session: Ctrl-C is for the demo, which then ends it."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *LEHR,
                "run",
                cwd=self._folder,
                env=environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def kill(self) -> None:
        """End it as a power cut would: without a word."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Ask it to end; insist after some seconds. Production continues."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()

    async def ended(self) -> int:
        """Wait until it exits, and return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    def check_running(self) -> None:
        """Raise a LehrError, with its last output, if it has ended."""
        if self._process is not None and self._process.returncode is not None:
            what = f"`lehr run` ended with {self._process.returncode}"
            raise LehrError(what, code="DEM109", why=self.last_words().rpartition("\n")[2])

    def last_words(self) -> str:
        """The end of its output; empty before it was started."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-12:])

    async def ask(self, *arguments: str) -> tuple[int, str]:
        """Run a `lehr` command in the workspace. Returns its exit code and all its output."""
        process = await asyncio.create_subprocess_exec(
            *(*LEHR, *arguments),
            cwd=self._folder,
            env=environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading | None]:
        """What the state contains now; None while it has nothing yet."""
        if not (self.state / SOCKET).exists():  # made after the state file
            yield None
            return
        with contextlib.closing(wiring.open_store(self.state, read_only=True)) as store:
            partitions = store.intent.partitions()
            if not partitions:
                yield None
                return
            first = partitions[0]
            yield Reading(store, first, self._clock.now(), _inert)

    def attempt(self) -> Attempt | None:
        """Result of the last pass over the source."""
        with self.reading() as reading:
            return None if reading is None else reading.records.attempt(reading.partition)

    def waiting(self) -> list[str]:
        """A line for each asset that is not as the newest incarnation has it; all are, if there is none."""
        with self.reading() as reading:
            if reading is None:
                return ["nothing is published yet"]
            found = not_converged(reading, rows(reading))
            return [f"{row.id}: {row.status} {row.reason} {row.message}" for row in found]

    async def stop_production(self) -> None:
        """End the supervisords of this state folder, and thereby every process they keep up."""
        await asyncio.gather(*map(_end, self.state.glob("supervisor/*/supervisord.pid")))


async def _end(record: Path) -> None:
    """End the supervisord whose pid `record` holds, if that is what this pid still is."""
    handle = _handle(record)
    if handle is None:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        await _gone(handle)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def _handle(record: Path) -> int | None:
    """A pidfd of the process whose pid `record` holds; None unless it works in the folder of `record`."""
    try:
        pid = int(record.read_text())
        handle = os.pidfd_open(pid)
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        if os.path.samefile(f"/proc/{pid}/cwd", record.parent):
            return handle
    os.close(handle)
    return None


async def _gone(handle: int) -> None:
    """Wait until the process behind a pidfd has ended, but not for ever."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await ended.wait()
    except TimeoutError:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        loop.remove_reader(handle)


@functools.cache
def _registry() -> Registry:
    """All types; the examples declare none of their own. Slow at the first call."""
    return wiring.registry()


def _inert(type: str) -> bool:
    return _registry().inert(type)

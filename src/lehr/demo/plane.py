"""A control plane in its own process, used as any user would."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from lehr import wiring
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.control.socket import SOCKET
from lehr.control.state_folder import default_state
from lehr.demo.repository import environment, run_program
from lehr.model.attempt import Attempt
from lehr.model.operation import Operation
from lehr.query.asset_rows import rows
from lehr.query.partition_view import Reading
from lehr.query.wait_conditions import not_converged

LEHR = (sys.executable, "-c", "import sys; from lehr.cli.main import main; sys.exit(main())")
"""The program itself, whether it is installed or only importable."""

_STOP_SECONDS = 20.0


def program() -> str:
    """The command for `lehr`: its full path if it is not in PATH."""
    beside = Path(sys.executable).with_name("lehr")
    return "lehr" if shutil.which("lehr") or not beside.exists() else str(beside)


class Plane:
    """`lehr run` on the workspace at `folder`, and its state.

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

    async def start(self, *arguments: str) -> None:
        """Start `lehr run` in its own session: Ctrl-C is for the demo, which then ends it."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *LEHR,
                "run",
                *arguments,
                cwd=self._folder,
                env=environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def kill(self) -> None:
        """End it as a power cut would: without notice."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Terminate it; kill it after some seconds. Production continues."""
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
            what = f"`lehr run` exited with {self._process.returncode}"
            raise LehrError(what, code="DEM109", why=self.end_of_log().rpartition("\n")[2])

    def end_of_log(self) -> str:
        """The end of its output; empty before it was started."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-12:])

    async def ask(self, *arguments: str) -> tuple[int, str]:
        """Run a `lehr` command in the workspace. Returns its exit code and all its output."""
        code, output, _errors = await run_program((*LEHR, *arguments), self._folder)
        return code, output

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading | None]:
        """The current content of the state; None while it is empty."""
        if not (self.state / SOCKET).exists():  # made after the state file
            yield None
            return
        with contextlib.closing(wiring.open_store(self.state, read_only=True)) as store:
            partitions = store.intent.partitions()
            if not partitions:
                yield None
                return
            first = partitions[0]
            yield Reading(store, first, self._clock.now(), lambda kind: wiring.known_types().inert(kind))

    @contextlib.contextmanager
    def content(self) -> Iterator[Reading]:
        """As `reading`, once something was published."""
        with self.reading() as reading:
            assert reading is not None
            yield reading

    def operations(self, limit: int = 10_000) -> list[Operation]:
        """Pushes, newest first."""
        with self.content() as reading:
            return reading.records.operations(reading.partition, limit=limit)

    def attempt(self) -> Attempt | None:
        """Result of the last pass over the source."""
        with self.reading() as reading:
            return None if reading is None else reading.records.attempt(reading.partition)

    def waiting(self) -> list[str]:
        """A line for each asset that does not match the newest incarnation; empty if all do."""
        with self.reading() as reading:
            if reading is None:
                return ["nothing published yet"]
            found = not_converged(reading, rows(reading))
            return [f"{row.id}: {row.status} {row.reason} {row.message}" for row in found]

    async def stop_production(self) -> None:
        """End the supervisords of this state folder, and with them all their processes."""
        await asyncio.gather(*map(_end, self.state.glob("supervisor/*/supervisord.pid")))


async def _end(record: Path) -> None:
    """End the supervisord whose pid is in `record`, if the pid still belongs to it."""
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
    """A pidfd of the process whose pid is in `record`; None unless it runs in the folder of `record`."""
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
    """Wait until the process behind a pidfd has ended, but not forever."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await ended.wait()
    except TimeoutError:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        loop.remove_reader(handle)

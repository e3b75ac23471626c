"""Health probes: GET, and 200 is healthy."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from lehr.base.clock import Clock
from lehr.plugins.process import procfs
from lehr.plugins.process.observation import Health, Observation, Program, State
from lehr.plugins.process.render import Replica

PROBE_TIMEOUT = 2.0  # seconds for one probe
_BETWEEN = 0.25  # seconds between two probes of a replica that fails
_AT_ONCE = 64
_STATUS_LINE = re.compile(r"HTTP/[0-9.]+ +([0-9]{3})(?![^ \r\n])")
_CUT_OFF = (asyncio.IncompleteReadError, asyncio.LimitOverrunError)


async def probe(url: str, timeout: float) -> str | None:
    """None if GET `url` answers 200 within `timeout` seconds, otherwise what happened instead."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        async with asyncio.timeout(timeout):
            line = await _status_line(host, port, path)
    except TimeoutError:
        return f"{url} did not answer in {timeout:.3g} s"
    except (OSError, ValueError, *_CUT_OFF) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{url}: {reason or type(error).__name__}"
    found = _STATUS_LINE.match(line)
    if found is None:
        return f"{url} does not speak HTTP"  # and its answer may hold anything, such as a secret
    return None if found[1] == "200" else f"{url} answered {found[1]}"


async def check(replica: Replica, pid: int | None, timeout: float) -> str | None:
    """None if a replica is healthy, as a look at process `pid` and a probe show; otherwise why not."""
    if pid is not None and procfs.suspended(pid):
        return f"process {pid} is stopped by a signal, such as SIGSTOP"
    return await probe(replica.health_url, timeout) if replica.health_url else None


async def assess(intended: Sequence[Replica], observation: Observation, clock: Clock) -> dict[int, Health]:
    """Health of each replica that runs with the right content.

    A replica that fails its probe is starting while it is younger than its start timeout, and
    unhealthy when it keeps failing for its health timeout. So this may take that long.
    """
    gate = asyncio.Semaphore(_AT_ONCE)
    found: dict[int, Health] = {}

    async def one(replica: Replica, program: Program) -> None:
        found[replica.index] = await _health(replica, program, clock, gate)

    programs = {(item.index, item.group): item for item in observation.programs if item.live}
    async with asyncio.TaskGroup() as tasks:
        for replica in intended:
            program = programs.get((replica.index, replica.group))
            if program is not None and program.content == replica.content:
                tasks.create_task(one(replica, program))
    return found


async def _health(replica: Replica, program: Program, clock: Clock, gate: asyncio.Semaphore) -> Health:
    if not replica.health_url and program.state is State.STARTING:
        return Health.STARTING
    deadline = clock.monotonic() + replica.health_timeout
    while True:
        async with gate:
            failure = await check(replica, program.pid, min(PROBE_TIMEOUT, replica.health_timeout))
        if failure is None:
            return Health.HEALTHY
        if program.age < replica.start_timeout:
            return Health.STARTING
        if clock.monotonic() >= deadline:
            return Health.UNHEALTHY
        await clock.sleep(_BETWEEN)


async def _status_line(host: str, port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        bracketed = f"[{host}]" if ":" in host else host
        request = f"GET {path} HTTP/1.1\r\nHost: {bracketed}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        line = await reader.readuntil(b"\n")
        with contextlib.suppress(*_CUT_OFF):
            await reader.readuntil(b"\r\n\r\n")  # so that the server is not cut off in mid-answer
        return line.decode("latin-1")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

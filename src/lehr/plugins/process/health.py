"""Health of replicas: a look at their processes, and the probes that intent declares."""

from __future__ import annotations

import asyncio
import functools
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lehr.base.clock import Clock
from lehr.model.asset import AssetKey
from lehr.plugins.process import procfs
from lehr.plugins.process.commands import await_end, how_it_ended
from lehr.plugins.process.http_probe import CUT_OFF, get
from lehr.plugins.process.observation import Health, Observation, Program, State
from lehr.plugins.process.probe import Probe
from lehr.plugins.process.render import Replica, asset_name
from lehr.plugins.process.supervisord import LAUNCHER

_BETWEEN = 0.25  # seconds between two probes of a replica that fails
_AT_ONCE = 64


class Assessment(NamedTuple):
    """The health of a replica, and why it is not healthy."""

    health: Health
    why: str = ""


class Probes:
    """Probes the replicas of all assets.

    Args:
        root: `<state>/supervisor`.
        clock: time.
        run: runs what blocks, off the event loop.
    """

    def __init__(self, root: Path, clock: Clock, run: Callable[..., Awaitable[Any]]) -> None:
        self._root = root
        self._clock = clock
        self._run = run

    async def failure(self, key: AssetKey, replica: Replica, pid: int | None) -> str | None:
        """None if a replica is live, as a look at process `pid` and its probe show; otherwise why not.

        Args:
            key: of the asset.
            replica: to ask.
            pid: of its process.
        """
        if pid is not None and procfs.suspended(pid):
            return f"process {pid} is stopped by a signal, such as SIGSTOP"
        return await self._failure(key, replica, replica.health, pid)

    async def unreadiness(self, key: AssetKey, replica: Replica, pid: int | None) -> str | None:
        """None if a replica is ready, otherwise why not. Arguments as above."""
        return await self._failure(key, replica, replica.readiness, pid)

    async def assess(
        self, key: AssetKey, intended: Sequence[Replica], observation: Observation
    ) -> dict[int, Assessment]:
        """The health of each replica that runs with the right content.

        A replica that fails its probe is starting while it is younger than its start timeout, and
        unhealthy or not ready when it keeps failing for its health timeout. So this may take that long.
        """
        found: dict[int, Assessment] = {}
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(replica: Replica, program: Program) -> None:
            found[replica.index] = await self._assessment(key, replica, program, gate)

        programs = {(item.index, item.group): item for item in observation.programs if item.live}
        async with asyncio.TaskGroup() as tasks:
            for replica in intended:
                program = programs.get((replica.index, replica.group))
                if program is not None and program.content == replica.content:
                    tasks.create_task(one(replica, program))
        return found

    async def _assessment(
        self, key: AssetKey, replica: Replica, program: Program, gate: asyncio.Semaphore
    ) -> Assessment:
        if replica.health is None and program.state is State.STARTING:
            return Assessment(Health.STARTING)
        deadline = self._clock.monotonic() + replica.health_timeout
        young = program.age < replica.start_timeout
        for ask, bad in ((self.failure, Health.UNHEALTHY), (self.unreadiness, Health.NOT_READY)):
            while True:
                async with gate:
                    why = await ask(key, replica, program.pid)
                if why is None:
                    break
                if young:
                    return Assessment(Health.STARTING if bad is Health.UNHEALTHY else bad, why)
                if self._clock.monotonic() >= deadline:
                    return Assessment(bad, why)
                await self._clock.sleep(_BETWEEN)
        return Assessment(Health.HEALTHY)

    async def _failure(
        self, key: AssetKey, replica: Replica, probe: Probe | None, pid: int | None
    ) -> str | None:
        if probe is None:
            return None
        timeout = min(probe.timeout_seconds, replica.health_timeout)
        if probe.command:
            return await self._command(key, replica, probe.command, pid, timeout)
        return await asked(probe, timeout)

    async def _command(
        self, key: AssetKey, replica: Replica, command: Sequence[str], pid: int | None, timeout: float
    ) -> str | None:
        definition = self._root / replica.group / "assets" / asset_name(key) / f"{replica.index}.json"
        limit = str(timeout + 1)  # ends it even if Lehr is killed
        start = functools.partial(
            subprocess.Popen,
            (*LAUNCHER, str(definition), limit, str(pid or ""), *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        status = await await_end(await self._run(start), self._clock, timeout)
        if status == 0:
            return None
        how = f"did not end in {timeout:.3g} s" if status is None else how_it_ended(status)
        return f"its probe `{command[0]}` {how}"


async def asked(probe: Probe, timeout: float) -> str | None:
    """None if a probe by HTTP or TCP succeeds within `timeout` seconds, otherwise what happened instead."""
    address = probe.url or probe.tcp
    try:
        async with asyncio.timeout(timeout):
            return await (get(probe) if probe.url else _connect(probe.tcp))
    except TimeoutError:
        return f"{address} did not answer in {timeout:.3g} s"
    except (OSError, ValueError, *CUT_OFF) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{address}: {reason or type(error).__name__}"


async def _connect(address: str) -> None:
    host, _, port = address.rpartition(":")
    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    writer.close()

"""Notices between two diffs that replicas have ended, were stopped by a signal, or changed their health.

It only hints: the diff that follows decides. An asset is reported once, and watched again from its next diff
on. Of each process one small file is read in each round; each replica is probed once in the interval that its
asset declares, counted from its last diff.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lehr.base.clock import Clock
from lehr.model.asset import AssetKey
from lehr.plugins.process import procfs
from lehr.plugins.process.health import Assessment, Probes
from lehr.plugins.process.observation import Health, Observation
from lehr.plugins.process.render import Replica

_AT_ONCE = 256  # probes of assets


class _Asked(NamedTuple):
    """Replicas to probe, each with its pid, and whether it was healthy and ready at the last diff.

    Attributes:
        due: monotonic seconds.
    """

    replicas: tuple[tuple[Replica, int | None, bool], ...]
    due: float


class Vigil:
    """Watches the replicas of all assets, as their diffs have found them.

    Args:
        probes: of replicas.
        clock: time.
        run: runs what blocks, off the event loop.
    """

    def __init__(self, probes: Probes, clock: Clock, run: Callable[..., Awaitable[Any]]) -> None:
        self._probes = probes
        self._clock = clock
        self._run = run
        self._processes: dict[AssetKey, tuple[procfs.Parentage, ...]] = {}
        self._asked: dict[AssetKey, _Asked] = {}
        self._changed: set[AssetKey] = set()
        self._probing: dict[AssetKey, asyncio.Task[None]] = {}

    def observed(self, key: AssetKey, observation: Observation) -> None:
        """Watch the processes that were observed, instead of those before."""
        self._forget(key)
        if observation.processes:
            self._processes[key] = observation.processes

    def assessed(
        self,
        key: AssetKey,
        intended: Sequence[Replica],
        observation: Observation,
        found: Mapping[int, Assessment],
    ) -> None:
        """Probe the replicas that were assessed."""
        pids = {program.index: program.pid for program in observation.programs if program.live}
        replicas = tuple(
            (replica, pids.get(replica.index), found[replica.index].health is Health.HEALTHY)
            for replica in intended
            if replica.index in found and (replica.health is not None or replica.readiness is not None)
        )
        if replicas and key in self._processes:
            self._asked[key] = _Asked(
                replicas, self._clock.monotonic() + _first(key, intended[0].health_interval)
            )

    async def changed(self) -> list[AssetKey]:
        """One round: the assets that have changed."""
        watched = dict(self._processes)
        ended = await self._run(_ended, watched) if watched else []
        now = self._clock.monotonic()
        for key, asked in list(self._asked.items()):
            if len(self._probing) >= _AT_ONCE:
                break
            if asked.due <= now and key not in self._probing:
                again = asked._replace(due=now + asked.replicas[0][0].health_interval)
                self._asked[key] = again
                self._probing[key] = asyncio.create_task(self._probe(key, again))
        found = [key for key in (*ended, *self._changed) if key in self._processes]
        self._changed.clear()
        for key in found:
            self._forget(key)
        return list(dict.fromkeys(found))

    async def close(self) -> None:
        """Cancel probes under way."""
        tasks = list(self._probing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: AssetKey) -> None:
        self._processes.pop(key, None)
        self._asked.pop(key, None)
        self._changed.discard(key)

    async def _probe(self, key: AssetKey, asked: _Asked) -> None:
        try:
            for replica, pid, well in asked.replicas:
                failure = await self._probes.failure(key, replica, pid)
                if failure is None:
                    failure = await self._probes.unreadiness(key, replica, pid)
                if (failure is None) is not well:
                    if self._asked.get(key) is asked:  # no diff has looked in the meantime
                        self._changed.add(key)
                    return
        finally:
            del self._probing[key]


def _first(key: AssetKey, interval: float) -> float:
    """Seconds until the first probe: different for each asset, so that they are not all probed at once."""
    return interval * (0.5 + zlib.crc32(str(key).encode()) / 2**33)


def _ended(watched: Mapping[AssetKey, tuple[procfs.Parentage, ...]]) -> list[AssetKey]:
    return [
        key
        for key, processes in watched.items()
        if any(procfs.parentage(item.process.pid) != item for item in processes)
    ]

"""Carries out a plan without losing a request: one step, one file, one answer of Envoy at a time.

First new parts are added next to the old, from the endpoints up to the listener; then parts to remove get no
new requests and finish theirs; then they are removed, from the listener down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from lehr.base.blocking import Blocking, Tracked
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetKey
from lehr.plugins.balancer import admin, folder
from lehr.plugins.balancer.compare import serving
from lehr.plugins.balancer.envoy import (
    CLUSTERS,
    ENDPOINTS,
    LISTENERS,
    ROUTES,
    EnvoyConfig,
    Pool,
    endpoints_file,
    render,
    subscription,
)
from lehr.plugins.balancer.running_state import Running

_POLL = 0.03  # seconds between two checks for something that is about to happen
_PATIENCE = 5.0  # seconds that Envoy may take to read a file
_SETTLED = 0.3  # seconds without a request after which no worker of Envoy chooses a backend that should go
_QUIET = 1.0  # seconds without a request after which clients have gone elsewhere


class Site(NamedTuple):
    """State that all pushes share: threads, writes that have not returned yet, and time."""

    blocking: Blocking
    writes: Tracked
    clock: Clock


class PlanExecution:
    """The steps of one push.

    Args:
        site: threads and time.
        key: of the asset.
        plan: the intended configuration.
        running: what Envoy runs before the first step.
    """

    def __init__(self, site: Site, key: AssetKey, plan: EnvoyConfig, running: Running) -> None:
        self._site = site
        self._key = key
        self._plan = plan
        self._before = running
        self._put: dict[str, bytes] = {}
        self._admin = plan.balancer.admin

    async def grow(self) -> None:
        """Add new parts next to the old. Afterwards parts to remove get no new requests.

        Writes every file, even if it is already right: Envoy may have read a different one.

        Raises:
            StalledError, TransientError: Envoy refuses a file, or does not read it.
        """
        if not self._plan.pools:
            return
        files = render(_with_leaving(self._plan, self._before))
        for name in sorted(files, key=_rank):
            await self._place(name, files[name])
            if name == CLUSTERS:
                await self._await_warm()

    async def await_idle(self) -> None:
        """Wait until parts to remove have answered their requests; at most as long as a request may take."""
        leaving = _leaving(self._plan, self._before)
        if not self._plan.pools or not leaving:
            return
        now = self._site.clock.monotonic()
        deadline, seen, since = now + self._plan.balancer.timeout_seconds, -1, now
        # A worker of Envoy uses its old routes until it takes up the new ones; nothing shows when all have.
        while (now := self._site.clock.monotonic()) < deadline and now < since + _SETTLED:
            running = await self._running()
            hosts = [
                host
                for name, found in running.pools.items()
                for host in found
                if (name, host.address) in leaving
            ]
            total = sum(host.total for host in hosts)
            if total != seen or any(host.requests for host in hosts):
                seen, since = total, now
            await self._site.clock.sleep(_POLL)

    async def await_quiet(self) -> None:
        """Wait until clients send no more requests, or have had `drain_seconds` to notice."""
        now = self._site.clock.monotonic()
        deadline, seen, since = now + self._plan.balancer.drain_seconds, -1, now
        while (now := self._site.clock.monotonic()) < deadline and now < since + _QUIET:
            running = await self._running()
            total = _requests(running)
            if total != seen or any(host.requests for found in running.pools.values() for host in found):
                seen, since = total, now
            await self._site.clock.sleep(_POLL)

    async def shrink(self) -> None:
        """Remove the parts that should go.

        Raises:
            StalledError, TransientError: as `grow`.
        """
        files = render(self._plan)
        for name in sorted(files, key=_rank, reverse=True):
            if self._put.get(name) != files[name]:
                await self._place(name, files[name])
            if name == LISTENERS and not self._plan.pools:
                await self._await_closed()
        present = await self._site.blocking.run(folder.read, self._plan.folder)
        for name in sorted(present.keys() - files.keys()):
            await self._site.writes.run(self._key, folder.remove, self._plan.folder, name)

    async def _await_warm(self) -> None:
        """Wait until Envoy's workers know all pools: a request for one that they do not know fails.

        Envoy withholds a new pool from its workers until it has checked each endpoint's health once.
        """
        deadline = self._site.clock.monotonic() + _PATIENCE
        while (await self._statistics()).get("cluster_manager.warming_clusters"):
            if self._site.clock.monotonic() >= deadline:
                raise TransientError(
                    f"Envoy at {self._admin} has not activated its new pools",
                    code="BAL119",
                    why=f"their endpoints have not had a first health check within {_PATIENCE:g} s",
                    fix="check that the endpoints answer; Lehr retries automatically",
                )
            await self._site.clock.sleep(_POLL)

    async def _await_closed(self) -> None:
        """Wait until the listener's connections are closed."""
        balancer = self._plan.balancer
        deadline = self._site.clock.monotonic() + balancer.timeout_seconds + balancer.drain_seconds
        while self._site.clock.monotonic() < deadline:
            running = await self._running()
            if not running.statistics.get("listener_manager.total_listeners_draining"):
                return
            await self._site.clock.sleep(_POLL)

    async def _place(self, name: str, content: bytes) -> None:
        """Write one file, and wait until Envoy has read it.

        Envoy counts its attempts, which proves that it read this file even if the last one had the same
        version.
        """
        counts = await self._counts(name)
        await self._site.writes.run(self._key, folder.place, self._plan.folder, name, content)
        self._put[name] = content
        deadline = self._site.clock.monotonic() + _PATIENCE
        while counts is not None:
            now = await self._counts(name)
            if now is not None and now[0] != counts[0]:
                if now[1] > counts[1]:
                    await self._refused(name)
                return
            if self._site.clock.monotonic() >= deadline:
                raise TransientError(
                    f"Envoy at {self._admin} does not read {self._plan.folder}/{name}", code="BAL105"
                )
            await self._site.clock.sleep(_POLL)

    async def _counts(self, name: str) -> tuple[int, int] | None:
        """How often Envoy has tried to read a file, and how often it failed; None if it need not read it."""
        found = await self._statistics()
        if not self._subscribed(name, found):
            return None
        prefix = subscription(name)
        failures = sum(found.get(f"{prefix}.update_{word}") or 0 for word in ("rejected", "failure"))
        return found.get(f"{prefix}.update_attempt") or 0, failures

    def _subscribed(self, name: str, found: dict[str, object]) -> bool:
        """False for a file that nothing refers to yet: Envoy reads it when something does."""
        if name in (LISTENERS, CLUSTERS):
            return True
        if name == ROUTES:
            return self._before.listen is not None
        pools = {endpoints_file(pool) for pool in self._before.pools}
        return name in pools and f"{subscription(name)}.update_attempt" in found

    async def _refused(self, name: str) -> None:
        running = await self._running()
        why = running.refused if name == LISTENERS else ""
        if "Address already in use" in why:
            listen = self._plan.balancer.listen
            raise TransientError(
                f"Envoy cannot listen on {listen}",
                code="BAL106",
                why=why,
                fix="stop the program that listens there, or change `listen`",
            )
        raise StalledError(f"Envoy refuses {name}", code="BAL107", why=why, fix="see Envoy's log for details")

    async def _statistics(self) -> dict[str, Any]:
        return await self._site.blocking.run(admin.statistics, self._admin)

    async def _running(self) -> Running:
        return await self._site.blocking.run(admin.running, self._admin)


def _with_leaving(plan: EnvoyConfig, running: Running) -> EnvoyConfig:
    """The plan, with running parts that should go still there, but without new requests."""
    pools = dict(plan.pools)
    for name in running.pools:
        if name in pools:
            leaving = sorted(_addresses(running, name) - set(pools[name].endpoints))
            pools[name] = msgspec.structs.replace(pools[name], draining=tuple(leaving))
        else:
            stays = serving(running, name)
            pools[name] = Pool(name, 0, tuple(stays), tuple(_addresses(running, name) - stays))
    return msgspec.structs.replace(plan, pools=pools)


def _leaving(plan: EnvoyConfig, running: Running) -> set[tuple[str, str]]:
    """Pool and address of every endpoint that should get no more requests."""
    found: set[tuple[str, str]] = set()
    for name in running.pools:
        pool = plan.pools.get(name)
        stays = set(pool.endpoints) if pool is not None and pool.weight else set()
        found.update((name, address) for address in _addresses(running, name) - stays)
    return found


def _addresses(running: Running, pool: str) -> set[str]:
    return {host.address for host in running.pools[pool] if not host.failover}


def _requests(running: Running) -> int:
    return sum(_counters(running.statistics.items()))


def _counters(statistics: Iterable[tuple[str, object]]) -> Iterable[int]:
    for name, value in statistics:
        if name.startswith("cluster.") and name.endswith(".upstream_rq_total") and isinstance(value, int):
            yield value


def _rank(name: str) -> int:
    """The order in which files are written when something is added; reversed when it is removed."""
    order = {CLUSTERS: 1, ROUTES: 2, LISTENERS: 3}
    assert name in order or name.startswith(f"{ENDPOINTS}/")
    return order.get(name, 0)

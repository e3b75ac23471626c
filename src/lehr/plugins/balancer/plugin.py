"""The asset plugin of `lehr.LoadBalancer`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write, `intent` turns it into a plan, `envoy` the plan into files;
`admin` asks Envoy what it runs, `running_state` holds the answers as values; `compare` finds differences and
the effects of fixing them; `plan_execution` fixes them in steps, through the files in `folder`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from lehr.base.blocking import Blocking, Tracked
from lehr.base.clock import Clock
from lehr.base.digest import digest
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetKey
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.plugins.balancer import admin, folder
from lehr.plugins.balancer.admin import UnreachableError
from lehr.plugins.balancer.compare import differences
from lehr.plugins.balancer.envoy import LISTENERS, EnvoyConfig
from lehr.plugins.balancer.intent import plan_for, units
from lehr.plugins.balancer.payload import LOAD_BALANCER
from lehr.plugins.balancer.plan_execution import PlanExecution, Site
from lehr.plugins.balancer.running_state import NOTHING, Running
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits

_WATCH_EVERY = 1.0  # seconds
_SETTLE = 10.0  # seconds that Envoy may take to apply what it has read: it probes new backends first
_POLL = 0.05
_UNREACHABLE = "unreachable"


class _Watched(msgspec.Struct):
    """An Envoy that `diff` has read, and its state at that time."""

    admin: str
    folder: str
    mark: str


class BalancerPlugin(AssetPlugin):
    """Keeps Envoys configured as intended.

    * Production is what a running Envoy reports, and the files that it would start with.
    * A diff names the listener, weights, endpoints and files that differ. Its effects have the capacity
      behind the balancer before and after: from both follows whether a job goes first, or its balancer.
    * A push adds new parts next to the old, file by file, and waits until Envoy has read each; then lets
      parts that should go finish their requests; then removes them. DRAINED fails the health check, so that
      balancers in front of this one go elsewhere, and waits for that; ABSENT closes the listener and then
      removes everything behind it.
    * Its outcome is looked up: `status` waits for the write that a cancelled push had begun, and every push
      starts from what Envoy runs then.
    * It never removes anything that requests under way use, and never starts or stops an Envoy.

    Args:
        base: the directory that relative folders start from.
        blocking: a pool of this plugin's own, closed with it.
        clock: time.
    """

    types = (LOAD_BALANCER,)
    traits = Traits(goals=frozenset({Goal.DRAINED, Goal.ABSENT}), resync=30.0)

    def __init__(self, base: Path, blocking: Blocking, clock: Clock) -> None:
        self._base = str(base.absolute())
        self._blocking = blocking
        self._clock = clock
        self._site = Site(blocking, Tracked(blocking), clock)
        self._watched: dict[AssetKey, _Watched] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare intent with what Envoy runs; see `compare.differences` for the paths."""
        plan = plan_for(target, read, self._base)
        behind = units(plan, read, target.id)
        place = _Watched(plan.balancer.admin, plan.folder, "")
        self._watched[target.key] = place
        # Marked before it is read, so that no change is missed in between.
        place.mark = await self._blocking.run(_mark, place.admin, place.folder)
        found = differences(plan, *await self._look(plan, target.goal), behind)
        if found.empty and target.goal is Goal.ABSENT:
            self._watched.pop(target.key, None)  # nothing left that could change
        return found

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Add new parts next to the old, let the old finish, remove them, and check again."""
        plan = plan_for(target, read, self._base)
        behind = units(plan, read, target.id)
        files, running = await self._look(plan, target.goal)
        if differences(plan, files, running, behind).empty:
            return DONE
        if running is NOTHING:  # and ABSENT is the goal
            await self._site.writes.run(target.key, _clear, plan.folder)
            return DONE
        applying = PlanExecution(self._site, target.key, plan, running)
        push.progress("adding")
        await applying.grow()
        push.progress("draining")
        await applying.await_idle()
        if plan.drained:
            await applying.await_quiet()
        if push.superseded:
            return Outcome(Result.FAILED, "superseded")
        push.progress("removing")
        await applying.shrink()
        return await self._settled(plan, target.goal, behind)

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a write that a cancelled push had begun has not returned."""
        return Progress.RUNNING if self._site.writes.busy(operation.key) else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets whose Envoy was restarted, came back or read something, or whose files changed."""
        while True:
            await self._clock.sleep(_WATCH_EVERY)
            watched = list(self._watched.items())
            places = [place for _, place in watched]
            before = [place.mark for place in places]
            marks = await asyncio.gather(
                *(self._blocking.run(_mark, place.admin, place.folder) for place in places)
            )
            for (key, place), old, new in zip(watched, before, marks, strict=True):
                # A diff that ran since then has seen everything.
                if new != old == place.mark and self._watched.get(key) is place:
                    place.mark = new
                    yield key

    async def close(self) -> None:
        self._blocking.close()

    async def _look(self, plan: EnvoyConfig, goal: Goal) -> tuple[dict[str, bytes], Running]:
        """The files, and what Envoy runs.

        Raises:
            StalledError: the Envoy watches another folder.
            TransientError: it does not answer; one that does not run counts as absent.
        """
        return await self._blocking.run(_look, plan, goal)

    async def _settled(self, plan: EnvoyConfig, goal: Goal, behind: dict[str, int]) -> Outcome:
        deadline = self._clock.monotonic() + _SETTLE
        while True:
            files, running = await self._look(plan, goal)
            left = differences(plan, files, running, behind)
            pending = any(host.pending for hosts in running.pools.values() for host in hosts)
            if left.empty and not pending:
                return DONE
            if self._clock.monotonic() >= deadline:
                if left.empty:
                    return DONE  # whether backends can be probed is not this plugin's responsibility
                reason = f": {running.refused}" if running.refused else ""
                return Outcome(Result.FAILED, f"Envoy has not applied {left.summary()}{reason}")
            await self._clock.sleep(_POLL)


def _look(plan: EnvoyConfig, goal: Goal) -> tuple[dict[str, bytes], Running]:
    try:
        running = admin.running(plan.balancer.admin)
    except UnreachableError:
        if goal is not Goal.ABSENT:
            raise
        return folder.read(plan.folder), NOTHING
    ours = os.path.join(plan.folder, LISTENERS)
    if os.path.realpath(running.watched) != os.path.realpath(ours):
        raise StalledError(
            f"Envoy at {plan.balancer.admin} does not watch {ours}",
            code="BAL118",
            why=f"it watches {running.watched}" if running.watched else "it watches no file",
            fix="correct `admin` or `folder`, or the configuration that this Envoy starts with",
        )
    return folder.read(plan.folder), running


def _mark(address: str, place: str) -> str:
    """Equal as long as nothing has happened to an Envoy or its files."""
    try:
        statistics = admin.statistics(address)
        names = folder.names(place)
    except TransientError:
        return _UNREACHABLE
    counted = [(name, value) for name, value in sorted(statistics.items()) if ".upstream_rq" not in name]
    return digest([counted, [(name, folder.stamp(place, name)) for name in names]])


def _clear(place: str) -> None:
    for name in folder.read(place):
        folder.remove(place, name)

"""The asset plugin of `lehr.Process`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write, `render` turns it into replicas; `observe` finds which of them
run (values in `observation`), from supervisord and from `procfs`; `health` probes; `plan` finds differences,
and the steps in order that fix them; `rolling_push` carries steps out through `supervisord`, which speaks
`rpc`; `launch` becomes the program; `discovery` drafts intent from running programs, including those of
`strangers`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.digest import Digest, digest
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.plugins.process import discovery, procfs
from lehr.plugins.process.health import assess
from lehr.plugins.process.incidents import notes
from lehr.plugins.process.observation import Health, Observation
from lehr.plugins.process.observe import observe, underway
from lehr.plugins.process.payload import PROCESS, Process
from lehr.plugins.process.plan import Action, Step, batches, differences, steps
from lehr.plugins.process.render import Replica, render
from lehr.plugins.process.rolling_push import Rolling, Site
from lehr.sdk.plugin import AssetPlugin, Fencing, Found, Push, Reader, Traits
from lehr.sdk.secrets import NoSecrets, Secrets, revealed

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
_WATCH_EVERY = 0.5  # seconds
_STATUS_EVERY = 0.05  # seconds
_ENDS_SOON = 2.0  # seconds: most processes need less to end or to start, so no repeated check is needed

_DOING = {
    Action.START: "starting replica {index}",
    Action.MEND: "waiting for replica {index} to be healthy",
    Action.ROLL: "rolling replica {index}",
    Action.STOP: "stopping replica {index}",
    Action.REMOVE: "removing replica {index}",
}


class ProcessPlugin(AssetPlugin):
    """Keeps programs running, with the number of replicas and the content that intent asks for.

    * Production is processes. Each carries marks, in a note and in its environment, with its asset, its
      replica and the content that it was started with; nothing else is remembered.
    * A diff names replicas that are missing, too many, of other content or unhealthy. Its effects have the
      replicas and the version before and after, which balancers and schemas wait for.
    * A push handles a few replicas at a time: it ends the old process and everything left of it, starts the
      new one under a supervisord, and waits until that is healthy; it stops at the first that is not. FENCED
      stops replicas and keeps them defined, ABSENT removes them.
    * Its outcome is looked up: `status` waits for the call that a cancelled push had begun, and for processes
      that end or become their programs; the next diff finds whatever a push that died with Lehr has left.
    * It never starts a replica while a process of the same replica lives, ends a process without its marks,
      or takes a port from another program.

    Args:
        state: Lehr's state directory; the supervisords live in `state/supervisor`.
        blocking: a pool of this plugin's own, closed with it: for files and XML-RPC.
        clock: time.
        base: what relative directories are relative to.
        environment: Lehr's own environment, of which programs get PATH and a few more.
        secrets: provides the variables that are secrets. A push reads them; a diff does not.
    """

    types = (PROCESS,)
    traits = Traits(
        fencing=Fencing.NONE,
        goals=frozenset({Goal.FENCED, Goal.ABSENT}),
        push_timeout=3600.0,  # a roll of many replicas; each wait within it has its own limit
        resync=30.0,
    )

    def __init__(
        self,
        state: Path,
        blocking: Blocking,
        clock: Clock,
        *,
        base: Path = Path("/"),
        environment: Mapping[str, str] | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        own = os.environ if environment is None else environment
        inherited = {name: own[name] for name in _INHERITED if name in own}
        self._site = Site(state.resolve() / "supervisor", blocking, clock, inherited)
        self._secrets = secrets or NoSecrets()
        self._blocking = blocking
        self._base = str(base.absolute())
        self._recovering: dict[AssetKey, float] = {}  # since when; a push reports failures in more detail
        self._watched: dict[AssetKey, tuple[procfs.Parentage, ...]] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare replicas as they run with intent; see `plan.differences` for the paths."""
        intended = _intended(target, read, self._base)
        observation, health = await self._look(target, intended)
        told = notes(observation, self._site.clock.now())
        found = differences(intended, observation, health, target.goal, told)
        return self._patient(target.key, found, max((item.start_timeout for item in intended), default=0.0))

    def _patient(self, key: AssetKey, found: Diff, patience: float) -> Diff:
        """`found`; a replica that has been recovering for longer than a start may take needs a push."""
        if found.empty or found.look_again is None:
            if found.empty:
                self._recovering.pop(key, None)
            return found
        now = self._site.clock.monotonic()
        since = self._recovering.setdefault(key, now)
        return found if now - since < patience else replace(found, look_again=None)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Move one replica at a time to the intent; stop at the first that does not become healthy."""
        payload = read.payload(target.id, Process)
        intended = _intended(target, read, self._base)
        observation, health = await self._look(target, intended)
        secrets = await revealed(self._secrets, payload.environment if intended else {})
        rolling = Rolling(
            self._site, target.key, intended, observation, payload.stop_timeout_seconds, secrets
        )
        for batch in batches(steps(intended, observation, health, target.goal)):
            if push.superseded:
                return Outcome(Result.FAILED, "superseded")
            push.progress(", ".join(_DOING[step.action].format(index=step.index) for step in batch))
            await _take(rolling, batch)
        await self._observe(target, intended)  # so that `watch` knows the new processes
        return DONE

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a call of a cancelled push, or a process that it starts or stops, is unfinished."""
        clock, key = self._site.clock, operation.key
        deadline = clock.monotonic() + _ENDS_SOON
        while True:
            late = clock.monotonic() >= deadline
            try:
                busy = self._site.calls.busy(key) or await self._site.run(underway, self._site.root, key)
            except TransientError:  # a supervisord that is being started does not answer either
                if late:
                    raise
            else:
                if not busy:
                    return Progress.ENDED
                if late:
                    return Progress.RUNNING
            await clock.sleep(_STATUS_EVERY)

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets with a process or supervisord that ended since the last diff."""
        while True:
            await self._site.clock.sleep(_WATCH_EVERY)
            for key in await self._site.run(_ended, dict(self._watched)):
                # Reported once; the next diff records the new processes.
                if self._watched.pop(key, None) is not None:
                    yield key

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """Drafts of programs, by patterns of ids that Lehr runs, by ports, or by names of programs."""
        site = self._site
        find = discovery.drafts
        for draft in await site.run(find, site.root, query, partition, site.inherited, self._base):
            if draft.obstacle:
                yield draft
            else:
                yield replace(draft, obstacle=await self._obstacle(draft, partition))

    async def _obstacle(self, draft: Found, partition: Partition) -> str:
        """What a push of the draft would change; empty if it describes what runs."""
        try:
            payload = msgspec.convert(draft.payload, Process)
        except msgspec.ValidationError as error:
            return f"intent cannot say it: {error}"
        intended = render(payload, partition, self._base, [])
        key = AssetKey(partition, AssetId(draft.id))
        look = self._site.run(_look, self._site.root, key, intended[0].group, len(intended))
        observation, _ = await look
        found = differences(intended, observation, {}, Goal.PRESENT)
        if found.empty:
            return ""
        paths = ", ".join(change.path for change in found.changes)
        return f"it would be changed ({paths}): it was started with more than could be found again"

    async def close(self) -> None:
        self._blocking.close()

    async def _look(self, target: Target, intended: list[Replica]) -> tuple[Observation, dict[int, Health]]:
        observation = await self._observe(target, intended)
        return observation, await assess(intended, observation, self._site.clock)

    async def _observe(self, target: Target, intended: list[Replica]) -> Observation:
        group = intended[0].group if intended else None
        look = self._site.run(_look, self._site.root, target.key, group, len(intended))
        observation, processes = await look
        self._watched.pop(target.key, None)
        if processes:
            self._watched[target.key] = processes
        return observation


def _intended(target: Target, read: Reader, base: str) -> list[Replica]:
    payload = read.payload(target.id, Process)
    if target.goal not in (Goal.PRESENT, *ProcessPlugin.traits.goals):
        raise StalledError(f"a {PROCESS} cannot be brought to the goal {target.goal}", code="PRO105")
    if target.goal is not Goal.PRESENT:
        return []
    digests: list[Digest] = []
    for name in payload.restart_on:
        asset = read.asset(AssetId(name))
        if asset is not None:  # otherwise it was removed: as if `restart_on` did not name it
            digests.append(digest((asset.type, asset.document()["payload"])))
    return render(payload, target.partition, base, digests)


def _look(
    root: Path, key: AssetKey, group: str | None, count: int
) -> tuple[Observation, tuple[procfs.Parentage, ...]]:
    observation = observe(root, key, group, count)
    pids = (program.pid for program in observation.programs if program.pid is not None)
    return observation, tuple(found for pid in pids if (found := procfs.parentage(pid)) is not None)


def _ended(watched: Mapping[AssetKey, tuple[procfs.Parentage, ...]]) -> list[AssetKey]:
    return [
        key
        for key, processes in watched.items()
        if any(procfs.parentage(item.process.pid) != item for item in processes)
    ]


async def _take(rolling: Rolling, batch: list[Step]) -> None:
    results = await asyncio.gather(*(rolling.take(step) for step in batch), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result

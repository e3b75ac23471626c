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
import signal
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.digest import Digest, digest
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.plugins.process import discovery
from lehr.plugins.process.health import Assessment
from lehr.plugins.process.incidents import notes, outputs
from lehr.plugins.process.observation import Health, Observation
from lehr.plugins.process.observe import ObserveRequest, observe, seek, underway
from lehr.plugins.process.payload import PROCESS, Process
from lehr.plugins.process.plan import Action, ReplicaStep, batches, differences, only_unready, steps
from lehr.plugins.process.render import Replica, render
from lehr.plugins.process.rolling_push import RollingPush, Site
from lehr.plugins.process.vigil import Vigil
from lehr.sdk.plugin import AssetPlugin, Fencing, Found, IndexedDiff, Push, Reader, Traits
from lehr.sdk.secrets import NoSecrets, Secrets, revealed

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
_WATCH_EVERY = 0.5  # seconds
_STATUS_EVERY = 0.05  # seconds
_MOST_FAILING = 3  # replicas that are named
_ENDS_SOON = 2.0  # seconds: most processes need less to end or to start, so no repeated check is needed

_DOING = {
    Action.START: "starting replica {index}",
    Action.REPAIR: "waiting for replica {index} to be healthy",
    Action.AWAIT: "waiting for replica {index} to be ready",
    Action.RELOAD: "reloading replica {index}",
    Action.ROLL: "rolling replica {index}",
    Action.STOP: "stopping replica {index}",
    Action.REMOVE: "removing replica {index}",
}


class ProcessPlugin(AssetPlugin):
    """Keeps programs running, with the number of replicas and the content that intent asks for.

    * Production is processes. Each carries marks, in a note and in its environment, with its asset, its
      replica and the content that it was started with; nothing else is remembered.
    * A diff names replicas that are missing, too many, of other content, unhealthy, have something to
      reload, or were not started for the restart that a person requested. Its effects have the replicas and
      the version before and after, which balancers and schemas wait for.
    * A push handles a few replicas at a time: it ends the old process and everything left of it, starts the
      new one under a supervisord (or only reloads it), and waits until that is healthy; it stops at the first
      that is not. FENCED stops replicas and keeps them defined, ABSENT removes them.
    * Its outcome is looked up: `status` waits for the call that a cancelled push had begun, and for processes
      that end or become their programs; the next diff finds whatever a push that died with Lehr has left.
    * It never starts a replica while a process of the same replica lives, ends a process without its marks,
      or takes a port from another program.

    Args:
        state: Lehr's state directory; the supervisords live in `state/supervisor`.
        blocking: a pool of this plugin's own, closed with it: for files and XML-RPC.
        clock: time.
        base: the directory that relative ones start from.
        environment: Lehr's own environment, of which programs get PATH and a few more.
        secrets: provides the variables that are secrets. A push reads them; a diff does not.
    """

    types = (PROCESS,)
    outputs: ClassVar[Mapping[str, OutputNames]] = {
        PROCESS: OutputNames(changing=frozenset({"restarts", "crash_loops"}))
    }
    traits = Traits(
        fencing=Fencing.NONE,
        goals=frozenset({Goal.FENCED, Goal.ABSENT}),
        push_timeout=3600.0,  # a roll of many replicas; each wait within it has its own limit
        resync=30.0,
        restarts=True,
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
        self._vigil = Vigil(self._site.probes, clock, self._site.run)

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare replicas as they run with intent; see `plan.differences` for the paths."""
        intended = _intended(target, read, self._base)
        return await self._compare(target, intended, await self._observe(target, intended))

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """Compare with one call to each supervisord. Each asset is answered once its own probes are."""
        intended: dict[int, list[Replica]] = {}
        for index, (target, read) in enumerate(requests):
            try:
                intended[index] = _intended(target, read, self._base)
            except LehrError as error:
                yield index, error
        sought = {index: (requests[index][0].key, *_size(replicas)) for index, replicas in intended.items()}
        parts: dict[
            tuple[str, ...], dict[int, ObserveRequest]
        ] = {}  # by groups: one that hangs delays no other
        for index, asset in (await self._site.run(_seek_each, self._site.root, sought)).items():
            if isinstance(asset, TransientError):
                yield index, asset
            else:
                parts.setdefault(tuple(asset.places), {})[index] = asset

        async def answer(
            index: int, looks: Awaitable[dict[int, Observation | TransientError]]
        ) -> IndexedDiff:
            target = requests[index][0]
            try:
                seen = (await looks)[index]
                if isinstance(seen, LehrError):
                    return index, seen
                self._vigil.observed(target.key, seen)
                return index, await self._compare(target, intended[index], seen)
            except LehrError as error:
                return index, error

        answers = []
        for part in parts.values():
            looks = asyncio.ensure_future(self._site.run(observe, self._site.root, part))
            answers += [asyncio.create_task(answer(index, looks)) for index in part]
        try:
            for task in asyncio.as_completed(answers):
                yield await task
        finally:
            for task in answers:
                task.cancel()

    async def _compare(self, target: Target, intended: list[Replica], observation: Observation) -> Diff:
        assessed = await self._site.probes.assess(target.key, intended, observation)
        self._vigil.assessed(target.key, intended, observation, assessed)
        now = self._site.clock.now()
        told = (*_failing(assessed), *notes(observation, now))
        found = differences(intended, observation, _words(assessed), target.goal, told)
        if target.goal is Goal.PRESENT:
            found = replace(found, outputs=outputs(observation, now))
        return self._patient(target.key, found, max((item.start_timeout for item in intended), default=0.0))

    def _patient(self, key: AssetKey, found: Diff, patience: float) -> Diff:
        """`found`; a replica that has been recovering for longer than a start may take needs a push."""
        if found.look_again is None or only_unready(found):
            if only_unready(found):
                self._recovering.pop(key, None)
            return found
        now = self._site.clock.monotonic()
        since = self._recovering.setdefault(key, now)
        return found if now - since < patience else replace(found, look_again=None)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Move one replica at a time to the intent; stop at the first that does not become healthy."""
        payload = read.payload(target.id, Process)
        intended = _intended(target, read, self._base)
        observation = await self._observe(target, intended)
        health = _words(await self._site.probes.assess(target.key, intended, observation))
        secrets = await revealed(self._secrets, payload.environment if intended else {})
        stop = signal.Signals[payload.stop_signal], payload.stop_timeout_seconds
        rolling = RollingPush(self._site, target.key, intended, observation, stop, secrets)
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
        """Keys of assets with a process or supervisord that ended, or other health, since the last diff."""
        try:
            while True:
                await self._site.clock.sleep(_WATCH_EVERY)
                for key in await self._vigil.changed():
                    yield key
        finally:
            await self._vigil.close()

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
        """Why a push of the draft would change something; empty if it describes what runs."""
        try:
            payload = msgspec.convert(draft.payload, Process)
        except msgspec.ValidationError as error:
            return f"intent cannot describe it: {error}"
        intended = render(payload, partition, self._base, [])
        key = AssetKey(partition, AssetId(draft.id))
        observation = await self._site.run(_look, self._site.root, key, *_size(intended))
        found = differences(intended, observation, {}, Goal.PRESENT)
        if found.empty:
            return ""
        paths = ", ".join(change.path for change in found.changes)
        return f"it would be changed ({paths}): it was started with settings that could not be recovered"

    async def close(self) -> None:
        self._blocking.close()

    async def _observe(self, target: Target, intended: list[Replica]) -> Observation:
        observation = await self._site.run(_look, self._site.root, target.key, *_size(intended))
        self._vigil.observed(target.key, observation)
        return observation


def _intended(target: Target, read: Reader, base: str) -> list[Replica]:
    payload = read.payload(target.id, Process)
    if target.goal not in (Goal.PRESENT, *ProcessPlugin.traits.goals):
        raise StalledError(f"a {PROCESS} cannot be brought to the goal {target.goal}", code="PRO105")
    if target.goal is not Goal.PRESENT:
        return []
    restart_on, reload_on = _followed(payload.restart_on, read), _followed(payload.reload_on, read)
    return render(payload, target.partition, base, restart_on, reload_on, target.restart)


def _followed(names: Sequence[str], read: Reader) -> list[Digest]:
    found = (read.asset(AssetId(name)) for name in names)
    # One that was removed counts as if it were not named.
    return [digest((asset.type, asset.document()["payload"])) for asset in found if asset is not None]


def _size(intended: Sequence[Replica]) -> tuple[str | None, int]:
    """Group and number of the replicas."""
    return (intended[0].group if intended else None), len(intended)


def _seek_each(
    root: Path, wanted: Mapping[int, tuple[AssetKey, str | None, int]]
) -> dict[int, ObserveRequest | TransientError]:
    found: dict[int, ObserveRequest | TransientError] = {}
    for index, asset in wanted.items():
        try:
            found[index] = seek(root, *asset)
        except TransientError as error:
            found[index] = error
    return found


def _look(root: Path, key: AssetKey, group: str | None, size: int) -> Observation:
    found = observe(root, {0: seek(root, key, group, size)})[0]
    if isinstance(found, TransientError):
        raise found
    return found


def _words(assessed: Mapping[int, Assessment]) -> dict[int, Health]:
    return {index: item.health for index, item in assessed.items()}


def _failing(assessed: Mapping[int, Assessment]) -> list[str]:
    """One line for each of a few replicas that fail a probe."""
    failing = [
        f"replica {index} is {item.health}: {item.why}"
        for index, item in sorted(assessed.items())
        if item.health in (Health.UNHEALTHY, Health.NOT_READY)
    ]
    return failing[:_MOST_FAILING]


async def _take(rolling: RollingPush, batch: list[ReplicaStep]) -> None:
    results = await asyncio.gather(*(rolling.take(step) for step in batch), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result

"""Carries out the steps of one push: stops, starts, and waits for health."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from lehr.base.blocking import Blocking, Tracked
from lehr.base.clock import Clock
from lehr.base.errors import TransientError
from lehr.model.asset import AssetKey
from lehr.plugins.process import procfs
from lehr.plugins.process.commands import await_end, how_it_ended
from lehr.plugins.process.health import Probes
from lehr.plugins.process.observation import LeftBehind, Observation, State
from lehr.plugins.process.observe import left_behind, state_of
from lehr.plugins.process.ownership import Ownership
from lehr.plugins.process.plan import Action, ReplicaStep
from lehr.plugins.process.render import Replica, program_name
from lehr.plugins.process.runnable import check_runnable
from lehr.plugins.process.supervisord import LogMark, Supervisord
from lehr.sdk.secrets import Hidden, SecretValue

P = ParamSpec("P")
T = TypeVar("T")

_POLL = 0.05  # seconds between two checks for something that is about to happen
_POLL_COMMAND = 0.5  # seconds between two probes that are commands
_KILL_GRACE = 5.0  # seconds that the kernel may take to end a killed process
_RETIRE_GRACE = 10.0  # seconds that supervisord may take to shut down
_QUIET = (State.STOPPED, State.FATAL, State.ABSENT)


class Site:
    """Where programs run: the supervisords of one state directory.

    Args:
        root: `<state>/supervisor`, absolute.
        blocking: runs what blocks.
        clock: time.
        inherited: the part of Lehr's environment that programs get.

    Attributes:
        calls: the calls that change something, by asset.
        probes: of the replicas.
    """

    def __init__(self, root: Path, blocking: Blocking, clock: Clock, inherited: Mapping[str, str]) -> None:
        self.root = root
        self.clock = clock
        self.inherited = inherited
        self.calls = Tracked(blocking)
        self._blocking = blocking
        self._locks: dict[str, asyncio.Lock] = {}
        self.probes = Probes(root, clock, self.run)

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `call`, off the event loop; for read-only calls."""
        return await self._blocking.run(call, *args, **kwargs)

    def supervisord(self, group: str) -> Supervisord:
        """The supervisord of `group`, whether it runs or not."""
        return Supervisord(self.root, group, self.inherited)

    def lock(self, group: str) -> asyncio.Lock:
        """Held while the set of programs of `group`, or its supervisord, changes."""
        return self._locks.setdefault(group, asyncio.Lock())


class RollingPush:
    """The steps of one push of one asset.

    Args:
        site: where the programs run.
        key: of the asset.
        intended: all replicas that intent asks for.
        observation: what the steps were planned from.
        stop: signal that stops a replica, and seconds from that to SIGKILL.
        secrets: further variables of the programs, which are hidden in what they print.
    """

    def __init__(
        self,
        site: Site,
        key: AssetKey,
        intended: Sequence[Replica],
        observation: Observation,
        stop: tuple[signal.Signals, float],
        secrets: Mapping[str, SecretValue],
    ) -> None:
        self._site = site
        self._key = key
        self._intended = {replica.index: replica for replica in intended}
        self._observation = observation
        self._stop_signal, self._patience = stop
        self._secrets = secrets
        self._hidden = Hidden(secrets.values())

    async def take(self, step: ReplicaStep) -> None:
        """Take one step; when it returns, the replica is as intended.

        Raises:
            StalledError: the program or its directory does not exist.
            TransientError: it failed; the message gives the reason, with the last lines of stderr and stdout.
        """
        if step.action is Action.STOP:
            await self._clear(step.index)
        elif step.action is Action.REMOVE:
            await self._remove(step.index)
        elif step.action is Action.REPAIR:
            await self._repair(self._intended[step.index], step)
        elif step.action is Action.AWAIT:
            await self._await_ready(self._intended[step.index])
        elif step.action is Action.RELOAD:
            await self._reload(self._intended[step.index])
        else:
            await self._replace(self._intended[step.index], step)

    async def _replace(self, replica: Replica, step: ReplicaStep) -> None:
        await self._site.run(check_runnable, replica, self._site.inherited)
        await self._refuse_strangers(replica)
        for index in (replica.index, *step.evict):
            await self._clear(index)
        await self._refuse_strangers(replica)
        for program in self._observation.at(replica.index):
            if program.group != replica.group:
                await self._forget(program.group, replica.index)
        supervisord = self._site.supervisord(replica.group)
        async with self._site.lock(replica.group):
            name = await self._site.calls.run(
                self._key, supervisord.define, self._key, replica, self._secrets
            )
        mark = await self._site.run(supervisord.mark_logs, self._key, replica.index)
        await self._site.calls.run(self._key, supervisord.start, name)
        failure = await self._await_health(replica, replica.start_timeout, mark)
        if failure is not None:
            what = (
                f"replica {replica.index} did not become healthy in {replica.start_timeout:.3g} s: {failure}"
            )
            raise TransientError(
                what, code="PRO107", why=await self._written(supervisord, replica.index, mark)
            )

    async def _repair(self, replica: Replica, step: ReplicaStep) -> None:
        """Let a young replica finish its start; restart it only when its time is over."""
        supervisord = self._site.supervisord(replica.group)
        ages = [item.age for item in self._observation.at(replica.index) if item.group == replica.group]
        left = replica.start_timeout - min(ages, default=0.0)
        if left > 0:
            mark = await self._site.run(supervisord.mark_logs, self._key, replica.index)
            if await self._await_health(replica, left, mark, ready=False) is None:
                return
        await self._replace(replica, step)

    async def _await_ready(self, replica: Replica) -> None:
        """Give a replica that is not ready the time of a start before others are touched."""
        supervisord = self._site.supervisord(replica.group)
        mark = await self._site.run(supervisord.mark_logs, self._key, replica.index)
        failure = await self._await_health(replica, replica.start_timeout, mark)
        if failure is not None:
            raise TransientError(
                f"replica {replica.index} was not ready for {replica.start_timeout:.3g} s: {failure}",
                code="PRO138",
                fix="no other replica is touched before it is; see its logs",
            )

    async def _reload(self, replica: Replica) -> None:
        """Reload a replica, whose process stays, and wait until it is healthy again."""
        supervisord, calls = self._site.supervisord(replica.group), self._site.calls
        [program] = [item for item in self._observation.at(replica.index) if item.group == replica.group]
        mark = await self._site.run(supervisord.mark_logs, self._key, replica.index)
        if program.age < replica.start_timeout:  # a young program may not handle the signal yet
            await self._await_health(replica, replica.start_timeout - program.age, mark)
        process = None if program.pid is None else procfs.identify(program.pid)
        if process is None:
            raise TransientError(f"replica {replica.index} ended before it was reloaded", code="PRO130")
        command = await calls.run(
            self._key, supervisord.start_reload, self._key, replica, self._secrets, process.pid
        )
        if command is not None:
            await self._await_command(replica, supervisord, command)
        await calls.run(self._key, supervisord.note_reload, self._key, replica, process)
        await self._site.clock.sleep(_POLL)  # a program that does not handle the signal ends at once
        failure = await self._await_health(replica, replica.start_timeout, mark, process)
        if failure is not None:
            raise TransientError(
                f"replica {replica.index} was reloaded and is not healthy after {replica.start_timeout:.3g} s"
                f": {failure}",
                code="PRO131",
                why=await self._written(supervisord, replica.index, mark),
            )

    async def _await_command(
        self, replica: Replica, supervisord: Supervisord, command: subprocess.Popen[bytes]
    ) -> None:
        """Wait until a command that reloads has ended; end it and its children when cancelled or late."""
        status = await await_end(command, self._site.clock, replica.start_timeout)
        if status == 0:
            return
        output = await self._site.run(supervisord.reload_output, self._key, replica.index, self._hidden)
        how = f"took longer than {replica.start_timeout:.3g} s" if status is None else how_it_ended(status)
        raise TransientError(
            f"the command that reloads replica {replica.index} {how}",
            code="PRO132",
            why=f"its last lines: {output}" if output else "it wrote nothing",
        )

    async def _remove(self, index: int) -> None:
        await self._clear(index)
        for group in sorted({program.group for program in self._observation.at(index)}):
            await self._forget(group, index)

    async def _forget(self, group: str, index: int) -> None:
        supervisord = self._site.supervisord(group)
        deadline = self._site.clock.monotonic() + _RETIRE_GRACE
        async with self._site.lock(group):
            await self._site.calls.run(self._key, supervisord.remove, self._key, index)
            while not await self._site.calls.run(self._key, supervisord.retire):
                if self._site.clock.monotonic() >= deadline:
                    raise TransientError(f"supervisord of group {group} does not shut down", code="PRO108")
                await self._site.clock.sleep(_POLL)

    async def _clear(self, index: int) -> None:
        """End every process of a replica, whichever supervisord manages it."""
        for group in sorted({program.group for program in self._observation.at(index)}):
            await self._halt(group, index)
        await self._sweep(index)

    async def _halt(self, group: str, index: int) -> None:
        supervisord, name = self._site.supervisord(group), program_name(self._key, index)
        deadline = self._site.clock.monotonic() + self._patience
        while True:
            found = await self._site.run(supervisord.information, name)
            state, now = state_of(found), self._site.clock.monotonic()
            if found is None or state in _QUIET:
                return
            if now >= deadline + _KILL_GRACE:
                raise TransientError(
                    f"replica {index} does not end, not even on SIGKILL", code="PRO109", why=f"it is {state}"
                )
            if state in (State.RUNNING, State.STARTING, State.BACKOFF):
                await self._site.calls.run(self._key, supervisord.stop, name)
            elif now >= deadline and found["pid"]:  # supervisord may still use an older, longer limit
                process = procfs.identify(found["pid"])
                if process is not None:
                    procfs.send(process, signal.SIGKILL)
            await self._site.clock.sleep(_POLL)

    async def _sweep(self, index: int) -> None:
        """End the processes of a replica that no supervisord runs."""
        deadline = self._site.clock.monotonic() + self._patience
        asked: set[procfs.ProcessId] = set()
        while True:
            found = await self._site.run(self._left_behind)
            left = [item.process for item in found if item.index == index]
            if not left:
                return
            now = self._site.clock.monotonic()
            if now >= deadline + _KILL_GRACE:
                raise TransientError(
                    f"process {left[0].pid} of replica {index} does not end, not even on SIGKILL",
                    code="PRO110",
                )
            for process in left:
                if now >= deadline:
                    procfs.send(process, signal.SIGKILL)
                elif process not in asked:
                    procfs.send(process, self._stop_signal)
            asked.update(left)
            await self._site.clock.sleep(_POLL)

    def _left_behind(self) -> tuple[LeftBehind, ...]:
        return left_behind(Ownership(self._site.root, self._key).marked(), self._key, {})

    async def _refuse_strangers(self, replica: Replica) -> None:
        """Raise if another process listens on a port of the replica, before anything is stopped."""
        stranger = await self._site.run(_stranger, self._site.root, frozenset(replica.ports), self._key)
        if stranger is not None:
            port, who = stranger
            raise TransientError(
                f"port {port} of replica {replica.index} is in use by {who}",
                code="PRO111",
                fix="stop that process, or declare another port",
            )

    async def _await_health(
        self,
        replica: Replica,
        patience: float,
        mark: LogMark,
        reloaded: procfs.ProcessId | None = None,
        *,
        ready: bool = True,
    ) -> str | None:
        """None once the replica is healthy and ready; otherwise its condition after `patience` seconds.

        Args:
            replica: that was started or reloaded.
            patience: in seconds.
            mark: of its logs, before that.
            reloaded: its process, if it was reloaded.
            ready: False if it does not have to be ready.

        Raises:
            TransientError: it ended.
        """
        supervisord = self._site.supervisord(replica.group)
        name = program_name(self._key, replica.index)
        deadline = self._site.clock.monotonic() + patience
        probes, key = self._site.probes, self._key
        pause = _POLL_COMMAND if replica.probed_by_command else _POLL
        first = None if reloaded is None else reloaded.pid
        when = "right after its start" if reloaded is None else "when it was reloaded"
        while True:
            failure = await probes.failure(key, replica, first)
            if failure is None and ready:
                failure = await probes.unreadiness(key, replica, first)
            # Checked after the probe: an answer counts only if this same process still runs.
            found = await self._site.run(supervisord.information, name)
            state = state_of(found)
            pid = found["pid"] if found is not None else None
            first = first or pid
            if failure is None and pid and procfs.suspended(pid):
                failure = f"process {pid} is stopped by a signal"
            if state not in (State.STARTING, State.RUNNING) or pid != first:
                raise await self._ended(supervisord, replica.index, mark, found, when)
            if failure is None and (replica.health or state is State.RUNNING):
                return None
            if self._site.clock.monotonic() >= deadline:
                return failure or "it has not been up for a second"
            await self._site.clock.sleep(pause)

    async def _ended(
        self, supervisord: Supervisord, index: int, mark: LogMark, found: dict[str, Any] | None, when: str
    ) -> TransientError:
        how, written = await self._site.run(supervisord.complaint, self._key, index, mark, self._hidden)
        if not how and found is not None:
            how = found["spawnerr"]
        ended = f"replica {index} ended {when}"
        return TransientError(f"{ended} ({how})" if how else ended, code="PRO112", why=written)

    async def _written(self, supervisord: Supervisord, index: int, mark: LogMark) -> str:
        """The last lines of stderr and stdout since `mark`."""
        _, written = await self._site.run(supervisord.complaint, self._key, index, mark, self._hidden)
        return written


def _stranger(root: Path, ports: frozenset[int], key: AssetKey) -> tuple[int, str] | None:
    found = procfs.listeners(ports) if ports else []
    owned = Ownership(root, key) if found else None
    for port, pid in found:
        if pid is None:
            return port, "a process of another user"
        owner = owned.marks(pid).get(procfs.REPLICA, "").rpartition("#")[0] if owned else ""
        if owner != str(key):
            name = procfs.program(pid)
            return port, f"process {pid} ({name})" if name else f"process {pid}"
    return None

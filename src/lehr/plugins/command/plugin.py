"""The asset plugin of `lehr.Command`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write; `lehr.plugins.processes` runs programs, bounds their time and
output, and ends all processes that they started; `lehr.plugins.mark` finds the processes of a push again,
after a crash of Lehr.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.plugins.command.payload import (
    COMMAND,
    MOST_APPLY_SECONDS,
    MOST_CHECK_SECONDS,
    Command,
    Script,
    arguments,
)
from lehr.plugins.environment import small_environment
from lehr.plugins.launch import Launch
from lehr.plugins.mark import Mark
from lehr.plugins.processes import Processes, ProcessResult
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.secrets import NoSecrets, Secrets, revealed

_AS_INTENDED = 0
_DIFFERS = 1

_TO_END = 30.0  # seconds that ending a process, and starting it, may take on top of its time


class CommandPlugin(AssetPlugin):
    """Runs scripts: `check` is the diff, `apply` the push, `remove` the push to ABSENT.

    * Production is whatever the scripts read and change; Lehr knows nothing about it.
    * A diff is an exit code of `check` that is not the intended one, with the first lines that it printed.
    * A push runs a script to its end, even if newer content has overtaken it: half a script is worse than an
      old one.
    * Its outcome is unknown while processes of the script are left. They carry a mark that outlives Lehr, and
      `status` returns RUNNING until the last of them has ended.
    * It never runs a second script for an asset while one still runs, and no part of one in Lehr's own
      process.

    Args:
        base: where commands run, and what their directories are relative to.
        state: a directory of this plugin's own, which survives restarts.
        blocking: a pool of this plugin's own, closed with it.
        clock: time.
        grace: seconds that a command has to end when asked, before it is killed.
        secrets: provides the variables that are secrets.
    """

    types = (COMMAND,)
    traits = Traits(
        goals=frozenset({Goal.ABSENT}),
        turns=8,
        pushes=4,
        diff_timeout=MOST_CHECK_SECONDS + _TO_END,
        push_timeout=MOST_APPLY_SECONDS + _TO_END,
    )

    def __init__(
        self,
        base: Path,
        state: Path,
        blocking: Blocking,
        clock: Clock,
        *,
        grace: float = 5.0,
        secrets: Secrets | None = None,
    ) -> None:
        self._base = base.absolute()
        self._state = state.absolute()
        self._blocking = blocking
        self._processes = Processes(blocking, clock, grace=grace)
        self._secrets = secrets or NoSecrets()
        self._environment = small_environment()

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Run `check`. Read-only if the script is."""
        command = read.payload(target.id, Command)
        _script(command, target.goal)
        launch = await self._launch(command, command.check, target)
        ended = await self._processes.run(launch._replace(timeout=command.check_timeout_seconds))
        if ended.timed_out or ended.code not in (_AS_INTENDED, _DIFFERS):
            raise TransientError(
                f"check failed: {_ending(ended)}",
                code="CMD101",
                why=ended.errors.last() or ended.output.last(),
                fix="exit code 0 means as intended, 1 means it differs",
            )
        intended = _AS_INTENDED if target.goal is Goal.PRESENT else _DIFFERS
        if ended.code == intended:
            return NO_DIFF
        line = ended.output.first()
        observed = f"exit code {ended.code}: {line}" if line else f"exit code {ended.code}"
        return Diff((Change("check", f"exit code {intended}", observed),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Run `apply`, or `remove` for the goal ABSENT."""
        command = read.payload(target.id, Command)
        script = _script(command, target.goal)
        launch = await self._launch(command, script, target)
        launch.environment["LEHR_OPERATION"] = push.operation.id
        launch = launch._replace(mark=self._mark(push.operation))
        return _outcome(await self._processes.run(launch))

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a process of the push's script runs, whichever Lehr process started it."""
        mark = self._mark(operation)
        running = self._processes.runs(mark) or await self._blocking.run(mark.running)
        return Progress.RUNNING if running else Progress.ENDED

    async def close(self) -> None:
        await self._processes.close()
        self._blocking.close()

    def _mark(self, operation: Operation) -> Mark:
        return Mark(self._state / "operations" / f"{operation.id}.lock")

    async def _launch(self, command: Command, script: Script, target: Target) -> Launch:
        plain = {name: value for name, value in command.environment.items() if isinstance(value, str)}
        secrets = await revealed(self._secrets, command.environment)
        environment = {
            **self._environment,
            **plain,
            "LEHR_ASSET": target.id,
            "LEHR_INCARNATION": str(target.incarnation),
        }
        directory = os.path.join(self._base, command.directory or "")
        return Launch(arguments(script), environment, directory, command.timeout_seconds, secrets=secrets)


def _script(command: Command, goal: Goal) -> Script:
    if goal is Goal.PRESENT:
        return command.apply
    if goal is not Goal.ABSENT:
        raise StalledError(
            f"a {COMMAND} cannot be {goal}", code="CMD102", fix="use a turndown, which runs `remove`"
        )
    if command.remove is None:
        raise StalledError(
            "this command cannot be removed",
            code="CMD103",
            why="it has no `remove`",
            fix="add `remove`, or let the asset go",
        )
    return command.remove


def _outcome(ended: ProcessResult) -> Outcome:
    if ended.code == 0 and not ended.timed_out:
        return DONE
    line = ended.errors.last() or ended.output.last()
    message = f"{_ending(ended)}: {line}" if line else _ending(ended)
    if ended.code is None or ended.survivors:
        return Outcome(Result.UNKNOWN, f"{message} (some of its processes still run)")
    return Outcome(Result.FAILED, message)


def _ending(ended: ProcessResult) -> str:
    if ended.timed_out:
        return "did not end in time"
    if ended.code is not None and ended.code < 0:
        return f"killed by signal {-ended.code} ({signal.strsignal(-ended.code)})"
    return f"exit code {ended.code}"

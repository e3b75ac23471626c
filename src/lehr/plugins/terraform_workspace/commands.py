"""The commands of one run: `init`, `state pull`, `plan`, `show`, `apply`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.digest import digest
from lehr.base.errors import LehrError, TransientError
from lehr.model.operation import DONE, Outcome, Result
from lehr.plugins.launch import Launch
from lehr.plugins.mark import Mark
from lehr.plugins.processes import Processes, ProcessResult
from lehr.plugins.terraform_workspace import messages
from lehr.plugins.terraform_workspace.folders import RunFolder
from lehr.plugins.terraform_workspace.messages import Problem, Steps
from lehr.plugins.terraform_workspace.payload import DEFAULT, TerraformWorkspace
from lehr.plugins.terraform_workspace.plan_changes import Plan, read_plan
from lehr.plugins.terraform_workspace.printed import Follow, document, end_of
from lehr.plugins.terraform_workspace.program import Program
from lehr.sdk.secrets import Hidden, SecretValue

_MOST_OUTPUT = 256 << 20
_FOLLOW_SECONDS = 0.25

_AS_INTENDED, _DIFFERS = 0, 2


class Intended(NamedTuple):
    """A module with everything that it refers to.

    Attributes:
        variables: values of input variables, without secret ones.
        environment: of the command, without secrets.
        secrets: further variables of the environment.
        hidden: hides these in what the command prints.
    """

    module: TerraformWorkspace
    variables: Mapping[str, Any]
    environment: Mapping[str, str]
    secrets: Mapping[str, SecretValue]
    hidden: Hidden


class _NeedsInitError(Exception):
    """`init` has to be run, although it has been."""


class Commands:
    """Runs the commands for one asset, in its locked folder.

    Args:
        graces: seconds that a command, and an `apply`, has to end when interrupted.
    """

    def __init__(
        self,
        intended: Intended,
        program: Program,
        folder: RunFolder,
        processes: Processes,
        blocking: Blocking,
        clock: Clock,
        graces: tuple[float, float],
    ) -> None:
        self._intended = intended
        self._module = intended.module
        self._hidden = intended.hidden
        self._program = program
        self._folder = folder
        self._processes = processes
        self._blocking = blocking
        self._clock = clock
        self._graces = graces
        self._plan = folder.run / "plan"

    async def compared(self, *, destroy: bool) -> tuple[str, Plan]:
        """The lineage of the state, empty if there is no state, and the plan.

        The plan is kept for `apply`, in a file that is deleted with the run.

        Raises:
            StalledError: the module or its variables are wrong, or the state cannot be used.
            TransientError: anything else.
        """
        problems: list[Problem] = []
        for _ in range(2):
            await self._init()
            try:
                return await self._lineage(), await self._planned(destroy=destroy)
            except _NeedsInitError as error:
                problems = list(error.args)
            await self._blocking.run(self._folder.note_initialised, "")
        # Not chained: the other exception has texts in which secrets are not hidden.
        raise messages.error_of(self._named("plan"), problems, "", self._hidden)

    async def apply(self, mark: Mark, progress: Callable[[str], None]) -> Outcome:
        """Apply the plan of `compared`. If this call is cancelled, the command continues."""
        log = self._folder.run / "log"
        launch = self._launch("apply", "-json", "-input=false", *self._limits(), str(self._plan))
        launch = launch._replace(
            timeout=self._module.apply_timeout_seconds,
            mark=mark,
            log=log,
            outlives=True,
            grace=self._graces[1],
        )
        running = asyncio.ensure_future(self._processes.run(launch))
        steps, follow = Steps(), Follow(log)
        try:
            while not running.done() or follow.more:
                await self._pause(running)
                for line in await self._blocking.run(follow.lines):
                    if (text := messages.progress_of(line, steps)) is not None:
                        progress(self._hidden.shown(text))
        finally:
            running.cancel()
        ended = running.result()
        output = await self._blocking.run(end_of, log)
        return self._outcome(ended, messages.json_problems(output), steps)

    async def _init(self) -> None:
        key = digest([self._folder.source, self._module.backend, self._program, self._module.workspace])
        if await self._blocking.run(self._folder.is_initialised, key):
            return
        await self._blocking.run(self._folder.note_initialised, "")
        settings = [
            f"-backend-config={name}={_setting(value)}" for name, value in self._module.backend.items()
        ]
        await self._blocking.run(self._folder.keep_state)
        ended = await self._run(
            "init", "-input=false", "-no-color", "-reconfigure", "-lockfile=readonly", *settings
        )
        await self._blocking.run(self._folder.restore_state)
        if ended.code != _AS_INTENDED:
            raise self._text_error("init", ended)
        await self._blocking.run(self._folder.require_state_elsewhere, self._module.workspace)
        await self._blocking.run(self._folder.note_initialised, key)

    async def _lineage(self) -> str:
        ended = await self._run("state", "pull")
        if ended.code != _AS_INTENDED:
            raise self._text_error("state pull", ended)
        if not (ended.whole or b"").strip():
            return ""
        state = self._document("state pull", ended)
        lineage = state.get("lineage")
        if not isinstance(lineage, str) or not lineage.isprintable() or len(lineage) > 200:
            raise self._nonsense("state pull")
        return lineage

    async def _planned(self, *, destroy: bool) -> Plan:
        variables = await self._blocking.run(
            self._folder.secret_file, "intent.tfvars.json", msgspec.json.encode(self._intended.variables)
        )
        await self._blocking.run(self._folder.secret_file, "plan")
        goal = ["-destroy"] if destroy else []
        ended = await self._run(
            "plan", "-json", "-input=false", "-detailed-exitcode", *goal, *self._limits(),
            f"-var-file={variables}",
            f"-out={self._plan}",
        )  # fmt: skip
        if ended.code not in (_AS_INTENDED, _DIFFERS):
            problems = messages.json_problems(ended.whole or b"")
            if any(problem.needs_init for problem in problems):
                raise _NeedsInitError(*problems)
            raise messages.error_of(self._named("plan"), problems, _ending(ended), self._hidden)
        shown = await self._run("show", "-json", "-no-color", str(self._plan))
        if shown.code != _AS_INTENDED:
            raise self._text_error("show", shown)
        found = await self._blocking.run(self._document, "show", shown)
        try:
            return await self._blocking.run(read_plan, found, self._hidden, differs=ended.code == _DIFFERS)
        except ValueError:
            # Not chained: that exception may quote the plan, which holds secrets.
            raise self._nonsense("show") from None

    async def _run(self, *arguments: str) -> ProcessResult:
        ended = await self._processes.run(self._launch(*arguments))
        if ended.timed_out:
            raise TransientError(
                f"{self._named(arguments[0])} did not end within {self._module.plan_timeout_seconds:g}s",
                code="TWS104",
                why=ended.errors.last(),
                fix="raise `plan_timeout_seconds`, or find out what it waits for",
            )
        return ended

    def _launch(self, *arguments: str) -> Launch:
        own = {
            "TF_DATA_DIR": str(self._folder.data),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
        }
        if self._module.workspace != DEFAULT:
            own["TF_WORKSPACE"] = self._module.workspace
        return Launch(
            (self._program.path, *arguments),
            {**self._intended.environment, **own},
            self._folder.root,
            self._module.plan_timeout_seconds,
            secrets=self._intended.secrets,
            whole=_MOST_OUTPUT,
            interrupt=signal.SIGINT,
            grace=self._graces[0],
        )

    def _limits(self) -> tuple[str, ...]:
        wait = f"-lock-timeout={self._module.lock_timeout_seconds}s"
        return (f"-parallelism={self._module.parallelism}", wait)

    async def _pause(self, running: asyncio.Future[ProcessResult]) -> None:
        timer = asyncio.ensure_future(self._clock.sleep(_FOLLOW_SECONDS))
        try:
            waits: set[asyncio.Future[Any]] = {running, timer}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    def _outcome(self, ended: ProcessResult, problems: list[Problem], steps: Steps) -> Outcome:
        if ended.code == _AS_INTENDED and not ended.timed_out:
            return DONE
        own = messages.reported(problems, _ending(ended), self._hidden)
        if ended.timed_out:
            own = f"did not end within {self._module.apply_timeout_seconds:g}s: {own}"
        message = f"{self._named('apply')} failed after {steps.done} of {steps.started} changes: {own}"
        if ended.code is None or ended.code < 0 or ended.survivors:
            return Outcome(Result.UNKNOWN, message)
        if any("persist state" in problem.summary.lower() for problem in problems):
            return Outcome(Result.STALLED, message)
        return Outcome(Result.FAILED, message)

    def _document(self, command: str, ended: ProcessResult) -> dict[str, Any]:
        found = document(ended.whole or b"")
        if found is None:
            raise self._nonsense(command)
        return found

    def _nonsense(self, command: str) -> LehrError:
        return TransientError(
            f"{self._named(command)} does not print what it should",
            code="TWS105",
            why="its output is not the JSON document that was asked for",
            fix="correct `program`",
        )

    def _text_error(self, command: str, ended: ProcessResult) -> LehrError:
        printed = (ended.whole_errors or b"", ended.whole or b"")
        texts = [output.decode(errors="replace") for output in printed]
        found = next((found for text in texts if (found := messages.text_problems(text))), [])
        if any(problem.needs_init for problem in found) and command != "init":
            raise _NeedsInitError(*found)
        return messages.error_of(self._named(command), found, _ending(ended), self._hidden)

    def _named(self, command: str) -> str:
        return f"{self._program.name} {command}"


def _setting(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ending(ended: ProcessResult) -> str:
    last = ended.errors.last() or ended.output.last()
    if ended.code is not None and ended.code < 0:
        ending = f"killed by signal {-ended.code} ({signal.strsignal(-ended.code)})"
    else:
        ending = f"exit code {ended.code}"
    return f"{ending}: {last}" if last else ending

"""The asset plugin of `lehr.TerraformWorkspace`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write; `folders` locks and fills the folder of an asset; `program`
finds the command, `commands` runs it; `plan_changes` reads a plan as a diff, `messages` what the command
prints; `agreement` decides whether a plan may be used; `adoption` drafts intent for modules that exist.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.plugins.environment import small_environment
from lehr.plugins.launch import Launch
from lehr.plugins.processes import Processes
from lehr.plugins.terraform_workspace import adoption
from lehr.plugins.terraform_workspace import program as programs
from lehr.plugins.terraform_workspace.agreement import (
    VALUES,
    handle_of,
    published,
    require_admitted,
    require_fitting,
    require_known,
)
from lehr.plugins.terraform_workspace.commands import Commands, Intended
from lehr.plugins.terraform_workspace.folders import Contents, RunFolder, folder_of, mark_of, open_folder
from lehr.plugins.terraform_workspace.payload import (
    MOST_APPLY_SECONDS,
    MOST_PLAN_SECONDS,
    TERRAFORM_WORKSPACE,
    TerraformWorkspace,
)
from lehr.plugins.terraform_workspace.plan_changes import Plan
from lehr.plugins.terraform_workspace.program import Program
from lehr.sdk.plugin import AssetPlugin, Found, Push, Reader, Traits
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden, NoSecrets, Secrets, revealed

_PASSED_ON = (
    *("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
"""Variables of Lehr's own environment that decide where providers come from."""

_VERSION_SECONDS = 30.0
_GRACES = (20.0, 120.0)
_BUSY_SECONDS = 60.0
_SHORT_WHILE = 0.1


class TerraformWorkspacePlugin(AssetPlugin):
    """Keeps what a root module of Terraform or OpenTofu declares.

    * Production is what `plan` compares: the state in its backend, and what the providers read.
    * A diff is a plan. It is destructive if the plan deletes something, also to create it again.
    * A push plans again, and applies that plan if it is, change for change, the diff that was admitted.
      Otherwise it fails, and the new plan is compared.
    * An `apply` outlives Lehr: its outcome is unknown if Lehr ends before it, and `status` is RUNNING until
      it and its providers have ended.
    * The handle is the lineage of the state. If another state, or none, is in its place, the asset stalls.
    * It never unlocks, migrates or edits a state.

    Args:
        base: where relative folders of modules and commands start.
        state: a directory of this plugin's own, which survives restarts.
        blocking: a pool of this plugin's own, closed with it.
        clock: time.
        secrets: provides secret variables.
        contents: provides the files of the workspace that modules are made of.
        graces: seconds that a command, and an `apply`, has to end when interrupted, before it is killed.
    """

    types = (TERRAFORM_WORKSPACE,)
    # Not COMPARE_AND_SWAP: not every backend locks its state. `resync`: a plan reads every resource.
    traits = Traits(
        goals=frozenset({Goal.ABSENT}),
        turns=4,
        pushes=4,
        diff_timeout=3 * MOST_PLAN_SECONDS,
        push_timeout=3 * MOST_PLAN_SECONDS + MOST_APPLY_SECONDS,
        resync=900.0,
    )
    threads = traits.turns + traits.pushes
    outputs = {TERRAFORM_WORKSPACE: OutputNames(stable=frozenset({VALUES}))}  # noqa: RUF012

    def __init__(
        self,
        base: Path,
        state: Path,
        blocking: Blocking,
        clock: Clock,
        *,
        secrets: Secrets | None = None,
        contents: Contents = lambda path, digest: None,
        graces: tuple[float, float] = _GRACES,
    ) -> None:
        self._base = str(base.absolute())
        self._state = state.absolute()
        self._blocking = blocking
        self._clock = clock
        self._secrets = secrets or NoSecrets()
        self._contents = contents
        self._graces = graces
        self._processes = Processes(blocking, clock, grace=graces[0])
        self._accepted: set[tuple[Program, str | None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        own = {name: value for name in _PASSED_ON if (value := os.environ.get(name)) is not None}
        self._environment = {**small_environment(), **own}

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Plan; see `plan_changes.read_plan` for the paths."""
        intended = await self._intended(target, read)
        async with self._commands(target.key, intended) as commands:
            lineage, plan = await commands.compared(destroy=target.goal is Goal.ABSENT)
        require_known(target, intended.module, lineage)
        require_fitting(intended.module, plan)
        outputs = published(intended.module, plan)
        return replace(plan.diff, handle=handle_of(target, lineage), outputs=outputs)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Plan again, and apply that plan if it is the diff that was admitted."""
        intended = await self._intended(target, read)
        async with self._commands(target.key, intended) as commands:
            push.progress("planning")
            lineage, plan = await commands.compared(destroy=target.goal is Goal.ABSENT)
            require_known(target, intended.module, lineage)
            require_fitting(intended.module, plan)
            if plan.diff.empty:
                return DONE
            if push.superseded:
                return Outcome(Result.FAILED, "superseded")
            require_admitted(plan.diff, push.operation.diff_digest)
            mark = mark_of(self._folder(target.key), push.operation.id)
            return await commands.apply(mark, push.progress)

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while the `apply` of the push runs, whichever Lehr process started it."""
        mark = mark_of(self._folder(operation.key), operation.id)
        running = self._processes.runs(mark) or await self._blocking.run(mark.running)
        return Progress.RUNNING if running else Progress.ENDED

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """A draft of each root module in the folders of `query`; see `adoption.drafts`."""

        async def look(id: str, module: TerraformWorkspace) -> tuple[str, Plan]:
            intended = Intended(module, {}, self._environment, {}, NOTHING_HIDDEN)
            async with self._commands(AssetKey(partition, AssetId(id)), intended) as commands:
                return await commands.compared(destroy=False)

        async for draft in adoption.drafts(look, self._blocking, self._base, query):
            yield draft

    async def close(self) -> None:
        """End what only looks. An `apply` continues, and the next process finds it."""
        await self._processes.close()
        if self._closing:
            await asyncio.wait(self._closing)
        self._blocking.close()

    def _folder(self, key: AssetKey) -> Path:
        return folder_of(self._state, key)

    async def _intended(self, target: Target, read: Reader) -> Intended:
        module = read.payload(target.id, TerraformWorkspace)
        if target.goal not in (Goal.PRESENT, Goal.ABSENT):
            raise StalledError(
                f"a {TERRAFORM_WORKSPACE} cannot be {target.goal}",
                code="TWS112",
                fix="use a turndown, which destroys what the module declares",
            )
        inputs = {name: read.output(AssetId(item.asset), item.output) for name, item in module.inputs.items()}
        plain = {name: value for name, value in module.environment.items() if isinstance(value, str)}
        variables = {name: await self._secrets.read(item) for name, item in module.secrets.items()}
        secrets = await revealed(self._secrets, module.environment)
        secrets |= {f"TF_VAR_{name}": value for name, value in variables.items()}
        return Intended(
            module,
            {**module.variables, **inputs},
            {**self._environment, **plain},
            secrets,
            Hidden(secrets.values()),
        )

    @contextlib.asynccontextmanager
    async def _commands(self, key: AssetKey, intended: Intended) -> AsyncIterator[Commands]:
        """The commands of an asset, whose folder is locked in the meantime."""
        program = await self._program(intended)
        folder = await self._opened(key, intended.module)
        commands = Commands(
            intended, program, folder, self._processes, self._blocking, self._clock, self._graces
        )
        try:
            yield commands
        except asyncio.CancelledError:
            self._close(folder)  # once its processes have ended, for which a cancelled caller has no time
            raise
        except BaseException:
            await asyncio.shield(self._close(folder))
            raise
        await asyncio.shield(self._close(folder))

    def _close(self, folder: RunFolder) -> asyncio.Task[None]:
        closing = asyncio.ensure_future(self._closed(folder))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return closing

    async def _opened(self, key: AssetKey, module: TerraformWorkspace) -> RunFolder:
        deadline = self._clock.monotonic() + _BUSY_SECONDS
        folder, name = self._folder(key), f"{key.partition}/{key.id}"
        while True:
            call = self._blocking.run(open_folder, folder, name, module, self._base, self._contents)
            opening = asyncio.ensure_future(call)
            try:
                opened = await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_close_unused)  # a thread cannot be cancelled
                raise
            if opened is not None:
                return opened
            if self._clock.monotonic() >= deadline:
                raise TransientError(
                    "another command of Lehr works on this asset",
                    code="TWS113",
                    why=f"it has locked {folder}",
                    fix="wait until it ends",
                )
            await self._clock.sleep(_SHORT_WHILE)

    async def _closed(self, folder: RunFolder) -> None:
        """Close the folder as soon as none of its processes runs."""
        await self._processes.ended(lambda launch: launch.environment.get("TF_DATA_DIR") == str(folder.data))
        await self._blocking.run(folder.close)

    async def _program(self, intended: Intended) -> Program:
        """The command, once its digest and version were found right."""
        module, search = intended.module, intended.environment.get("PATH", "")
        program = await self._blocking.run(programs.find, module.program, self._base, search)
        if (program, module.sha256) in self._accepted:
            return program
        if module.sha256 is not None:
            await self._blocking.run(programs.require_digest, program, module.sha256)
        environment = {**intended.environment, "CHECKPOINT_DISABLE": "1"}
        launch = Launch((program.path, "version", "-json"), environment, self._base, _VERSION_SECONDS)
        ended = await self._processes.run(launch._replace(whole=1 << 16))
        if ended.timed_out:
            raise TransientError(
                f"{program.name} version did not end within {_VERSION_SECONDS:g}s",
                code="TWS129",
                fix="find out what it waits for",
            )
        programs.require_version(program, ended.whole or b"")
        self._accepted.add((program, module.sha256))
        return program


def _close_unused(opening: asyncio.Future[RunFolder | None]) -> None:
    if not opening.cancelled() and opening.exception() is None and (opened := opening.result()) is not None:
        opened.close()

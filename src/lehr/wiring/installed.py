"""Types, plugins and checks: the shipped ones, and those of installed packages."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lehr.wiring.deployment import Deployment
from lehr.wiring.remote_plugins import remote_checks, remote_plugins

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from lehr.model.asset import Asset, AssetKey
    from lehr.model.types import Registry
    from lehr.plugins.process.shutdown import Shutdown
    from lehr.sdk.calendars import PushTimes
    from lehr.sdk.check import CheckPlugin
    from lehr.sdk.logs import ProgramLog
    from lehr.sdk.plugin import AssetPlugin
    from lehr.sdk.protected import Protected
    from lehr.sdk.secrets import Secrets


def registry() -> Registry:
    """All types that this installation knows.

    Raises:
        StalledError: those of an installed package cannot be used. Without them the meaning of its assets is
            unknown.
    """
    from lehr.checks import TYPES as CHECK_TYPES
    from lehr.model.addons import ADDONS
    from lehr.model.governance import GOVERNANCE_TYPES
    from lehr.model.provider import TYPES as PROVIDER_TYPES
    from lehr.model.types import Registry
    from lehr.plugins.balancer.payload import TYPES as BALANCER_TYPES
    from lehr.plugins.command.payload import TYPES as COMMAND_TYPES
    from lehr.plugins.database.payload import TYPES as DATABASE_TYPES
    from lehr.plugins.file.payload import TYPES as FILE_TYPES
    from lehr.plugins.http_resource.payload import TYPES as HTTP_RESOURCE_TYPES
    from lehr.plugins.process.payload import TYPES as PROCESS_TYPES
    from lehr.plugins.terraform.payload import TYPES as TERRAFORM_TYPES
    from lehr.plugins.terraform_workspace.payload import TYPES as TERRAFORM_WORKSPACE_TYPES
    from lehr.plugins.workflow.payload import TYPES as WORKFLOW_TYPES
    from lehr.rollouts.policy import ROLLOUT_POLICY_TYPE

    production = (*FILE_TYPES, *PROCESS_TYPES, *COMMAND_TYPES, *BALANCER_TYPES, *DATABASE_TYPES)
    terraform = (*TERRAFORM_TYPES, *TERRAFORM_WORKSPACE_TYPES)
    elsewhere = (*HTTP_RESOURCE_TYPES, *terraform, *WORKFLOW_TYPES, *PROVIDER_TYPES)
    known = Registry((*production, *elsewhere, *CHECK_TYPES, *GOVERNANCE_TYPES, ROLLOUT_POLICY_TYPE), ADDONS)
    for entry in installed("lehr.types"):
        with blaming(entry):
            for item in entry.load()():
                known.add(item)
    return known


@functools.cache
def known_types() -> Registry:
    """The `registry` of this process: slow at the first call; copy it before it learns more types."""
    return registry()


def plugins(deployment: Deployment) -> list[AssetPlugin]:
    """A plugin for every type that has production. Each has threads of its own (invariant I9).

    An installed one that cannot be used is skipped and logged: its assets stall, and delay no others.
    """
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.base.short_calls import ShortCalls
    from lehr.plugins.balancer.plugin import BalancerPlugin
    from lehr.plugins.command.plugin import CommandPlugin
    from lehr.plugins.database.plugin import DatabasePlugin
    from lehr.plugins.file.directories import DirectoryPlugin
    from lehr.plugins.file.plugin import FilePlugin
    from lehr.plugins.file.symlinks import SymlinkPlugin
    from lehr.plugins.http_resource.plugin import HttpResourcePlugin
    from lehr.plugins.process.plugin import ProcessPlugin
    from lehr.plugins.terraform_workspace.plugin import TerraformWorkspacePlugin
    from lehr.wiring.terraform import terraform_plugin
    from lehr.wiring.workflows import workflow_plugin

    base, state, clock = deployment.base, deployment.state, SystemClock()
    known: list[AssetPlugin] = [
        FilePlugin(
            base,
            Threads("file", 8),
            looking=ShortCalls("file looks", 8),
            secrets=secrets(deployment, "file"),
            protected=protected(deployment),
            validating=Threads("file validation", 32),
            clock=clock,
            contents=workspace_files(deployment.state, deployment.base / deployment.path),
        ),
        SymlinkPlugin(base, Threads("symlink", 8), protected=protected(deployment)),
        DirectoryPlugin(base, Threads("directory", 8), protected=protected(deployment)),
        CommandPlugin(
            base,
            state / "commands",
            Threads("command", CommandPlugin.traits.turns),
            clock,
            secrets=secrets(deployment, "command"),
        ),
        DatabasePlugin(
            base,
            Threads("database", DatabasePlugin.threads),
            clock,
            secrets=secrets(deployment, "database"),
        ),
        BalancerPlugin(base, Threads("balancer", BalancerPlugin.traits.turns), clock),
        HttpResourcePlugin(clock, secrets=secrets(deployment, "HTTP")),
        terraform_plugin(deployment, clock),
        TerraformWorkspacePlugin(
            base,
            state / "terraform-workspaces",
            Threads("terraform workspace", TerraformWorkspacePlugin.threads),
            clock,
            secrets=secrets(deployment, "terraform workspace"),
            contents=workspace_files(deployment.state, deployment.base / deployment.path),
        ),
        workflow_plugin(deployment, clock),
        ProcessPlugin(
            state,
            Threads("process", ProcessPlugin.traits.turns),
            clock,
            base=base,
            secrets=secrets(deployment, "process"),
        ),
    ]
    known.extend(_installed_plugins(deployment, {name for plugin in known for name in plugin.types}))
    known.extend(remote_plugins(deployment, {name for plugin in known for name in plugin.types}))
    return known


def program_logs(state: Path, key: AssetKey, type: str) -> list[ProgramLog] | None:
    """The logs that programs of an asset write on this machine; None if assets of its type have none."""
    from lehr.plugins.process.logs import logs
    from lehr.plugins.process.payload import PROCESS

    return logs(state.resolve() / "supervisor", key) if type == PROCESS else None


def supervised(state: Path) -> Mapping[str, int]:
    """How many processes run on this machine under the supervision of Lehr, by asset."""
    from lehr.plugins.process.shutdown import running

    return running(state.resolve() / "supervisor")


def shutdown(state: Path) -> Shutdown:
    """Ends the processes that `supervised` counts, and what supervises them."""
    from lehr.plugins.process.shutdown import Shutdown

    return Shutdown(state.resolve() / "supervisor")


def checks(plugins: Collection[AssetPlugin] = ()) -> list[CheckPlugin]:
    """Every check, in the order in which verdicts are shown.

    Args:
        plugins: those of the same program: plugins in other processes may answer checks.

    Raises:
        StalledError: an installed one cannot be used, or two have the same name. Without it,
            pushes that it would hold back might start.
    """
    from lehr.checks import CHECKS
    from lehr.sdk.check import CheckPlugin

    known = [check() for check in CHECKS]
    for entry in installed("lehr.checks"):
        with blaming(entry):
            check: object = entry.load()()
            if not isinstance(check, CheckPlugin):
                raise TypeError(f"it returned a {type(check).__name__}, not a CheckPlugin")
            known.append(check)
    return [*known, *remote_checks(plugins, known)]


def calendars(registry: Registry, governing: Mapping[str, Sequence[Asset]]) -> Sequence[PushTimes]:
    """The times at which pushes may not start, as governing assets, by type, declare them."""
    from lehr.checks.push_times import push_times

    return push_times(registry, governing)


def secrets(deployment: Deployment, user: str) -> Secrets:
    """Reads the secrets that intent refers to.

    Args:
        user: the reader. Each has threads of its own: a key service that hangs delays no other (invariant
            I9).
    """
    from lehr.base.blocking import Threads
    from lehr.secrets import SecretReader

    threads = Threads(f"{user} secrets", 4)
    files = workspace_files(deployment.state, deployment.base / deployment.path)
    return SecretReader(deployment.base, deployment.state, files, os.environ, threads)


def workspace_files(state: Path, folder: Path) -> Callable[[str, str], bytes | None]:
    """Reads files of the workspace in `folder`, by path and digest, as any incarnation names them.

    The function returns None for a file that the mirrors in the state folder `state` have not kept.
    """
    from lehr.sources.past import content_at, kept_content

    def content(path: str, digest: str) -> bytes | None:
        # A plan is made from files that are not published yet.
        found = kept_content(state, digest)
        return content_at(folder / path, digest) if found is None else found

    return content


def protected(deployment: Deployment) -> Protected:
    """Folders that no path of intent may lead into; git repositories are detected as well."""
    from lehr.control.state_folder import states
    from lehr.sdk.protected import Protected

    return Protected({deployment.state: "the state folder", states(): "the folder of all states"})


def installed(group: str) -> list[EntryPoint]:
    """Entry points of other packages under `group`, by name."""
    import importlib.metadata

    from lehr.base.log import configure_now

    found = sorted(importlib.metadata.entry_points(group=group), key=lambda item: item.name)
    if found:  # they may log, too
        configure_now()
    return found


def _installed_plugins(deployment: Deployment, served: set[str]) -> Iterator[AssetPlugin]:
    """Installed plugins that can be used; `served` are the types that have a plugin already."""
    from lehr.base.errors import StalledError
    from lehr.base.log import Log
    from lehr.sdk.plugin import AssetPlugin

    for entry in installed("lehr.plugins"):
        try:
            with blaming(entry):
                plugin: object = entry.load()(deployment)
                if not isinstance(plugin, AssetPlugin):
                    raise TypeError(f"it returned a {type(plugin).__name__}, not an AssetPlugin")
                for name in served.intersection(plugin.types):
                    raise ValueError(f"another plugin serves type {name} already")
        except StalledError as error:
            Log().error("a plugin is left out: its assets stall, all others continue", error=str(error))
            continue
        served.update(plugin.types)
        yield plugin


@contextlib.contextmanager
def blaming(entry: EntryPoint) -> Iterator[None]:
    """Name the installed package that caused an error.

    Raises:
        StalledError: it failed.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        from lehr.base.errors import StalledError

        name, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
        raise StalledError(
            f"the installed package {name} {version}".rstrip() + " cannot be used",
            code="WIR101",
            why=f"its {entry.group} entry point {entry.name} ({entry.value}) failed: "
            f"{type(error).__name__}: {error}",
            fix=f"fix or update it, or remove it: pip uninstall {name}",
        ) from error

"""Plugins of other processes, as the deployment configures them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lehr.wiring.deployment import Deployment

if TYPE_CHECKING:
    from pathlib import Path

    from lehr.base.clock import Clock
    from lehr.base.diagnostics import Diagnostic
    from lehr.plugins.remote import messages as m
    from lehr.plugins.remote.channel import Tls
    from lehr.plugins.remote.configuration import PluginConfiguration, PluginDefinition, TlsFiles
    from lehr.plugins.remote.connection import Opener
    from lehr.plugins.remote.opening import Start
    from lehr.plugins.remote.plugin import RemotePlugin
    from lehr.plugins.remote.records import PluginFiles
    from lehr.sdk.asked_validator import AskedValidator
    from lehr.sdk.check import CheckPlugin
    from lehr.sdk.plugin import AssetPlugin
    from lehr.sdk.secrets import Secrets
    from lehr.sdk.target_selection import SelectionService
    from lehr.sdk.validator import Proposal, Validator

_DESCRIBE_SECONDS = 10.0


def remote_plugins(deployment: Deployment, served: Collection[str]) -> list[RemotePlugin]:
    """The plugins in the file that the deployment names; without one, none.

    Args:
        served: types that have a plugin in this process.

    Raises:
        StalledError: the file cannot be used, or the extra `plugins` is not installed.
    """
    if deployment.plugins is None:
        return []
    from lehr.base.errors import StalledError, raised_as

    configured = read_plugins(deployment.plugins)
    for name, definition in configured.plugins.items():
        if taken := sorted(set(definition.types).intersection(served)):
            raise StalledError(
                f"the plugin {name} in {deployment.plugins} cannot serve {', '.join(taken)}",
                code="WIR121",
                why="another plugin of this installation does",
                fix="remove these types from `types`",
            )
    what, fix = "plugins in other processes cannot be used", "pip install 'lehr[plugins]'"
    with raised_as(StalledError, what, code="WIR122", fix=fix, on=ImportError):
        import lehr.plugins.remote.channel  # noqa: F401 - which also silences gRPC
    return [_plugin(deployment, name, item) for name, item in configured.plugins.items()]


async def described(plugins: Collection[AssetPlugin]) -> None:
    """Have the plugins of other processes describe themselves that never have; waits some seconds for them.

    One that is not available has the usual traits until it is.
    """
    import asyncio
    import contextlib
    import sys

    if "lehr.plugins.remote.plugin" not in sys.modules:
        return
    from lehr.base.errors import LehrError
    from lehr.plugins.remote.plugin import RemotePlugin

    async def describe(plugin: RemotePlugin) -> None:
        with contextlib.suppress(LehrError, TimeoutError):
            async with asyncio.timeout(_DESCRIBE_SECONDS):
                await plugin.connection.describe()

    await asyncio.gather(
        *(
            describe(plugin)
            for plugin in plugins
            if isinstance(plugin, RemotePlugin) and plugin.connection.description is None
        )
    )


def remote_selections(plugins: Collection[AssetPlugin]) -> dict[str, SelectionService]:
    """The target selections that plugins of other processes answer, by name."""
    import sys

    if "lehr.plugins.remote.plugin" not in sys.modules:
        return {}
    from lehr.plugins.remote.plugin import RemotePlugin

    remote = (plugin for plugin in plugins if isinstance(plugin, RemotePlugin))
    return {name: service for plugin in remote for name, service in plugin.selections.items()}


def remote_checks(plugins: Collection[AssetPlugin], known: Collection[CheckPlugin]) -> list[CheckPlugin]:
    """The check of their providers, and those that plugins of other processes answer, in the file's order.

    Args:
        known: checks of this process.

    Raises:
        StalledError: one has the name of another check.
    """
    import sys

    if "lehr.plugins.remote.plugin" not in sys.modules:
        return []
    from lehr.base.errors import StalledError
    from lehr.plugins.remote.plugin import RemotePlugin
    from lehr.plugins.remote.provider_check import ProviderCheck

    remote = [plugin for plugin in plugins if isinstance(plugin, RemotePlugin)]
    found: list[CheckPlugin] = [ProviderCheck()] if any(plugin.types for plugin in remote) else []
    taken = {check.name for check in (*known, *found)}
    for plugin in remote:
        checks = plugin.checks
        if names := sorted(taken.intersection(checks)):
            raise StalledError(
                f"the plugin {plugin.name} cannot answer the check {', '.join(names)}",
                code="WIR125",
                why="a check of this installation has that name",
                fix="remove it from `checks`, or give it another name",
            )
        found.extend(checks.values())
    return found


def remote_validators(plugins: Collection[AssetPlugin]) -> list[AskedValidator]:
    """The validators that plugins of other processes answer, in the order of the file."""
    import sys

    if "lehr.plugins.remote.plugin" not in sys.modules:
        return []
    from lehr.plugins.remote.plugin import RemotePlugin

    remote = (plugin for plugin in plugins if isinstance(plugin, RemotePlugin))
    return [validator for plugin in remote for validator in plugin.validators]


def provider_validators(file: Path | None) -> tuple[Validator, ...]:
    """The validator of assets that have providers; none where it is not known which plugins there are.

    Args:
        file: that of plugins.

    Raises:
        StalledError: it cannot be used.
    """
    if file is None:
        return ()
    served = {type: name for name, plugin in read_plugins(file).plugins.items() for type in plugin.types}

    def providers(proposal: Proposal) -> Iterator[Diagnostic]:
        from lehr.plugins.remote.provider_validation import does_not_serve

        return does_not_serve(proposal, served)

    return (providers,)


def read_plugins(file: Path) -> PluginConfiguration:
    """The plugins that a file configures.

    Raises:
        StalledError: it cannot be read, or is not such a file.
    """
    import msgspec

    from lehr.base import documents
    from lehr.base.errors import StalledError, raised_as
    from lehr.plugins.remote.configuration import PluginConfiguration

    what = f"the plugins in {file} cannot be used"
    fix = "write it like the example in docs/how-to/run-plugins.md"
    with raised_as(StalledError, what, code="WIR120", fix=fix):
        content = file.read_bytes()
    loaded = documents.load(file.name, content)
    for problem in loaded.diagnostics:
        why = f"line {problem.at.line}: {problem.what}" if problem.at else problem.what
        raise StalledError(what, code="WIR120", why=why, fix=fix)
    if len(loaded.documents) != 1:
        raise StalledError(what, code="WIR120", why="it is not a single mapping", fix=fix)
    with raised_as(StalledError, what, code="WIR120", fix=fix, on=(msgspec.ValidationError, ValueError)):
        return msgspec.convert(loaded.documents[0].value, PluginConfiguration)


def _plugin(deployment: Deployment, name: str, definition: PluginDefinition) -> RemotePlugin:
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.plugins.remote.check import RemoteCheck
    from lehr.plugins.remote.connection import Connection
    from lehr.plugins.remote.limits import ROOM
    from lehr.plugins.remote.plugin import RemotePlugin
    from lehr.plugins.remote.records import FOLDER, Kept, PluginFiles, PluginRecord
    from lehr.plugins.remote.validator import RemoteValidator
    from lehr.wiring.installed import registry, secrets

    def governs(type: str) -> bool:
        found = registry().types.get(type)
        return found is not None and found.governs

    clock, read = SystemClock(), secrets(deployment, f"plugin {name}")
    files = PluginFiles(deployment.state / FOLDER, name, clock)
    served = definition.serves
    record = PluginRecord(
        name=name,
        types=definition.types,
        checks=tuple(served["check"]),
        validators=tuple(served["validator"]),
        address=definition.address,
    )
    connection = Connection(
        name,
        _opener(deployment, definition, files, clock, read),
        clock,
        lambda description: _accept(name, definition, description),
        partial(Chance().uniform, 0.0, 1.0),
        files.description(),
        Kept(files, record, clock),
    )
    checks = {
        item.name: RemoteCheck(item.name, connection, clock, governs, item.types)
        for item in definition.served_checks
    }
    validators = [
        RemoteValidator(item.name, connection, clock, item.types, item.when_down)
        for item in definition.served_validators
    ]
    return RemotePlugin(
        connection,
        definition.types,
        clock,
        read,
        definition.selections,
        checks,
        validators,
        room=ROOM,
    )


def _opener(
    deployment: Deployment, definition: PluginDefinition, files: PluginFiles, clock: Clock, read: Secrets
) -> Opener:
    from lehr.base.blocking import Threads
    from lehr.plugins.plugin_process import PluginProcesses, Program
    from lehr.plugins.remote.opening import Attached, Managed, Start

    base = deployment.base

    async def start() -> Start:
        plain = {name: value for name, value in definition.environment.items() if isinstance(value, str)}
        secret = {
            name: await read.read(value)
            for name, value in definition.environment.items()
            if not isinstance(value, str)
        }
        environment = plain | {name: value.text() for name, value in secret.items()}
        program, *arguments = definition.command
        path = str((base / program).absolute()) if "/" in program else program
        directory = str((base / definition.directory).absolute())
        started = Program((path, *arguments), environment, directory, definition.sha256)
        return Start(started, tuple(secret.values()))

    if definition.command:
        threads = Threads("plugin programs", 2)
        return Managed(PluginProcesses(threads, clock), start, files.log)
    if definition.tls is None:
        return Attached(definition.address)
    threads = Threads("plugin certificates", 1)
    return Attached(definition.address, partial(threads.run, _tls, definition.tls, base))


def _tls(files: TlsFiles, base: Path) -> Tls:
    """Runs in a thread."""
    from lehr.base.errors import StalledError, raised_as
    from lehr.plugins.remote.channel import Tls

    what, fix = "the files for TLS of a plugin cannot be read", "correct their paths or permissions"
    with raised_as(StalledError, what, code="WIR123", fix=fix):
        return Tls(
            (base / files.authority).read_bytes(),
            (base / files.certificate).read_bytes(),
            (base / files.key).read_bytes(),
            files.name,
        )


def _accept(name: str, definition: PluginDefinition, description: m.DescribeResponse) -> None:
    """Refuse a plugin that lacks something that is assigned to it."""
    from lehr.base.errors import StalledError

    described = {
        "type": [item.name for item in description.types],
        "selection": description.selections,
        "check": description.checks,
        "validator": description.validators,
    }
    served = definition.serves
    missing = [
        f"the {kind} {item}"
        for kind in served
        for item in sorted({*served[kind]}.difference(described[kind]))
    ]
    if missing:
        offered = [f"the {kind} {item}" for kind, items in described.items() for item in items]
        raise StalledError(
            f"the plugin {name} does not serve {', '.join(missing)}",
            code="WIR124",
            why=f"it serves {', '.join(offered) or 'nothing'}",
            fix="correct the names in the file of plugins, or update the plugin",
        )

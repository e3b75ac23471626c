"""Holds plugins in other processes to the rules of asset plugins, with fixtures in a file.

In: how to start the plugin, and its author's description of its production. Out: the result of each rule.
"""

from __future__ import annotations

import contextlib
import os
import string
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.declared import TypeDeclaration, schema_of
from lehr.model.evolution import FIRST, Evolution
from lehr.model.provider import PROVIDED_BY
from lehr.model.provider import TYPES as PROVIDER_TYPES
from lehr.model.types import AssetType, Registry
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.opening import Managed, Start
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedSecrets

S = TypeVar("S")

SubjectRule = Callable[[S], Coroutine[Any, Any, None]]
"""A rule of a conformance suite."""

PRODUCTION = "PRODUCTION"
"""The variable, also in texts of fixtures, that names the folder of production."""

_COMMAND_SECONDS = 60.0


DescribedType = m.AssetType
"""A type, as a plugin describes it."""


class Trouble(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Production is out of order between two commands."""

    enter: str
    leave: str


class FixtureAsset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An asset, as in a workspace."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    type: Annotated[str, msgspec.Meta(min_length=1)]
    payload: dict[str, Any]
    addons: dict[str, Any] = {}


class Fixtures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plugin's production, for tests. Commands are run by `sh` in the folder of production.

    Attributes:
        asset: one that the plugin keeps.
        changed: another payload of that asset.
        prepare: makes what has to be there before anything is applied.
        disturb: changes production as a person might, so that the plugin should find a difference.
        observe: prints all of production that the plugin could touch; by default, the folder's files.
        others: further assets that the plugin reads, and the `lehr.Provider` that an addon of `asset` names.
        outputs: those of `others`, by id.
        secrets: values of secrets, by reference.
        secret: a text in the intent or in `secrets` that nothing may show.
        crash: kills what runs, where production starts it again without a push.
        troubles: ways in which production is out of order.
        query: where a plugin that discovers finds what was applied.
        environment: variables for the plugin.
        interruptions: at how many places each push is interrupted.
        linger: seconds for which the rules look whether something still happens.
        patience: seconds within which a push that was broken off must have ended.
    """

    asset: FixtureAsset
    changed: dict[str, Any]
    disturb: str
    prepare: str = ""
    observe: str = ""
    others: tuple[FixtureAsset, ...] = ()
    outputs: dict[str, dict[str, Any]] = {}
    secrets: dict[str, str] = {}
    secret: str = ""
    crash: str = ""
    troubles: tuple[Trouble, ...] = ()
    query: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    interruptions: Annotated[int, msgspec.Meta(ge=1)] = 5
    linger: Annotated[float, msgspec.Meta(gt=0)] = 0.1
    patience: Annotated[float, msgspec.Meta(gt=0)] = 30.0


class Result(msgspec.Struct, frozen=True):
    """Of one rule.

    Attributes:
        about: what the rule asks for.
        broken: how it was broken; empty if it was kept.
        log: the last lines that the plugin has printed, if it was broken.
    """

    rule: str
    about: str
    seconds: float
    broken: str = ""
    log: tuple[str, ...] = ()


class PluginUnderTest:
    """A plugin's program, and its fixtures.

    Args:
        arguments: program and arguments.
    """

    def __init__(self, arguments: Sequence[str], fixtures: Fixtures) -> None:
        self._arguments = tuple(arguments)
        self._fixtures = fixtures

    async def results(self, rules: Sequence[Rule]) -> AsyncIterator[Result]:
        """The result of each rule.

        Raises:
            LehrError: the plugin cannot be described, or does not serve the type of the fixtures.
        """
        description = await description_of(self._arguments, self._fixtures.environment)
        served = [item.name for item in description.types]
        if self._fixtures.asset.type not in served:
            raise LehrError(
                f"the plugin does not serve assets of type {self._fixtures.asset.type}",
                code="TST120",
                why=f"it serves {', '.join(served) or 'none'}",
                fix="correct `asset` in test.yaml, or Describe in the plugin",
            )
        for rule in rules:
            yield await self._result(rule, description)

    async def _result(self, rule: Rule, description: m.DescribeResponse) -> Result:
        clock, log, broken = SystemClock(), list[str](), ""
        started = clock.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                await rule(self._subject(Path(folder), log, description))
            except AssertionError as error:
                broken = str(error).removeprefix(f"{rule.__name__}: ")
        about = (rule.__doc__ or "").partition("\n")[0]
        kept = tuple(log[-20:]) if broken else ()
        return Result(rule.__name__, about, clock.monotonic() - started, broken, kept)

    def _subject(self, folder: Path, log: list[str], description: m.DescribeResponse) -> Subject:
        fixtures, run = self._fixtures, _Commands(folder)
        secrets = FixedSecrets(fixtures.secrets)
        clock = SystemClock()
        if fixtures.prepare:
            run(fixtures.prepare)
        return Subject(
            make=lambda: RemotePlugin(
                self._connection(folder, log, description),
                [item.name for item in description.types],
                clock,
                secrets,
            ),
            registry=Registry((*map(_type, description.types), *PROVIDER_TYPES)),
            asset=_asset(fixtures.asset, folder, description),
            changed=_asset(
                msgspec.structs.replace(fixtures.asset, payload=fixtures.changed), folder, description
            ),
            disturb=lambda: run(fixtures.disturb),
            observe=lambda: run.output(fixtures.observe) if fixtures.observe else _contents(folder),
            others=tuple(_asset(other, folder, description) for other in fixtures.others),
            outputs=fixtures.outputs,
            crash=(lambda: run(fixtures.crash)) if fixtures.crash else None,
            secret=fixtures.secret,
            troubles=tuple(_trouble(trouble, run) for trouble in fixtures.troubles),
            query=tuple(_placed(part, folder) for part in fixtures.query),
            interruptions=fixtures.interruptions,
            linger=fixtures.linger,
            patience=fixtures.patience,
            clock=clock,
        )

    def _connection(self, folder: Path, log: list[str], description: m.DescribeResponse) -> Connection:
        environment = _placed(self._fixtures.environment, folder) | {PRODUCTION: str(folder)}
        return connection_to(self._arguments, environment, log.append, description, self._name())

    def _name(self) -> str:
        """The name by which its provider knows the plugin; by default, that of the program."""
        named = self._fixtures.asset.addons.get(PROVIDED_BY, {}).get("provider")
        providers = (other.payload for other in self._fixtures.others if other.id == named)
        return next((str(payload.get("plugin")) for payload in providers), self._arguments[0])


async def description_of(
    arguments: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
) -> m.DescribeResponse:
    """The description of a plugin's program.

    Raises:
        LehrError: it cannot be started, or does not describe itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        placed = _placed(environment, Path(folder)) | {PRODUCTION: folder}
        connection = connection_to(arguments, placed, lambda line: None)
        try:
            return await connection.describe()
        finally:
            await connection.close()


def connection_to(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    log: Callable[[str], None],
    description: m.DescribeResponse | None = None,
    name: str = "",
) -> Connection:
    """A connection to a plugin's program, which runs in this folder; `log` gets what it prints."""
    program = Program(tuple(arguments), environment, os.getcwd())

    async def start() -> Start:
        return Start(program)

    opener = Managed(PluginProcesses(Inline(), SystemClock()), start, log)
    return Connection(name or arguments[0], opener, SystemClock(), description=description)


def rules_named(names: Sequence[str], others: Collection[str] = ()) -> list[Rule]:
    """The rules of these names; all for none.

    Args:
        others: names of rules of another suite.

    Raises:
        LehrError: there is none of a name.
    """
    known = {rule.__name__: rule for rule in RULES}
    for name in names:
        if name not in known and name not in others:
            every = dict.fromkeys((*known, *others))
            raise LehrError(
                f"there is no rule {name!r}", code="TST121", fix=f"choose from: {', '.join(every)}"
            )
    return rules_of(RULES, names)


def rules_of(suite: Sequence[SubjectRule[S]], names: Sequence[str]) -> list[SubjectRule[S]]:
    """The rules of a suite with these names, in their order; all for none."""
    known = {rule.__name__: rule for rule in suite}
    return [known[name] for name in names if name in known] if names else list(suite)


class _Commands:
    """Runs commands in the folder of production."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, command: str) -> None:
        self.output(command)

    def output(self, command: str) -> bytes:
        """The output of `command`.

        Raises:
            LehrError: it fails.
        """
        environment = os.environ | {PRODUCTION: str(self._folder)}
        ended = subprocess.run(  # noqa: S602 - the author of the fixtures wrote it
            command,
            check=False,
            shell=True,
            cwd=self._folder,
            env=environment,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
        )
        if ended.returncode:
            raise LehrError(
                f"the command of the fixtures failed: {command}",
                code="TST122",
                why=f"exit code {ended.returncode}: {ended.stderr.decode(errors='replace').strip()}",
                fix="correct it in test.yaml",
            )
        return ended.stdout


def _trouble(
    trouble: Trouble, run: Callable[[str], None]
) -> Callable[[], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        run(trouble.enter)
        try:
            yield
        finally:
            run(trouble.leave)

    return entered


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _asset(fixture: FixtureAsset, folder: Path, description: m.DescribeResponse) -> Asset:
    versions = {item.name: item.version for item in description.types if item.version > 1}
    return make_asset(
        AssetId(fixture.id),
        fixture.type,
        _placed(fixture.payload, folder),
        fixture.addons,
        versions={name: version for name, version in versions.items() if name == fixture.type} or None,
    )


def _type(described: m.AssetType) -> AssetType:
    """A type as the plugin describes it; payloads of one that others declare may be anything."""
    schema = msgspec.json.decode(described.schema or b"{}", type=dict[str, Any])
    evolution = Evolution(described.version or FIRST)
    return AssetType(described.name, schema_of(TypeDeclaration(schema)), evolution=evolution)


def _placed(value: Any, folder: Path) -> Any:
    """`value` with the folder of production in its texts."""
    if isinstance(value, str):
        return string.Template(value).safe_substitute({PRODUCTION: str(folder)})
    if isinstance(value, Mapping):
        return {name: _placed(item, folder) for name, item in value.items()}
    if isinstance(value, list):
        return [_placed(item, folder) for item in value]
    return value

"""The file that configures plugins of other processes. It belongs to the deployment, since it names programs.

People who may change intent must not be able to run any program on this machine: intent only declares assets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lehr.model.secret import Secret
from lehr.sdk.validator import WhenDown

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_CHARACTERS = "use lower-case letters, digits and inner hyphens"
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


class TlsFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files for mutual TLS, in PEM.

    Attributes:
        authority: certificates that must have signed that of the plugin.
        certificate, key: those of Lehr.
        name: the name that the plugin's certificate must have.
    """

    authority: str
    certificate: str
    key: str
    name: str


class ServedCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A check that a plugin answers.

    Attributes:
        types: of the assets whose pushes it judges; none for all.
    """

    name: str
    types: tuple[str, ...] = ()


class ServedValidator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A validator that a plugin answers.

    Attributes:
        types: of the assets whose changes it judges; none for all.
        when_down: how a change is handled that it has not judged.
    """

    name: str
    types: tuple[str, ...] = ()
    when_down: WhenDown = WhenDown.REFUSE


class PluginDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A plugin in a process of its own.

    Attributes:
        types: types of assets that it serves; it may not serve others.
        selections: target selections that it answers, by the names that policies use.
        checks: checks that it answers; each by its name, or with the types that it judges.
        validators: validators that it answers, likewise.
        command: program and arguments; Lehr starts it, and again when it has ended.
        sha256: digest that the program's file must have.
        directory: where the program runs; relative paths are relative to the base directory.
        environment: variables in addition to `PATH`, `HOME` and `LANG`.
        address: `unix:PATH` or `HOST:PORT` of a plugin with a life cycle of its own, instead of `command`.
        tls: for `HOST:PORT`.
    """

    types: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    checks: tuple[str | ServedCheck, ...] = ()
    validators: tuple[str | ServedValidator, ...] = ()
    command: tuple[str, ...] = ()
    sha256: str = ""
    directory: str = "."
    environment: dict[str, str | Secret] = {}
    address: str = ""
    tls: TlsFiles | None = None

    @property
    def served_checks(self) -> tuple[ServedCheck, ...]:
        """The checks, written out."""
        return tuple(ServedCheck(item) if isinstance(item, str) else item for item in self.checks)

    @property
    def served_validators(self) -> tuple[ServedValidator, ...]:
        """The validators, written out."""
        return tuple(ServedValidator(item) if isinstance(item, str) else item for item in self.validators)

    @property
    def serves(self) -> Mapping[str, Sequence[str]]:
        """The names of everything that it serves, by kind."""
        return {
            "type": self.types,
            "selection": self.selections,
            "check": [item.name for item in self.served_checks],
            "validator": [item.name for item in self.served_validators],
        }

    def __post_init__(self) -> None:
        if problems := list(_problems(self)):
            raise ValueError("; ".join(problems))


class PluginConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All plugins, by name."""

    plugins: dict[str, PluginDefinition]

    def __post_init__(self) -> None:
        for name in self.plugins:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a name: {_CHARACTERS}")
        served = Counter(
            f"the {kind} {name}"
            for plugin in self.plugins.values()
            for kind, names in plugin.serves.items()
            for name in names
        )
        if twice := sorted(name for name, number in served.items() if number > 1):
            raise ValueError(f"{', '.join(twice)} is served more than once")


def _problems(plugin: PluginDefinition) -> Iterator[str]:
    if not any(plugin.serves.values()):
        yield "`types`, `selections`, `checks` or `validators` must be given"
    for kind in ("check", "validator"):
        for name in plugin.serves[kind]:
            if not _NAME.fullmatch(name):
                yield f"{name!r} is not the name of a {kind}: {_CHARACTERS}"
    if bool(plugin.command) == bool(plugin.address):
        yield "exactly one of `command` and `address` must be given"
    if plugin.sha256 and not _DIGEST.fullmatch(plugin.sha256):
        yield "`sha256` must have 64 hexadecimal digits"
    if plugin.address:
        if plugin.sha256 or plugin.environment:
            yield "`sha256` and `environment` belong to `command`"
        if plugin.address.startswith("unix:") == (plugin.tls is not None):
            yield "`tls` must be given for HOST:PORT, and only there"
    elif plugin.tls is not None:
        yield "`tls` belongs to `address`"

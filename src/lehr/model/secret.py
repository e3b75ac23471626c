"""Secrets, by reference: intent holds where a secret is kept, and never its value."""

from __future__ import annotations

import enum
import re
import types as builtin_types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

from lehr.base.pointers import escaped


class SecretBackend(enum.StrEnum):
    """The backend that keeps a secret.

    ENV: Lehr's own environment. FILE: a file of the machine. AGE, SOPS: an encrypted file of the
    workspace, of which intent holds the content's digest.
    """

    ENV = "env"
    FILE = "file"
    AGE = "age"
    SOPS = "sops"

    @property
    def encrypted(self) -> bool:
        """True for encrypted files in the workspace."""
        return self in (SecretBackend.AGE, SecretBackend.SOPS)


class Sensitive(msgspec.Struct, frozen=True):
    """Marks a field that must hold a reference to a secret, and never a value.

    A field of type `Secret` is marked automatically. Where an old type must still accept text, mark it
    as `Annotated[str | Secret, Sensitive()]`: text is then refused when it is read, with a fix.
    """


class SecretsWithin(msgspec.Struct, frozen=True):
    """Marks a field of any form in which references to secrets may be at any depth.

    Use it as `Annotated[dict[str, Any], SecretsWithin()]`.
    """


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED = "LEHR_"
_LONGEST = 1000
_FORMS = (
    "`secret` is `env:NAME`, `file:PATH`, `age:FILE` or `sops:FILE`; in the last two, `#KEY` "
    "names one value in the file (`age:secrets/db.yaml.age#password`)"
)


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a secret is kept. Use it as the type of a field; the plugin reads it with `lehr.sdk.secrets`.

    Attributes:
        secret: `env:NAME`, a variable of Lehr's environment; `file:PATH`, a file of the machine,
            absolute or relative to the base directory of the deployment; `age:FILE` or `sops:FILE`,
            an encrypted file of the workspace, with `#KEY` for one value in it (`#db.password`).
        version: free text for secrets that lie outside of intent: change it when the secret has
            changed, and whatever uses the secret gets the new one.
        digest: of the encrypted file as it is at this revision. Lehr fills it in, so that a new
            file changes the asset.
    """

    secret: str
    version: str = ""
    digest: str | None = None

    def __post_init__(self) -> None:
        # Never with the text itself: it may be the secret, by mistake.
        if problem := _problem(self.secret):
            raise ValueError(problem)

    @property
    def backend(self) -> SecretBackend:
        """The backend that keeps it."""
        return SecretBackend(self.secret.partition(":")[0])

    @property
    def place(self) -> str:
        """Name of the variable, or path of the file."""
        return self._parts[0]

    @property
    def key(self) -> tuple[str, ...]:
        """Keys that lead to the value within the file; empty for the file as a whole."""
        key = self._parts[1]
        return tuple(key.split(".")) if key else ()

    @property
    def _parts(self) -> tuple[str, str]:
        rest = self.secret.partition(":")[2]
        if not self.backend.encrypted:
            return rest, ""
        place, _, key = rest.partition("#")
        return place, key


Placed = tuple[str, Secret]
"""A reference to a secret, after the JSON pointer to where an asset has it."""


Found = Callable[[Any, str], Iterator[tuple[str, Any]]]
"""From plain data and the JSON pointer to it, to the references in it, each with its pointer."""


def reference_problem(value: Any) -> str | None:
    """Why plain data is not a reference to a secret, without quoting it; None when it is one."""
    if not isinstance(value, dict):
        return "this is the value itself"
    if not value.keys() <= {"secret", "version", "digest"}:
        return "a reference has only the fields `secret` and `version`"
    if not isinstance(value.get("secret"), str):
        return "a reference needs a field `secret`, a string"
    if not isinstance(value.get("version", ""), str):
        return "`version` must be a string; put it in quotes"
    return _problem(value["secret"])


def reference_in(value: Any) -> Secret | None:
    """The reference in plain data; None when it is not one."""
    return None if reference_problem(value) else msgspec.convert(value, Secret)


def secret_leaf(kind: Any) -> Found | None:
    """Finds references in the value of a field that is one or may hold some; None for other fields."""
    if kind is Secret:
        return mappings_of
    marks = typing.get_args(kind)[1:] if typing.get_origin(kind) is Annotated else ()
    return references_within if any(isinstance(mark, SecretsWithin) for mark in marks) else None


def mappings_of(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A reference as plain data, so that the decoder's caller can change it in its place."""
    if reference_in(value) is not None:
        yield path, value


def references_within(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """References in plain data, as of `mappings_of`, at any depth."""
    if reference_in(value) is not None:
        yield path, value
    elif isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from references_within(item, f"{path}/{escaped(str(name))}")


def sensitive_leaf(kind: Any) -> Found | None:
    """Finds values where a reference is required; None for fields that require none."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Secret or (origin is Annotated and any(isinstance(mark, Sensitive) for mark in arguments[1:])):
        return _as_it_is
    if origin in (typing.Union, builtin_types.UnionType) and Secret in arguments:
        # Where text is allowed as well, only what looks like a reference has to be one.
        others = set(arguments) - {Secret, type(None)}
        return _mapping if others else _as_it_is
    return None


def _as_it_is(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if value is not None:
        yield path, value


def _mapping(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield path, value


def _problem(text: str) -> str | None:
    scheme, _, rest = text.partition(":")
    if scheme not in set(SecretBackend) or not rest or len(text) > _LONGEST or _CONTROL.search(text):
        return _FORMS
    backend = SecretBackend(scheme)
    if backend is SecretBackend.ENV:
        if rest.startswith(_RESERVED):
            return f"names that start with {_RESERVED} are reserved for Lehr, whose private key may be in one"
        return None if _VARIABLE.fullmatch(rest) else "`env:` must be followed by the name of a variable"
    if backend is SecretBackend.FILE:
        return None
    place, mark, key = rest.partition("#")
    if any(part in ("", ".", "..") for part in place.split("/")):
        return f"`{backend}:` must be followed by the path of a file in the workspace, without `.` and `..`"
    if mark and not all(key.split(".")):
        return "`#` must be followed by a key, or by several keys with dots between them"
    return None

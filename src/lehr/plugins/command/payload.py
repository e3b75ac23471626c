"""The payload of `lehr.Command`."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from lehr.model.secret import Secret
from lehr.model.types import AssetType

COMMAND = "lehr.Command"

MOST_CHECK_SECONDS = 300.0
MOST_APPLY_SECONDS = 3600.0

_RESERVED = "LEHR_"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Arguments = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Script = Arguments | Text
"""A program with its arguments, run without a shell; or text for `/bin/sh -c`."""


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A condition that one script can check and another can bring about.

    The output of the scripts is kept and shown. Secrets that the scripts were given are hidden in it; it must
    not contain others.

    Attributes:
        check: read-only. Exit code 0: it is as intended; 1: it is not, and the first lines of standard output
            describe the difference; anything else: the check itself failed.
        apply: brings it about; afterwards `check` must exit with 0. May be run again at any time.
        remove: undoes it; afterwards `check` must exit with 1. Without `remove` the asset cannot be turned
            down.
        environment: additional variables. `PATH`, `HOME` and `LANG` come from Lehr's own environment unless
            they are set here. Lehr sets `LEHR_ASSET`, `LEHR_INCARNATION` and, except for `check`,
            `LEHR_OPERATION`. A value may be a reference to a secret.
        directory: working directory, absolute or relative to the base directory of the deployment; by default
            that base directory.
        timeout_seconds: for `apply` and `remove`, which are then ended, by SIGKILL if necessary.
        check_timeout_seconds: for `check`.
    """

    check: Script
    apply: Script
    remove: Script | None = None
    environment: dict[str, str | Secret] = {}
    directory: Text | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_APPLY_SECONDS)] = 300.0
    check_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_CHECK_SECONDS)] = 30.0

    def __post_init__(self) -> None:
        for name in ("check", "apply", "remove", "directory"):
            if "\0" in "".join(getattr(self, name) or ()):
                raise ValueError(f"`{name}` contains a NUL character")
        for name in ("check", "apply", "remove"):
            script = getattr(self, name)
            if script is not None and not arguments(script)[0]:
                raise ValueError(f"`{name}` has no program: its first part is empty")
        for key, value in self.environment.items():
            if not _NAME.fullmatch(key) or key.startswith(_RESERVED):
                raise ValueError(
                    f"`environment` has the invalid name {key!r}: names consist of letters, digits and _, do "
                    f"not begin with a digit, and those that begin with {_RESERVED} are reserved"
                )
            if isinstance(value, str) and "\0" in value:
                raise ValueError(f"`environment` contains a NUL character in the value of {key}")


def arguments(script: Script) -> tuple[str, ...]:
    """The command line for `script`."""
    return ("/bin/sh", "-c", script) if isinstance(script, str) else script


TYPES = (AssetType(COMMAND, Command),)

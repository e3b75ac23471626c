"""The private keys that Lehr has on this machine. They are not part of the workspace."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from lehr.base.errors import StalledError
from lehr.secrets import age

IDENTITY = "LEHR_AGE_IDENTITY"
"""Environment variable that holds private keys."""

IDENTITY_FILE = "LEHR_AGE_IDENTITY_FILE"
"""Environment variable that names a file with private keys."""

IDENTITY_NAME = "age-identity.txt"
"""File in the state folder that holds private keys if neither variable is set."""


def identities(environment: Mapping[str, str], state: Path) -> list[age.Identity]:
    """The private keys, from the first place that is set.

    Raises:
        StalledError: there are no keys, they cannot be read, or other users can read them.
    """
    if text := environment.get(IDENTITY):
        return age.identities_in(text, IDENTITY)
    named = environment.get(IDENTITY_FILE)
    path = Path(named).expanduser() if named else state / IDENTITY_NAME
    return age.identities_in(_private(path, IDENTITY_FILE if named else ""), str(path))


def _private(path: Path, variable: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise StalledError(
            f"there is no private key to decrypt with: {path} does not exist",
            code="SEC107",
            why=f"{variable} names it" if variable else f"neither {IDENTITY} nor {IDENTITY_FILE} is set",
            fix=f"create one with `lehr secret keygen`, or set {IDENTITY_FILE} to its path",
        ) from error
    except OSError as error:
        raise StalledError(
            f"the private key {path} cannot be read", code="SEC108", why=error.strerror or ""
        ) from error
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & 0o077:
            raise StalledError(
                f"users other than its owner can use the private key {path}",
                code="SEC109",
                why=f"its mode is {mode:04o}",
                fix=f"chmod 600 {path}; create a new key if another user may have read it",
            )
        return file.read()

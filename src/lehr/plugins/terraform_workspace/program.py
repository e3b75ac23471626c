"""Which command runs: found, compared with its digest, and asked for its version. Blocks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from contextlib import AbstractContextManager
from typing import NamedTuple

from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.base.text import one_line

OLDEST = (1, 5)
"""The first version that is understood: the one in which OpenTofu and Terraform still were the same."""

_NUMBERS = re.compile(r"(\d+)\.(\d+)")
_CHUNK = 1 << 20


class Program(NamedTuple):
    """A command.

    Attributes:
        identity: differs for a file that has been replaced or changed.
    """

    path: str
    name: str
    identity: tuple[int, ...]


def find(program: str, base: str, search: str) -> Program:
    """The command `program`, by name or path.

    Args:
        base: where a relative path starts.
        search: where names are looked for, as in `PATH`.

    Raises:
        StalledError: there is none, or it may not be run.
    """
    path = os.path.join(base, program) if "/" in program else program
    found = shutil.which(path, path=search)
    if found is None:
        raise StalledError(
            f"the command {program} cannot be run",
            code="TWS101",
            why="there is no such program" if "/" in program else f"there is no such program in {search}",
            fix="install it, or correct `program`",
        )
    with _reading(found):
        about = os.stat(found)
    identity = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
    return Program(os.path.abspath(found), os.path.basename(program), identity)


def require_digest(program: Program, sha256: str) -> None:
    """Raises `StalledError` if the file of the command has another digest."""
    digest = hashlib.sha256()
    with _reading(program.path), open(program.path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != sha256:
        raise StalledError(
            f"{program.path} is not the program that `sha256` names",
            code="TWS102",
            why=f"its digest is {digest.hexdigest()}",
            fix="install that version, or correct `sha256`",
        )


def _reading(path: str) -> AbstractContextManager[None]:
    return raised_as(TransientError, f"{path} cannot be read", code="TWS123")


def require_version(program: Program, output: bytes) -> str:
    """The version in what `version -json` prints.

    Raises:
        StalledError: it is older than `OLDEST`, or not a version.
    """
    try:
        version = json.loads(output)["terraform_version"]
        numbers = _NUMBERS.match(version)
    except (ValueError, KeyError, TypeError, RecursionError):
        version, numbers = "", None
    if numbers is None:
        raise StalledError(
            f"{program.path} does not answer like Terraform or OpenTofu",
            code="TWS103",
            why=f"`version -json` printed {one_line(output[:200].decode(errors='replace'))!r}",
            fix="correct `program`",
        )
    if (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise StalledError(
            f"{program.path} has the version {one_line(version)[:40]}",
            code="TWS124",
            why=f"Lehr needs {'.'.join(map(str, OLDEST))} or newer",
            fix="install a newer version, or name it in `program`",
        )
    return str(version)

"""Unified diffs of the package, applied by git to code that may have drifted from the original."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from lehr.base.errors import LehrError

_HEAD = re.compile(r"^--- (\S+).*\n\+\+\+ (\S+).*$", re.MULTILINE)
_GIT = re.compile(r"^diff --git .*\n", re.MULTILINE)
_ABOVE = re.compile(r"^(?:[ab]/)?(?:\./)?(?:src/)?")
_NO_FILE = "/dev/null"
_COMMAND = ("git", "apply", "-p0", "-C1", "--whitespace=nowarn", "-")
"""One line of context must fit at each end; git looks for the nearest place where it does."""


class PatchError(LehrError):
    """A patch cannot be understood, or does not fit."""


def normal(text: str) -> tuple[str, tuple[str, ...]]:
    """The diff of `text` with paths below `src`, whatever made it; and these paths.

    Raises:
        PatchError: it is not a unified diff, or creates or deletes a file.
    """
    paths: list[str] = []

    def head(found: re.Match[str]) -> str:
        if _NO_FILE in found.groups():
            created = f"{found[1]} to {found[2]}"
            raise PatchError(
                "a mutation changes files; it does not create or delete any", code="SIM108", why=created
            )
        # As git writes it, from the top of the repository, or as `diff` does in `src`.
        paths.append(_ABOVE.sub("", found[2]))
        return f"--- {paths[-1]}\n+++ {paths[-1]}"

    diff = _HEAD.sub(head, _GIT.sub("", text))
    if not paths:
        raise PatchError(
            "this is not a patch",
            code="SIM109",
            why="it has no lines `--- FILE` and `+++ FILE`",
            fix="write it with `git diff`",
        )
    return diff if diff.endswith("\n") else f"{diff}\n", tuple(paths)


def apply(diff: str, folder: Path) -> None:
    """Change the files in `folder`, which the paths of `diff` are relative to.

    Raises:
        PatchError: it does not fit.
    """
    # Not even the repository that the folder may be in is any of git's business here.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            _COMMAND, cwd=folder, env=variables, input=diff, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise PatchError(
            "git is not installed", code="SIM110", why="it applies patches", fix="install git"
        ) from error
    if done.returncode:
        why = "; ".join(line.removeprefix("error: ") for line in done.stderr.splitlines())
        raise PatchError(
            "the patch does not apply",
            code="SIM111",
            why=why,
            fix="run scripts/refit_mutants.py, or write it again from the code as it is",
        )

"""The followed branch: the one checked out at the first run, until a user names another.

Users who check out another branch in the workspace want to look at it, not to deploy it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.base.durable import replace
from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.sdk.source import REMARK

HEADS = "refs/heads/"


class _Remembered(msgspec.Struct, frozen=True):
    ref: str


class BranchMemory:
    """Records the followed branch in the state folder, independent of the workspace.

    Args:
        path: the file. It belongs to the one source of a state that has `lehr.yaml`, regardless of its
            location.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def recall(self) -> str | None:
        """The full name of its ref; None before one is recorded.

        Raises:
            StalledError: it cannot be read. A branch other than the followed one must never be used.
        """
        what = f"{self._path}, which records the followed branch, cannot be read"
        fix = "name the branch with --branch, which writes the file again"
        broken = (OSError, msgspec.DecodeError)
        with (
            raised_as(StalledError, what, code="SRC103", fix=fix, on=broken),
            contextlib.suppress(FileNotFoundError),
        ):
            return msgspec.json.decode(self._path.read_bytes(), type=_Remembered).ref
        return None

    def remember(self, ref: str) -> None:
        """Follow `ref` from now on, in all runs.

        Raises:
            TransientError: it cannot be written.
        """
        what = f"{self._path}, which records the followed branch, cannot be written"
        fix = "free space in the state folder, and let this user write to it"
        with raised_as(TransientError, what, code="SRC104", fix=fix):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self._path, msgspec.json.encode(_Remembered(ref)), 0o600)


def detached(location: str) -> StalledError:
    """No branch is checked out, and none was named."""
    return StalledError(
        f"{location} has no branch checked out, so Lehr has no branch to follow",
        code="SRC105",
        why="HEAD is a commit (a tag, or a checkout in CI)",
        fix="name the branch with --branch; `lehr run --once` takes exactly this commit",
    )


def checked_out(location: str, head: str | None, followed: str) -> Diagnostic:
    """HEAD is not on the followed branch."""
    name = followed.removeprefix(HEADS)
    found = "a commit without a branch" if head is None else head.removeprefix(HEADS)
    return Diagnostic(
        code=REMARK,
        what=f"Lehr follows the branch {name}, and HEAD of {location} is {found}",
        why="Lehr follows one branch, whatever is checked out",
        fix=f"check out {name} again"
        + ("" if head is None else f"; to deploy {found} from now on, run `lehr run --branch {found}`"),
        subject=location,
        severity=Severity.WARNING,
    )

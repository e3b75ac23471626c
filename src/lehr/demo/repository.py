"""The source of truth of the demo: a git repository, edited with real commits."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lehr.base.errors import LehrError

_SETTINGS = {
    "user.name": "you",
    "user.email": "you@localhost",
    "commit.gpgsign": "false",
    "core.hooksPath": "/dev/null",
}


def environment() -> dict[str, str]:
    """Our environment, without variables that redirect git or `lehr` or change their output.

    `python3` is the interpreter that runs this, so that the programs of the examples find its packages.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEHR_"))}
    return kept | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONWARNINGS": "ignore"}


async def run_program(
    command: Sequence[str], folder: Path, errors: int = asyncio.subprocess.STDOUT
) -> tuple[int, str, str]:
    """Run a program in `folder`. Returns its exit code, its output and, where they are apart, its errors."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
    )
    output = [(text or b"").decode(errors="replace") for text in await process.communicate()]
    assert process.returncode is not None
    return process.returncode, output[0], output[1]


class Repository:
    """The workspace's repository, with its work tree at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def make(self, paths: Sequence[str]) -> None:
        """Make the folder its own repository, wherever it lies, with `paths` in the first commit.

        Raises:
            LehrError: git is missing, or refuses.
        """
        await self._git("init", "--quiet", "--initial-branch=main")
        # Stored in the repository: the user may not have configured a name for git yet.
        for name, value in _SETTINGS.items():
            await self._git("config", name, value)
        await self._git("add", "--", *paths)
        await self._git("commit", "--quiet", "-m", "Create a Lehr workspace")

    def read(self, path: str) -> str:
        """A file of the work tree."""
        return (self.folder / path).read_text()

    async def commit(self, message: str, edits: Mapping[str, str | None]) -> str:
        """Write files (None deletes), commit them, and return the commit's id."""
        for path, text in edits.items():
            if text is None:
                (self.folder / path).unlink()
            else:
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / path).write_text(text)
        await self._git("add", "--all", "--", *edits)
        await self._git("commit", "--quiet", "-m", message)
        return await self.newest()

    async def revert(self) -> str:
        """Undo the newest commit with another one, and return its id."""
        await self._git("revert", "--no-edit", "HEAD")
        return await self.newest()

    async def newest(self) -> str:
        """The id of the newest commit."""
        return (await self._git("rev-parse", "HEAD")).strip()

    async def _git(self, *arguments: str) -> str:
        try:
            code, output, errors = await run_program(
                ("git", *arguments), self.folder, errors=asyncio.subprocess.PIPE
            )
        except FileNotFoundError as error:
            raise LehrError(
                "git is not installed", code="DEM110", fix="install git: the demo commits its changes"
            ) from error
        if code:
            raise LehrError(f"git {arguments[0]} failed", code="DEM111", why=errors.strip())
        return output

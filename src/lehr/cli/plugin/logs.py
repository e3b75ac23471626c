"""`lehr plugin logs`: what a plugin prints."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path

import click

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli import terminal
from lehr.cli.command import command
from lehr.cli.stored import state_folder, state_option

_LOOK_SECONDS = 0.2


@command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Continue with new lines until interrupted.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
@state_option
def logs(name: str, follow: bool, tail: int | None) -> None:
    """Show what the plugin NAME has printed, with the time of each line.

    Examples:
        lehr plugin logs routes
        lehr plugin logs routes -f --tail 20

    Secrets that the plugin was given are hidden. Only plugins that Lehr starts have a log here.
    """
    from lehr.wiring.plugin_records import plugin_log, plugin_records

    state = state_folder()
    paths = plugin_log(state, name)
    if not paths:
        known = ", ".join(record.name for record in plugin_records(state)) or "none"
        raise LehrError(
            f"there is no log of a plugin {name!r}",
            code="CLI192",
            why="it has printed nothing, or there is no such plugin",
            fix=f"plugins in use: {known}",
        )
    for line in _last(paths, tail):
        _print(line)
    if follow:
        asyncio.run(_follow(paths[-1]))


def _last(paths: list[Path], tail: int | None) -> deque[str]:
    lines: deque[str] = deque(maxlen=tail)
    for path in paths:
        lines.extend(path.read_text(encoding="utf-8", errors="replace").splitlines())
    return lines


async def _follow(path: Path) -> None:
    """Print what is added to the file, and to the one that takes its place when it is full."""
    follower = _Follower(path)
    while True:
        for line in follower.added():
            _print(line)
        await SystemClock().sleep(_LOOK_SECONDS)


class _Follower:
    """Reads what is added to a file from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset, self._file = path.stat().st_size, path.stat().st_ino

    def added(self) -> list[str]:
        """The whole lines that are new."""
        if not self._path.exists():
            return []
        found = self._path.stat()
        if found.st_ino != self._file:
            self._offset, self._file = 0, found.st_ino
        with self._path.open("rb") as file:
            file.seek(self._offset)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode(errors="replace").splitlines()


def _print(line: str) -> None:
    print(terminal.printable(line))
    sys.stdout.flush()

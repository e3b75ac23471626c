"""Plays the scenes of an example in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.base.clock import SystemClock
from lehr.demo.example import AnyStage, Example, Suggestion, play_scene
from lehr.demo.narrator import Narrator
from lehr.demo.plane import program
from lehr.demo.stage import Stage
from lehr.query.asset_rows import INERT, Row, rows

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


async def play(
    example: Example[AnyStage], folder: Path, narrator: Narrator, *, only: int | None, stay: bool, keep: bool
) -> None:
    """Play every scene, or `only` one, below `folder`, and leave nothing running.

    Args:
        stay: after the last scene, keep running until SIGINT, SIGTERM or SIGHUP.
        keep: do not delete the folder.

    Raises:
        LehrError: a scene failed.
        asyncio.CancelledError: SIGINT, SIGTERM or SIGHUP came before the end.
    """
    stage = example.stage(folder, narrator, SystemClock())
    with _ended_by_signals():
        try:
            async with live_view(stage, narrator.console):
                await _play(stage, example, only)
            if stay:
                await _stay(stage, narrator, example.things_to_try(stage))
        finally:
            await stage.close(keep=keep)


async def _play(stage: AnyStage, example: Example[AnyStage], only: int | None) -> None:
    narrator = stage.narrator
    if only not in (None, 1):
        stage.narrator = Narrator(pretty=False, silent=True)
        await example.scenes[0](stage)
        stage.narrator = narrator
    for number, scene in enumerate(example.scenes, start=1):
        if only in (None, number):
            await play_scene(stage, number, scene)


async def _stay(stage: Stage, narrator: Narrator, suggestions: list[Suggestion]) -> None:
    lehr = program()
    narrator.heading("The example keeps running")
    narrator.say("Ctrl-C ends everything that the demo started, and nothing else. In another terminal:")
    narrator.shell(("cd", str(stage.workspace)))
    narrator.shell((lehr, "status"))
    narrator.shell((lehr, "open"))
    for suggestion in suggestions:
        narrator.say(suggestion.text)
        for command in suggestion.commands:
            narrator.shell((lehr, *command[1:]) if command[0] == "lehr" else command)
    with contextlib.suppress(asyncio.CancelledError):
        async with live_view(stage, narrator.console):
            await stage.plane.ended()
        stage.plane.check_running()
    narrator.say("Shutting down.")


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """The first of these signals cancels the current task; later ones do not disturb its cleanup."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    # SIGHUP: the terminal was closed. Where it is ignored, nohup wants that.
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)

    def cancel() -> None:
        if not task.cancelling():
            task.cancel()

    for number in signals:
        loop.add_signal_handler(number, cancel)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


# --- on a terminal: a table of every asset below the narration ------------------

_EVERY = 0.5  # seconds
_KEPT_LINES = 10  # of the terminal, for the narration and the empty lines around the table
_COLOURS = {"Converged": "green", "TurnedDown": "dim", "Pushing": "cyan", "Stalled": "red", "Unknown": "red"}


@contextlib.asynccontextmanager
async def live_view(stage: Stage, console: Console | None) -> AsyncIterator[None]:
    """Show the table while the context is active; nothing without a console."""
    if console is None:
        yield
        return
    from rich.console import Group
    from rich.live import Live

    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as live:

        async def keep_up() -> None:
            while True:
                shown = table(_active_rows(stage), stage.traffic_summary(), console.height)
                # The cursor stays on its own line: the terminal writes ^C there without wrapping.
                live.update(Group("", shown, ""), refresh=True)
                await stage.clock.sleep(_EVERY)

        showing = asyncio.create_task(keep_up())
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)


def table(found: Sequence[Row], traffic: str, height: int) -> Table:
    """Status of each asset, unsettled ones first, in at most `height` lines; and the traffic."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, expand=True, pad_edge=False, caption=traffic or None, caption_justify="left")
    for name, ratio in (("asset", 2), ("status", 1), ("blocked by", 4)):
        shown.add_column(name, ratio=ratio, no_wrap=True, overflow="ellipsis", header_style="bold")
    # Waiting assets must be visible even on a small terminal.
    ordered = sorted(found, key=lambda row: (row.settled, row.id))
    most = max(height - _KEPT_LINES, 1)
    for row in ordered[:most]:
        state = row.message if row.reason == row.status else f"{row.reason}: {row.message}"
        blocks = "" if row.settled else state
        colour = _COLOURS.get(row.status, "yellow")
        shown.add_row(Text(row.id), Text(row.status, style=colour), Text(blocks))
    if len(ordered) > most:
        shown.add_row(Text(f"and {len(ordered) - most} more"), "", "")
    return shown


def _active_rows(stage: Stage) -> list[Row]:
    with stage.plane.reading() as reading:
        found = [] if reading is None else rows(reading)
    return [row for row in found if row.status != INERT]

"""On a terminal: a table below the narration, of every asset, what blocks it, and the traffic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from lehr.demo.stage import Stage
from lehr.query.asset_rows import INERT, Row, rows

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

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
                shown = table(_standing(stage), stage.traffic_told(), console.height)
                # The cursor rests on its own line: the terminal writes ^C there, and wraps nothing.
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
    for name, ratio in (("asset", 2), ("status", 1), ("what blocks it", 4)):
        shown.add_column(name, ratio=ratio, no_wrap=True, overflow="ellipsis", header_style="bold")
    # Assets that wait must not fall off the end of a small terminal.
    ordered = sorted(found, key=lambda row: (row.settled, row.id))
    most = max(height - _KEPT_LINES, 1)
    for row in ordered[:most]:
        said = row.message if row.reason == row.status else f"{row.reason}: {row.message}"
        blocks = "" if row.settled else said
        colour = _COLOURS.get(row.status, "yellow")
        shown.add_row(Text(row.id), Text(row.status, style=colour), Text(blocks))
    if len(ordered) > most:
        shown.add_row(Text(f"and {len(ordered) - most} more"), "", "")
    return shown


def _standing(stage: Stage) -> list[Row]:
    with stage.plane.reading() as reading:
        found = [] if reading is None else rows(reading)
    return [row for row in found if row.status != INERT]

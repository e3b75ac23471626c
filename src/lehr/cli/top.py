"""`lehr top`: the work on a partition."""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import click

from lehr.base.clock import SystemClock
from lehr.base.moments import plain
from lehr.cli import documents, formatting, terminal
from lehr.cli.active_run import run_state
from lehr.cli.command import command
from lehr.cli.live import Entries, follow
from lehr.cli.output import show_text
from lehr.cli.overview_text import run_line
from lehr.cli.screen import Picture, Screen, shows_pictures
from lehr.cli.stored import open_reading, reading_options, remote_store
from lehr.query.activity import Activity, RunningPush, read_activity
from lehr.query.partition_view import Reading
from lehr.query.run_state import RunState, turns_per_second

_SAMPLE_SECONDS = 1.0
_CHEAP_SECONDS = 0.2
_OLDEST_SECONDS = 10.0


class Top(NamedTuple):
    """The work on a partition, and the state of its `lehr run`.

    Attributes:
        turns: per second; None if not known.
    """

    run: RunState
    turns: float | None
    activity: Activity


@command()
@click.option("--once", is_flag=True, help="Print once and exit, as where stdout is not a terminal.")
@click.option(
    "-n",
    "--interval",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two pictures.",
)
@reading_options("text", "json", "yaml")
def top(once: bool, interval: float, form: str) -> None:
    """Show the work under way, and what fails, waits and restarts most, until you press q or Ctrl-C.

    Turns are comparisons of an asset with production. Pushes and failures are those of the last minute,
    failing assets those of the last ten minutes. With --once, -o json or -o yaml, and where stdout is not a
    terminal, it is printed once, after a second in which turns are counted.

    Examples:
        lehr top
        lehr top -n 10
        lehr top --once
        lehr top -o json
    """
    with open_reading() as reading:
        if form == "text" and not once and shows_pictures():
            with Screen() as screen:
                follow(reading, Picture(screen, _Pictures().lines), interval)
        before = run_state()
        if before.load is not None:
            select.select((), (), (), _SAMPLE_SECONDS)
        run = run_state()
        found = Top(run, turns_per_second(before, run), _activity(reading))
        show_text(form, top_lines(found, reading, terminal.width()), lambda: top_document(found))


class _Pictures:
    """The lines at each moment."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._run: RunState | None = None
        self._activity: Activity | None = None
        self._read_at = 0.0
        self._took = 0.0

    def lines(self, reading: Reading, entries: Entries) -> Iterator[str]:
        """Those of this moment."""
        before, self._run = self._run, run_state()
        turns = None if before is None else turns_per_second(before, self._run)
        return top_lines(Top(self._run, turns, self._read(reading, entries)), reading, terminal.width())

    def _read(self, reading: Reading, entries: Entries) -> Activity:
        """As `_activity`; slow reads are repeated only after commits, and every ten seconds."""
        began = self._clock.monotonic()
        fresh = began - self._read_at < _OLDEST_SECONDS
        if self._activity is None or entries is None or entries or not fresh or self._took < _CHEAP_SECONDS:
            self._activity = _activity(reading)
            self._read_at = self._clock.monotonic()
            self._took = self._read_at - began
        return self._activity


def _activity(reading: Reading) -> Activity:
    remote = remote_store(reading)
    return read_activity(reading) if remote is None else remote.activity(reading.partition)


def top_lines(found: Top, reading: Reading, columns: int | None) -> Iterator[str]:
    """All of it as text."""
    work, now = found.activity, reading.now
    yield f"running     {_running(found.run, now)}"
    yield f"load        {', '.join(_load(found))}"
    counts = ", ".join(f"{count:,} {name}" for name, count in work.counts.items())
    yield f"assets      {counts or 'none'}"
    yield from _section(
        f"Pushes under way: {work.open_pushes:,}",
        ("asset", "type", "purpose", "for"),
        [
            (item.asset, item.type, _purpose(item), formatting.span(now - item.started_at))
            for item in work.running
        ],
        columns,
    )
    yield from _section(
        "Not settled, by reason and type:",
        ("assets", "status", "reason", "type", "longest", "since"),
        [
            (
                f"{item.count:,}",
                item.status,
                item.reason or "-",
                item.type,
                item.asset,
                formatting.age(item.since, now),
            )
            for item in work.blocked
        ],
        columns,
    )
    yield from _section(
        "Failed pushes of the last 10 minutes:",
        ("failures", "asset", "type", "message"),
        [(f"{item.failures:,}", item.asset, item.type, item.message) for item in work.failing],
        columns,
    )
    yield from _section(
        "Restarts of programs since their last push:",
        ("restarts", "asset", "crash loop"),
        [(f"{item.restarts:,}", item.asset, "yes" if item.looping else "no") for item in work.restarting],
        columns,
    )


def _section(
    title: str, titles: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None
) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from terminal.table(titles, rows, columns)


def _running(run: RunState, now: float) -> str:
    if not run.active:
        return f"no: {run_line(run, now)}"
    return f"standing by: {run.standby}" if run.standby else f"yes, process {run.process}"


def _load(found: Top) -> Iterator[str]:
    if found.turns is not None:
        yield f"{found.turns:,.1f} turns/s"
    if found.run.load is not None:
        queued = found.run.load.queued
        by = ", ".join(f"{name} {count:,}" for name, count in sorted(queued.items()) if count)
        yield formatting.counted(sum(queued.values()), "turn") + " queued" + (f" ({by})" if by else "")
    yield f"{found.activity.pushes_per_second:.2f} pushes/s"
    yield f"{found.activity.failures_per_second:.2f} failures/s"


def _purpose(push: RunningPush) -> str:
    return f"{push.purpose}, outcome unknown" if push.unknown else push.purpose


def top_document(found: Top) -> dict[str, Any]:
    """All of it as plain data."""
    return {
        "run": documents.of_run_state(found.run),
        "turns_per_second": found.turns,
        **plain(found.activity),
    }

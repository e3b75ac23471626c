"""`lehr logs`: what the programs of an asset print."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import click

from lehr import wiring
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.formatting import past_moment
from lehr.cli.log_reader import Line, LogReader, lines_since
from lehr.cli.stored import open_reading, partition_option, state_folder, state_option
from lehr.model.asset import AssetKey
from lehr.sdk.logs import ProgramLog

_LOOK_SECONDS = 0.1

_Find = Callable[[], list[ProgramLog]]


since_option = click.option(
    "--since",
    callback=past_moment,
    metavar="TIME",
    help="Only show what is newer: a duration such as 10m, or a time such as 2026-01-31T12:00Z.",
)


@command()
@click.argument("asset", shell_complete=complete_asset)
@click.option("-f", "--follow", is_flag=True, help="Continue with new lines until interrupted.")
@click.option("-p", "--previous", is_flag=True, help="Show the run before the current one.")
@since_option
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each log.")
@click.option("--replica", type=click.IntRange(min=0), metavar="N", help="Only of this replica.")
@click.option("--stdout", "streams", flag_value="stdout", help="Only what is written to stdout.")
@click.option("--stderr", "streams", flag_value="stderr", help="Only what is written to stderr.")
@state_option
@partition_option
def logs(
    asset: str,
    follow: bool,
    previous: bool,
    since: float | None,
    tail: int | None,
    replica: int | None,
    streams: str | None,
) -> None:
    """Show what the programs of ASSET have written to stdout and stderr on this machine.

    Examples:
        lehr logs web/process
        lehr logs web/process -f --tail 20
        lehr logs web/process --previous --stderr    how it ended before it was restarted
        lehr logs web/process --since 10m --replica 1

    Where an asset has several replicas, the replica precedes each line. Secrets that the program was given
    are hidden.

    --since reads the time that a line begins with (RFC 3339, or as nginx, Go and Python write it). A line
    without a time counts as the one before it, or as the start of its program.
    """
    if previous and follow:
        raise click.UsageError("--previous cannot be combined with --follow: that run has ended.")
    find = _finder(asset, replica, streams)
    found = find()
    if previous:
        _require_previous(found, asset)
    printer = _Printer(several=len({log.replica for log in found}) > 1)
    with contextlib.ExitStack() as opened:
        readers = _Readers(opened)
        for log in found:
            reader = readers.of(log)
            lines = reader.lines(last=not follow)
            printer.show(log, _chosen(lines, log, previous=previous, moment=since, tail=tail))
            if not follow:
                reader.close()
        printer.flush()
        if follow:
            asyncio.run(_follow(find, readers, printer))


def _finder(asset: str, replica: int | None, stream: str | None) -> _Find:
    """A function that finds the logs of the asset, as they are now.

    Raises:
        LehrError: there is no such asset, or it has no logs.
    """
    from lehr.query.asset_rows import known_asset

    folder = state_folder()
    with open_reading() as reading:
        known, _came_with = known_asset(reading, asset)
        key, type = AssetKey(reading.partition, known.id), known.type

    def find() -> list[ProgramLog]:
        found = wiring.program_logs(folder, key, type) or []
        return [log for log in found if replica in (None, log.replica) and stream in (None, log.stream)]

    if wiring.program_logs(folder, key, type) is None:
        raise LehrError(
            f"{asset} has no logs",
            code="CLI168",
            why=f"it is a {type}, which runs no program under Lehr",
            fix=f"see `lehr why {asset}` and `lehr events {asset}`",
        )
    if not find():
        which = "" if replica is None else f"replica {replica} of "
        raise LehrError(
            f"{which}{asset} has no logs on this machine",
            code="CLI169",
            why="it has never been started here, or was removed",
            fix=f"see `lehr why {asset}`",
        )
    return find


def _chosen(
    lines: Iterator[Line], log: ProgramLog, *, previous: bool, moment: float | None, tail: int | None
) -> Iterator[Line]:
    """The lines that the options ask for."""
    if previous:
        run = len(log.starts) - 1
        lines = (line for line in lines if line.run == run > 0)
    if moment is not None:
        lines = lines_since(lines, log.starts, moment)
    return lines if tail is None else iter(deque(lines, maxlen=tail))


def _require_previous(found: list[ProgramLog], asset: str) -> None:
    """Raises `LehrError` unless the program of a replica was started more than once."""
    if all(len(log.starts) < 2 for log in found):
        raise LehrError(
            f"{asset} has no previous run",
            code="CLI170",
            why="its program was started once, or before Lehr recorded starts",
            fix=f"run `lehr logs {asset}` to show everything that is kept",
        )


class _Printer:
    """Writes lines to stdout as they are, byte by byte."""

    def __init__(self, *, several: bool) -> None:
        self.several = several
        self._out = sys.stdout.buffer

    def show(self, log: ProgramLog, lines: Iterator[Line] | Sequence[Line]) -> None:
        prefix = f"[replica {log.replica}] ".encode() if self.several else b""
        for line in lines:
            self._out.write(prefix + line.text + b"\n")

    def flush(self) -> None:
        self._out.flush()


class _Readers:
    """The readers of logs, by path."""

    def __init__(self, opened: contextlib.ExitStack) -> None:
        self._opened = opened
        self._readers: dict[str, LogReader] = {}

    def of(self, log: ProgramLog) -> LogReader:
        if log.path not in self._readers:
            self._readers[log.path] = self._opened.enter_context(contextlib.closing(LogReader(log)))
        self._readers[log.path].log = log
        return self._readers[log.path]

    def __iter__(self) -> Iterator[LogReader]:
        return iter(self._readers.values())


async def _follow(find: _Find, readers: _Readers, printer: _Printer) -> None:
    """Show new lines, also of replicas that are added, until interrupted."""
    clock = SystemClock()
    while True:
        await clock.sleep(_LOOK_SECONDS)
        found = find()
        printer.several |= len({log.replica for log in found}) > 1
        for log in found:
            readers.of(log)  # a secret is described before its program starts, so also before it is printed
        for reader in readers:
            printer.show(reader.log, reader.lines())
        printer.flush()

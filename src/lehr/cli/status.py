"""`lehr status`: everything at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lehr.cli import words
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.stored import (
    named_server,
    open_reading,
    partition_option,
    running,
    running_report,
    state_folder,
    state_option,
)

if TYPE_CHECKING:
    from lehr.model.attempt import Attempt
    from lehr.query.overview import Overview
    from lehr.query.reading import Reading


@click.command(
    epilog="""
    \b
    Examples:
      lehr status
      lehr status -o json
    """
)
@output_option("text", "json", "yaml")
@state_option
@partition_option
def status(form: str, state: Path | None, partition: str | None) -> None:
    """Show whether `lehr run` is running, what is in force, and how its assets stand."""
    from lehr.cli.told_all import overview_document
    from lehr.query.overview import survey

    folder = state_folder(state)
    report = running_report(folder)
    url = named_server()
    alive = running(folder) if url else report is not None
    with open_reading(folder, partition) as reading:
        overview = survey(reading)
        if form == "text":
            print_lines(_tell(reading, overview, report, url or str(folder), alive=alive))
        else:
            show_document(form, {"running": report, **overview_document(overview)})


def _tell(
    reading: Reading, overview: Overview, report: dict[str, Any] | None, place: str, *, alive: bool
) -> Iterator[str]:
    now, newest = reading.now, overview.newest
    process = "" if report is None else f", process {report['pid']}"
    yield f"running     {f'yes{process}' if alive else 'no'}"
    yield f"state       {place}"
    yield f"partition   {reading.partition}"
    if newest is None:
        yield "in force    nothing: no incarnation was published yet"
    else:
        yield f"in force    {newest.name}, published {words.ago(newest.created_at, now)}"
    if overview.attempt is not None:
        yield f"last look   {_last_look(overview.attempt, now)}"
    counts = ", ".join(f"{count:,} {name}" for name, count in overview.counts.items())
    yield f"assets      {counts or 'none'}"
    said = {push["operation"]: push["said"] for push in (report or {}).get("pushes", ())}
    for operation in overview.operations:
        progress = said.get(operation.id) or ("" if operation.id in said else "outcome unknown")
        took = words.span(now - operation.started_at)
        yield f"pushing     {operation.asset}, for {took}" + (f": {progress}" if progress else "")
    if overview.controls:
        yield f"standing    {words.counted(len(overview.controls), 'word')} of people; see `lehr why --all`"
    if report and report["store_trouble"]:
        yield f"trouble     {report['store_trouble']}"


def _last_look(attempt: Attempt, now: float) -> str:
    revision = f" {attempt.sources[0].revision[:12]}" if attempt.sources else ""
    problems = f", {words.counted(len(attempt.diagnostics), 'problem')}" if attempt.diagnostics else ""
    return f"{attempt.publication}{revision}, {words.ago(attempt.at, now)}{problems}"

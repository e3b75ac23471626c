"""`lehr status`: everything at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lehr.cli import documents, terminal, words
from lehr.cli.active_run import run_state
from lehr.cli.named_server import named_server
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.stored import (
    open_reading,
    partition_option,
    running_report,
    state_folder,
    state_option,
)

if TYPE_CHECKING:
    from lehr.model.attempt import Attempt
    from lehr.query.overview import Overview
    from lehr.query.partition_view import Reading
    from lehr.query.run_state import RunState


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
    """Show whether a `lehr run` is active, what became of the newest commit, and how the assets stand.

    Ends with 0 whenever it can read that, good or bad; `lehr wait --timeout 0s` is the check for scripts.
    """
    from lehr.cli.told_all import overview_document
    from lehr.query.overview import survey

    folder = state_folder(state)
    report, run = running_report(folder), run_state(state)
    with open_reading(folder, partition) as reading:
        overview = survey(reading)
        if form == "text":
            print_lines(_lines(reading, overview, report, run, named_server() or str(folder)))
            return
        document = {
            "run": documents.of_run_state(run),
            "running": None if report is None else documents.of_report(report),
        }
        show_document(form, {**document, **overview_document(overview)})


def _lines(
    reading: Reading, overview: Overview, report: dict[str, Any] | None, run: RunState, place: str
) -> Iterator[str]:
    from lehr.cli.told_all import held_back_line, run_line
    from lehr.sdk.source import REMARK

    now, newest = reading.now, overview.newest
    process = "" if run.process is None else f", process {run.process}"
    yield f"running     {f'yes{process}' if run.active else f'no: {run_line(run, now)}'}"
    yield f"state       {place}"
    yield f"partition   {reading.partition}"
    if newest is None:
        yield "in force    nothing: no incarnation was published yet"
    else:
        yield f"in force    {newest.name}, published {words.ago(newest.created_at, now)}"
    if overview.attempt is not None:
        yield f"newest      {_newest(overview.attempt, now)}"
        for item in overview.attempt.diagnostics:
            if item.code == REMARK:
                yield f"source      {terminal.printable(item.what)}"
    yield f"last look   {_last_look(run, now)}"
    counts = ", ".join(f"{count:,} {name}" for name, count in overview.counts.items())
    yield f"assets      {counts or 'none'}"
    if overview.held_back:
        yield f"pinned      {held_back_line(overview.held_back, reading.partition)}"
    said = {push["operation"]: push["said"] for push in (report or {}).get("pushes", ())}
    for operation in overview.operations:
        progress = said.get(operation.id) or ("" if operation.id in said else "outcome unknown")
        took = words.span(now - operation.started_at)
        yield f"pushing     {operation.asset}, for {took}" + (f": {progress}" if progress else "")
    if overview.controls:
        yield f"controls    {words.counted(len(overview.controls), 'control')} active; see `lehr why --all`"
    if kept := history_line(run, now):
        yield f"history     {kept}"
    if report and report["store_trouble"]:
        yield f"trouble     {report['store_trouble']}"


def _newest(attempt: Attempt, now: float) -> str:
    """Result for the newest commit."""
    from lehr.model.attempt import Publication
    from lehr.query.wait_conditions import refusal, revision_of

    revision = revision_of(attempt).removeprefix("the newest ")
    if attempt.publication is Publication.REFUSED:
        force = (
            f"{attempt.partition}@{attempt.sequence} stays in force"
            if attempt.sequence
            else "none is in force"
        )
        what = refusal(attempt).removeprefix("the newest ")
        return terminal.printable(f"{what}; {force}; {words.ago(attempt.at, now)}; see `lehr why --all`")
    if attempt.publication is Publication.UNREADABLE:
        return f"{revision} cannot be read since {words.ago(attempt.at, now)}; see `lehr why --all`"
    warnings = f"; {words.counted(len(attempt.diagnostics), 'warning')}" if attempt.diagnostics else ""
    return f"{revision} is in force as {attempt.partition}@{attempt.sequence}{warnings}"


def history_line(run: RunState, now: float) -> str:
    """The history that the active `lehr run` keeps, and when it last pruned; empty if none is active."""
    if not run.active:
        return ""
    if (kept := run.history) is None:
        return "all is kept; nothing is pruned automatically"
    pruned = "nothing pruned since the start"
    if kept.pruned_at is not None:
        pruned = f"last pruned {words.ago(kept.pruned_at, now)}"
    newest = words.counted(kept.incarnations, "incarnation")
    return f"{words.span(kept.seconds)} and the newest {newest} are kept; {pruned}"


def _last_look(run: RunState, now: float) -> str:
    """When the active `lehr run` last looked at the source and at production."""
    if not run.active:
        return "none since the last `lehr run` ended" if run.seen_at is not None else "none"
    source, production = (
        "not yet" if moment is None else words.ago(moment, now)
        for moment in (run.source_looked_at, run.production_looked_at)
    )
    return f"source {source}, production {production}"

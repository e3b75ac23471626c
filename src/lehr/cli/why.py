"""`lehr why`: what blocks an asset, since when, and what would unblock it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.active_run import run_state
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.stored import (
    complete_asset,
    open_reading,
    partition_option,
    running_report,
    state_folder,
    state_option,
)

if TYPE_CHECKING:
    from lehr.query.partition_view import Reading
    from lehr.query.run_state import RunState


@click.command(
    epilog="""
    \b
    Examples:
      lehr why web/process     what blocks it, or by which push it came to be so
      lehr why --all           all that is not settled, and what stands in the way
      lehr why --all -o json
    """
)
@click.argument("asset", required=False, shell_complete=complete_asset)
@click.option("--all", "everything", is_flag=True, help="Everything that is not settled.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=5, show_default=True, help="Assets to name of a kind."
)
@output_option("text", "json", "yaml")
@state_option
@partition_option
def why(
    asset: str | None, everything: bool, limit: int, form: str, state: Path | None, partition: str | None
) -> None:
    """Say in plain words why ASSET is as it is: what blocks it, since when, on what evidence, what
    would unblock it and when it is tried next; or how it came to be as intended.
    """
    if (asset is None) is not everything:
        raise click.UsageError("Name one asset, or say --all.")
    with open_reading(state, partition) as reading:
        run = run_state(state)
        if asset is None:
            _show_all(reading, limit, form, run)
        else:
            _show_one(reading, asset, form, alive=run.active)
        if run.active and form == "text":
            _warn_of_trouble(state_folder(state))


def _warn_of_trouble(state: Path) -> None:
    report = running_report(state)
    if report is not None and report["store_trouble"]:
        print(
            f"  note       nothing new can be written down, so this may be out of date: "
            f"{report['store_trouble']}"
        )


def _show_one(reading: Reading, asset: str, form: str, *, alive: bool) -> None:
    from lehr.cli.told import explanation_document, tell
    from lehr.query.explain import explain

    explanation = explain(reading, asset)
    if form == "text":
        attempt = reading.records.attempt(reading.partition)
        print_lines(tell(explanation, attempt, reading.now, alive=alive))
    else:
        show_document(form, explanation_document(explanation))


def _show_all(reading: Reading, limit: int, form: str, run: RunState) -> None:
    from lehr.cli.told_all import overview_document, tell_overview
    from lehr.query.overview import survey

    overview = survey(reading, most=limit)
    if form == "text":
        print_lines(tell_overview(overview, reading.partition, reading.now, run))
    else:
        show_document(form, overview_document(overview))

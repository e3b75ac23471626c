"""`lehr why`: explains what blocks an asset, since when, and what would unblock it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from lehr.cli.active_run import run_state
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.formatting import past_moment
from lehr.cli.metrics_file import metrics_option
from lehr.cli.named_server import named_server
from lehr.cli.output import show_text
from lehr.cli.stored import open_reading, reading_options, remote_store, running_report, state_folder
from lehr.query.partition_view import Reading
from lehr.query.run_state import RunState


@command()
@click.argument("asset", required=False, shell_complete=complete_asset)
@click.option(
    "--all", "everything", is_flag=True, help="Explain everything that is not settled, by root cause."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of assets to list per cause.",
)
@click.option(
    "--at",
    "at",
    callback=past_moment,
    metavar="TIME",
    help="Explain the status at an earlier time: 10m ago, or a time such as 2026-01-31T12:00Z.",
)
@click.option(
    "--if",
    "supposed",
    multiple=True,
    metavar="COMMAND",
    help="Show how the next turn would end after this command, without running it. Can be repeated.",
)
@click.option("--unblock", is_flag=True, help="Find the fewest commands that would unblock the asset.")
@metrics_option
@reading_options("text", "json", "yaml")
def why(
    asset: str | None,
    everything: bool,
    limit: int,
    at: float | None,
    supposed: tuple[str, ...],
    unblock: bool,
    metrics: Path | None,
    form: str,
) -> None:
    """Explain the status of ASSET: what blocks it, since when, the evidence, what would unblock it and
    when it is retried; or how it reached its intended state.

    With --all, list what all assets that are not settled wait for in the end, through chains of assets: each
    asset counts under one root cause, and assets that wait for each other are one.

    Examples:
        lehr why web/process     what blocks it, or which push brought it there
        lehr why --all           what everything that is not settled waits for, and how to unblock it
        lehr why --all -o json
        lehr why web/process --at 2h                    as it was two hours ago
        lehr why web/process --if "unfreeze all"        would it be pushed then?
        lehr why web/process --unblock                  which commands would unblock it?

    COMMAND is written as you would type it: unfreeze, resume or unpin, with or without SELECTOR; retry;
    approve; override --check ID; rollout release, promote, resume or retry. --if and --unblock compare
    production again, and write and push nothing.
    """
    if (asset is None) is not everything:
        raise click.UsageError("Name one asset, or pass --all.")
    _require_one_question(everything, at, supposed, unblock)
    if supposed or unblock:
        assert asset is not None
        _suppose(asset, supposed, metrics, form)
        return
    with open_reading() as reading:
        run = run_state()
        if asset is not None and at is not None:
            _show_past(reading, asset, form, at)
            return
        if asset is None:
            _show_all(reading, limit, form, run)
        else:
            _show_one(reading, asset, form, alive=run.active)
        if run.active and form == "text":
            _warn_of_trouble(state_folder())


def _require_one_question(
    everything: bool, at: float | None, supposed: tuple[str, ...], unblock: bool
) -> None:
    asked = [
        name
        for name, given in (("--at", at is not None), ("--if", bool(supposed)), ("--unblock", unblock))
        if given
    ]
    if everything and asked:
        raise click.UsageError(f"{asked[0]} is about one asset; it cannot be combined with --all.")
    if len(asked) > 1:
        raise click.UsageError(f"{asked[0]} and {asked[1]} cannot be combined.")


def _suppose(asset: str, supposed: tuple[str, ...], metrics: Path | None, form: str) -> None:
    """Dry turns of an asset: after the supposed commands, or after the fewest that unblock it."""
    from lehr.cli.what_if import show_unblocking, show_what_if

    _require_own_metrics(click.get_current_context())
    with open_reading() as reading:
        if supposed:
            show_what_if(reading, asset, supposed, metrics, form)
        else:
            show_unblocking(reading, asset, metrics, form)


def _require_own_metrics(context: click.Context) -> None:
    """A server compares production with the metric sources that it was started with."""
    if named_server() and context.get_parameter_source("metrics") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--metrics and --server cannot be combined.")


def _warn_of_trouble(state: Path) -> None:
    report = running_report(state)
    if report is not None and report["store_trouble"]:
        print(
            f"  note       Lehr cannot write to its store, so this may be out of date: "
            f"{report['store_trouble']}"
        )


def _show_one(reading: Reading, asset: str, form: str, *, alive: bool) -> None:
    from lehr.base.moments import plain
    from lehr.cli.awaited_release import awaited_release, release_lines
    from lehr.cli.explanation_text import explanation_lines
    from lehr.query.explain import explain

    explanation, attempt = explain(reading, asset), reading.records.attempt(reading.partition)
    awaited = awaited_release(reading, explanation)
    release = () if awaited is None else release_lines(awaited, reading, of=explanation.row.id)
    lines = explanation_lines(explanation, attempt, reading.now, alive=alive, release=release)

    def document() -> Any:
        from lehr.strategist.documents import why_document  # which takes long to import

        return plain(why_document(explanation, awaited))

    show_text(form, lines, document)


def _show_past(reading: Reading, asset: str, form: str, at: float) -> None:
    from lehr.base.moments import plain
    from lehr.cli.explanation_text import past_lines
    from lehr.query.explain_at import explain_at

    past, explanation = explain_at(reading, asset, at)

    def document() -> Any:
        from lehr.strategist.documents import why_document  # which takes long to import

        return plain(why_document(explanation, None, past))

    show_text(form, past_lines(past, explanation, reading.now), document)


def _show_all(reading: Reading, limit: int, form: str, run: RunState) -> None:
    from lehr.base.moments import plain
    from lehr.cli.overview_text import overview_document, overview_lines
    from lehr.query.cause_reader import read_root_causes
    from lehr.query.overview import survey

    overview, remote = survey(reading, most=limit), remote_store(reading)
    causes = (
        read_root_causes(reading, most=limit)
        if remote is None
        else remote.root_causes(reading.partition, most=limit)
    )
    lines = overview_lines(overview, causes, reading.partition, reading.now, run, limit)

    def document() -> dict[str, Any]:
        return {**overview_document(overview), "causes": [plain(item) for item in causes.causes]}

    show_text(form, lines, document)

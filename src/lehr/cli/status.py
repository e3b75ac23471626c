"""`lehr status`: the overall status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from lehr.cli import documents, formatting, terminal
from lehr.cli.active_run import run_state
from lehr.cli.command import command
from lehr.cli.live import watch_option
from lehr.cli.main import DIFFERENCES
from lehr.cli.named_server import named_server
from lehr.cli.output import show_text
from lehr.cli.overview_text import held_back_line, overview_document, run_line
from lehr.cli.stored import open_reading, reading_options, running_report, state_folder
from lehr.model.attempt import Attempt, Publication
from lehr.model.governance import ROLLOUT_POLICY
from lehr.query.overview import Overview, survey
from lehr.query.partition_view import Reading
from lehr.query.run_state import RunState

if TYPE_CHECKING:
    from lehr.rollouts.status import RolloutStatus


class StatusNow(NamedTuple):
    """The status at one moment.

    Attributes:
        report: of the `lehr run` about itself; None if it does not answer on this machine.
        rollouts: those of all policies in force.
    """

    overview: Overview
    report: dict[str, Any] | None
    run: RunState
    rollouts: Sequence[RolloutStatus] = ()


@command()
@click.option(
    "--exit-code",
    is_flag=True,
    help=f"Exit with {DIFFERENCES} unless a `lehr run` is active, the newest commit is published, and all "
    "assets are settled.",
)
@watch_option
@reading_options("text", "json", "yaml")
def status(exit_code: bool, watch: bool, form: str) -> None:
    """Show whether a `lehr run` is active, whether the newest commit is published, and the status of assets.

    Without --exit-code it exits with 0 whatever the status is. `lehr wait` waits for a status.

    With --watch, a terminal shows the current status until you press q or Ctrl-C. Elsewhere, the status is
    printed again whenever something other than a time has changed.

    Examples:
        lehr status
        lehr status --watch
        lehr status --watch -o json      one JSON object on each line, as it changes
        lehr status -o json
        lehr status --exit-code > /dev/null || echo "not as intended"
    """
    if watch and (exit_code or form == "yaml"):
        raise click.UsageError("--watch cannot be combined with --exit-code or -o yaml")
    place = named_server() or str(state_folder())
    with open_reading() as reading:
        if watch:
            from lehr.cli.status_watch import watch_status

            watch_status(reading, form, place)
            return
        found = StatusNow(survey(reading), *reports(), rollouts(reading))
        show_text(form, status_lines(found, reading, place), lambda: status_document(found))
    if exit_code and not as_intended(found.overview, found.run):
        raise click.exceptions.Exit(DIFFERENCES)


def as_intended(overview: Overview, run: RunState) -> bool:
    """True while an active `lehr run` keeps all assets settled at the newest commit."""
    in_force = overview.newest is not None and not overview.not_published
    return run.active and not run.standby and in_force and not overview.unsettled


def reports() -> tuple[dict[str, Any] | None, RunState]:
    """The report of the `lehr run` of this machine, and the state of the one that the command is about."""
    return running_report(state_folder()), run_state()


def rollouts(reading: Reading) -> Sequence[RolloutStatus]:
    """The rollouts of all policies in force. Quick if there are none."""
    newest = reading.newest()
    if newest is None:
        return ()
    policies = reading.intent.rows(reading.partition, newest.sequence, (ROLLOUT_POLICY,))
    if next(iter(policies), None) is None:
        return ()
    from lehr.cli.rollout.current import rollouts_of

    found = rollouts_of(reading)
    return () if found is None else found.all()


def status_document(status: StatusNow) -> dict[str, Any]:
    """The status as plain data."""
    overview, report, run, found = status
    running = None if report is None else documents.of_report(report)
    rollouts = [documents.of_rollout(item) for item in found]
    document = overview_document(overview)
    return {"run": documents.of_run_state(run), "running": running, **document, "rollouts": rollouts}


def status_lines(status: StatusNow, reading: Reading, place: str) -> Iterator[str]:
    """The status as text."""
    from lehr.sdk.source import REMARK

    overview, report, run, rollouts = status
    now, newest = reading.now, overview.newest
    yield f"running     {_running(run, now)}"
    yield f"state       {place}"
    yield f"partition   {reading.partition}"
    if newest is None:
        yield "in force    none: nothing published yet"
    else:
        yield f"in force    {newest.name}, published {formatting.ago(newest.created_at, now)}"
    if overview.attempt is not None:
        yield f"newest      {_newest(overview.attempt, now)}"
        for item in overview.attempt.diagnostics:
            if item.code == REMARK:
                yield f"source      {terminal.printable(item.what)}"
    yield f"checked     {_last_look(run, now)}"
    counts = ", ".join(f"{count:,} {name}" for name, count in overview.counts.items())
    yield f"assets      {counts or 'none'}"
    if overview.held_back:
        label = "held back" if any(item.released for item in overview.held_back) else "pinned"
        yield f"{label:12}{held_back_line(overview.held_back, reading.partition)}"
    yield from _rollouts(rollouts)
    progress_of = {push["operation"]: push["progress"] for push in (report or {}).get("pushes", ())}
    for operation in overview.operations:
        progress = progress_of.get(operation.id) or ("" if operation.id in progress_of else "outcome unknown")
        took = formatting.span(now - operation.started_at)
        yield f"pushing     {operation.asset}, for {took}" + (f": {progress}" if progress else "")
    if overview.controls:
        active = formatting.counted(len(overview.controls), "control")
        yield f"controls    {active} active; see `lehr why --all`"
    if kept := history_line(run, now):
        yield f"history     {kept}"
    if report and report["store_trouble"]:
        yield f"trouble     {report['store_trouble']}"


def _rollouts(found: Sequence[RolloutStatus]) -> Iterator[str]:
    """Rollouts that are under way, or that cannot begin."""
    if not found:
        return
    from lehr.cli.rollout.text import headline
    from lehr.rollouts.figures import RolloutState

    for rollout in found:
        if rollout.state is not RolloutState.IDLE:
            line = terminal.printable(headline(rollout))
            yield f"rollout     {line}; see `lehr rollout show {rollout.policy}`"


def _running(run: RunState, now: float) -> str:
    """Whether a `lehr run` is active, and does something."""
    if not run.active:
        return f"no: {run_line(run, now)}"
    process = "" if run.process is None else f", process {run.process}"
    return f"standing by{process}: {run.standby}" if run.standby else f"yes{process}"


def _newest(attempt: Attempt, now: float) -> str:
    """Result for the newest commit."""
    from lehr.query.wait_conditions import in_force, refusal, revision_of

    if attempt.publication is Publication.REFUSED:
        force = (
            f"{attempt.partition}@{attempt.sequence} stays in force"
            if attempt.sequence
            else "none is in force"
        )
        what = refusal(attempt).removeprefix("the newest ")
        return terminal.printable(f"{what}; {force}; {formatting.ago(attempt.at, now)}; see `lehr why --all`")
    if attempt.publication is Publication.UNREADABLE:
        revision = revision_of(attempt).removeprefix("the newest ")
        return f"{revision} cannot be read ({formatting.ago(attempt.at, now)}); see `lehr why --all`"
    warnings = f"; {formatting.counted(len(attempt.diagnostics), 'warning')}" if attempt.diagnostics else ""
    return f"{in_force(attempt)}{warnings}"


def history_line(run: RunState, now: float) -> str:
    """The history that the active `lehr run` keeps, and when it last pruned; empty if none is active."""
    if not run.active:
        return ""
    if (kept := run.history) is None:
        return "everything is kept; automatic pruning is off"
    pruned = "nothing pruned since the start"
    if kept.pruned_at is not None:
        pruned = f"last pruned {formatting.ago(kept.pruned_at, now)}"
    newest = formatting.counted(kept.incarnations, "incarnation")
    return f"{formatting.span(kept.seconds)} and the newest {newest} are kept; {pruned}"


def _last_look(run: RunState, now: float) -> str:
    """When the active `lehr run` last checked the source and production."""
    if not run.active:
        return "not since the last `lehr run` ended" if run.seen_at is not None else "never"
    source, production = (
        "not yet" if moment is None else formatting.ago(moment, now)
        for moment in (run.source_looked_at, run.production_looked_at)
    )
    return f"source {source}, production {production}"

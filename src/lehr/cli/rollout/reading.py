"""`lehr rollout list`, `show`, `forecast` and `history`: they read the store, and need no `lehr run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lehr.cli import formatting
from lehr.cli.active_run import run_state
from lehr.cli.command import command
from lehr.cli.complete import complete_rollout_policy
from lehr.cli.live import watch_option
from lehr.cli.output import Column, Shape, show, show_text
from lehr.cli.stored import list_options, open_reading, reading_options
from lehr.cli.terminal import printable

if TYPE_CHECKING:
    from lehr.model.evidence import Evidence
    from lehr.rollouts.status import RolloutStatus


@command("list")
@list_options(None)
def list_(limit: int | None, form: str) -> None:
    """List the rollout policies in force, and how far their rollouts are.

    Examples:
        lehr rollout list
        lehr rollout list -o json
    """
    from lehr.base.moments import plain
    from lehr.cli.rollout.current import rollouts_of

    with open_reading() as reading:
        rollouts = rollouts_of(reading)
        found = [] if rollouts is None else rollouts.all()[:limit]
        shape: Shape[RolloutStatus] = Shape(_columns(reading.now), plain, lambda item: str(item.policy))
        show(form, found, shape, nothing="no rollout policies")


def _columns(now: float) -> list[Column[RolloutStatus]]:
    from lehr.cli.rollout.text import progress

    return [
        Column("policy", lambda item: item.policy),
        Column("state", lambda item: item.state),
        Column("target", lambda item: str(item.target) if item.target else "-"),
        Column("wave", lambda item: f"{item.wave or '-'} of {item.waves}" if item.target else "-"),
        Column("units", progress),
        Column("age", lambda item: formatting.age(item.begun_at, now)),
        Column("waits for", lambda item: item.waits_for or "-"),
        Column("unblock", lambda item: item.unblock or "-", wide=True),
    ]


@command("show")
@click.argument("policy", required=False, shell_complete=complete_rollout_policy)
@watch_option
@reading_options("text", "json", "yaml")
def show_(policy: str | None, watch: bool, form: str) -> None:
    """Show the rollout of POLICY: its target, its wave, each unit, and what it waits for until when.

    With --watch, a terminal shows the current state until you press q or Ctrl-C. Elsewhere, it is printed
    again whenever something other than a time has changed.

    Examples:
        lehr rollout show
        lehr rollout show web-waves --watch
        lehr rollout show web-waves -o json
    """
    if watch and form == "yaml":
        raise click.UsageError("--watch cannot be combined with -o yaml")
    from lehr.base.moments import plain
    from lehr.cli.rollout.current import commit_of, status_of
    from lehr.cli.rollout.text import status_lines
    from lehr.strategist.documents import rollout_document

    with open_reading() as reading:
        if watch:
            from lehr.cli.rollout.watch import watch_rollout

            watch_rollout(reading, policy, form)
            return
        found = status_of(reading, policy)
        commit = commit_of(reading, found.target)
        lines = status_lines(found, reading.partition, commit, reading.now, alive=run_state().active)
        show_text(form, lines, lambda: plain(rollout_document(found, commit)))


@command()
@click.argument("policy", required=False, shell_complete=complete_rollout_policy)
@click.option(
    "--every-unit", is_flag=True, help="Forecast a rollout of new content of every unit, from now on."
)
@reading_options("text", "json", "yaml")
def forecast(policy: str | None, every_unit: bool, form: str) -> None:
    """Forecast when the units of POLICY's rollout are updated and validated.

    A rollout under way is forecast from where it is. Otherwise, the forecast is of the rollout of the newest
    content. It rests on recorded pushes and validations and on the calendars and freezes in intent. Each time
    is a range: the early end with the median of what was recorded, the late end with its 95th percentile.
    Times that are not known are shown as unknown, with the reason.

    Examples:
        lehr rollout forecast
        lehr rollout forecast web-waves --every-unit
        lehr rollout forecast web-waves -o json
    """
    from lehr.base.moments import plain
    from lehr.cli.rollout.current import forecast_of
    from lehr.cli.rollout.text import rollout_forecast_lines

    with open_reading() as reading:
        found = forecast_of(reading, policy, every_unit=every_unit)
        show_text(form, rollout_forecast_lines(found, reading.partition), lambda: plain(found))


@command()
@click.argument("policy", required=False, shell_complete=complete_rollout_policy)
@list_options(50)
def history(policy: str | None, limit: int, form: str) -> None:
    """List what happened in the rollouts of POLICY, or of all policies, newest first.

    Examples:
        lehr rollout history
        lehr rollout history web-waves --all -o json
    """
    from lehr.strategist.documents import rollout_events

    with open_reading() as reading:
        found = rollout_events(reading, policy)[:limit]
        show(form, found, _history_shape(reading.now), nothing="no rollouts yet")


def _history_shape(now: float) -> Shape[Evidence]:
    from lehr.base.moments import plain
    from lehr.rollouts.story import in_words
    from lehr.strategist.documents import event_document

    columns: list[Column[Evidence]] = [
        Column("number", lambda item: str(item.number), wide=True),
        Column("age", lambda item: formatting.age(item.at, now), narrow=True),
        Column("at", lambda item: formatting.moment(item.at) or "", wide=True),
        Column("policy", lambda item: item.policy),
        Column("rollout", lambda item: item.rollout, wide=True),
        Column("what", lambda item: printable(in_words(item.fact))),
    ]
    return Shape(columns, lambda item: plain(event_document(item)), lambda item: item.rollout)

"""The status of a rollout as text."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.clock import iso
from lehr.cli import formatting, terminal
from lehr.cli.rollout.measured import measured_lines
from lehr.model.asset import Partition
from lehr.model.evidence import Moments
from lehr.model.provenance import Commit
from lehr.rollouts.comparison import Comparison
from lehr.rollouts.figures import RolloutState
from lehr.rollouts.forecast_text import forecast_lines
from lehr.rollouts.past import PastRollout
from lehr.rollouts.status import RolloutStatus, UnitState, UnitStatus
from lehr.strategist.overview import RolloutForecast

_COLOURS = {
    RolloutState.RUNNING: "cyan",
    RolloutState.PAUSED: "yellow",
    RolloutState.HOLDING: "yellow",
    RolloutState.BLOCKED: "red",
    RolloutState.IDLE: "green",
}
_SAYS = {
    RolloutState.RUNNING: "is under way",
    RolloutState.PAUSED: "is paused",
    RolloutState.HOLDING: "is on hold",
}
_HAS = (UnitState.RELEASED, UnitState.PUSHING, UnitState.VALIDATING, UnitState.GOOD, UnitState.BAD)
_MOST_UNITS = 50
_MOST_PAST = 5


def status_lines(
    status: RolloutStatus, partition: Partition, commit: Commit | None, now: float, *, alive: bool
) -> Iterator[str]:
    """The status, for people.

    Args:
        commit: that the target was made from, if it is known.
        alive: whether a `lehr run` is active.
    """
    yield f"{terminal.style('●', _COLOURS[status.state])} {headline(status)}"
    if status.target:
        yield f"  target     {_target(status, partition, commit)}"
    if status.begun_at is not None:
        yield f"  begun      {formatting.ago(status.begun_at, now)} ({iso(status.begun_at)})"
    if status.waits_for:
        yield f"  waits for  {terminal.printable(status.waits_for)}"
    if status.until is not None:
        yield f"  next       {formatting.when(status.until, now)}"
    if status.unblock:
        yield f"  unblock    {terminal.printable(status.unblock)}"
    for note in status.notes:
        yield f"  note       {terminal.printable(note)}"
    if not alive:
        yield "  note       no `lehr run` is active: nothing is released or pushed"
    yield from _units(status, now)
    yield from measured_lines(status)
    yield from _forecast(status.forecast, now)
    yield from _past(status.past, partition, now)


def rollout_forecast_lines(found: RolloutForecast, partition: Partition) -> Iterator[str]:
    """A forecast, for people."""
    target = f"{partition}@{found.target}"
    if found.every_unit:
        yield f"if every unit of {found.policy} had new content:"
    elif found.begun_at is None:
        yield f"the rollout of {found.policy} to {target}, which has not begun:"
    else:
        yield f"the rollout of {found.policy} to {target}, which began at {iso(found.begun_at)}:"
    yield from map(terminal.printable, forecast_lines(found.forecast))


def progress(status: RolloutStatus) -> str:
    """`1 of 3 updated`, or how many have the newest content if no rollout is under way."""
    if not status.target:
        return formatting.counted(status.unchanged + len(status.units), "unit")
    has = sum(unit.state in _HAS for unit in status.units)
    return f"{has} of {len(status.units)} updated"


def headline(status: RolloutStatus) -> str:
    """The status on one line."""
    if status.state in _SAYS:
        wave = f", wave {status.wave} of {status.waves}" if status.wave else ""
        return f"the rollout of {status.policy} {_SAYS[status.state]}{wave}: {progress(status)}"
    if status.state is RolloutState.BLOCKED:
        waiting = formatting.counted(len(status.units), "unit")
        return f"no rollout of {status.policy} begins: the content of {waiting} is quarantined"
    if status.waits_for:
        return f"no rollout of {status.policy} is under way"
    return f"no rollout of {status.policy} is under way: {_all_current(status.unchanged)}"


def _all_current(units: int) -> str:
    if not units:
        return "it selects no assets"
    return (
        "its unit has its newest content" if units == 1 else f"all {units:,} units have their newest content"
    )


def _target(status: RolloutStatus, partition: Partition, commit: Commit | None) -> str:
    name = f"{partition}@{status.target}"
    if commit is None:
        return name
    return terminal.printable(f"{name}, by {commit.author.partition(' <')[0]}: {commit.subject}")


def _units(status: RolloutStatus, now: float) -> Iterator[str]:
    if status.units:
        yield "  units"
        rows = [_unit(unit, now) for unit in status.units[:_MOST_UNITS]]
        width = terminal.width()
        table = terminal.table(("unit", "state", "for", "why"), rows, None if width is None else width - 4)
        yield from (f"    {line}" for line in table)
    if len(status.units) > _MOST_UNITS:
        yield f"    and {len(status.units) - _MOST_UNITS:,} more; see -o json"
    if status.unchanged and status.units:
        yield f"    {formatting.counted(status.unchanged, 'other unit')} without a change"


def _unit(unit: UnitStatus, now: float) -> tuple[str, str, str, str]:
    since = "-" if unit.since is None else formatting.age(unit.since, now)
    return unit.id, str(unit.state), since, _why(unit)


def _why(unit: UnitStatus) -> str:
    if unit.state in (UnitState.VALIDATING, UnitState.GOOD):
        exposed = f"good for {formatting.span(unit.exposure)}" if unit.exposure else "good"
        left = f", {formatting.span(unit.soak_left)} to go" if unit.soak_left else ""
        return "; ".join(filter(None, (unit.why, f"{exposed}{left}")))
    return unit.why


def _forecast(found: Comparison | None, now: float) -> Iterator[str]:
    if found is None:
        return
    yield "  forecast when it began"
    rows = [
        (
            item.unit or f"wave {item.wave} ({formatting.counted(item.units, 'unit')})",
            "-" if item.updated is None else _clock(item.updated, now),
            _expected(item.expected_updated, now),
            "-" if item.validated is None else _clock(item.validated, now),
            _expected(item.expected_validated, now),
        )
        for item in found.rows
    ]
    titles = ("unit", "updated", "forecast", "validated", "forecast")
    width = terminal.width()
    yield from (f"    {line}" for line in terminal.table(titles, rows, None if width is None else width - 4))
    yield f"    ends: {_expected(found.ends, now)}"
    if found.unknown:
        yield f"    unknown: {terminal.printable(found.unknown)}"


def _expected(found: Moments, now: float) -> str:
    early, late = ("unknown" if at is None else _clock(at, now) for at in (found.early, found.late))
    return early if early == late else f"{early} to {late}"


def _clock(at: float, now: float) -> str:
    """A moment in UTC, without its date if that is today's."""
    date, _, clock = iso(at).partition("T")
    return clock if iso(now).startswith(date) else f"{date} {clock}"


def _past(past: tuple[PastRollout, ...], partition: Partition, now: float) -> Iterator[str]:
    if not past:
        return
    yield "  earlier rollouts"
    rows = [
        (
            f"{partition}@{item.target}",
            "-" if item.ended_at is None else formatting.ago(item.ended_at, now),
            item.how,
            formatting.counted(len(item.units), "unit"),
            _punctual(item),
            item.why,
        )
        for item in past[:_MOST_PAST]
    ]
    width = terminal.width()
    titles = ("target", "ended", "how", "updated", "forecast", "why")
    yield from (f"    {line}" for line in terminal.table(titles, rows, None if width is None else width - 4))
    if len(past) > _MOST_PAST:
        yield f"    and {len(past) - _MOST_PAST:,} more; see `lehr rollout history`"


def _punctual(item: PastRollout) -> str:
    """When a rollout ended, compared with its forecast."""
    expected, ended_at = item.expected_end, item.ended_at
    if expected is None or expected.early is None or ended_at is None:
        return "-"
    if ended_at < expected.early - 1:
        return f"{formatting.span(expected.early - ended_at)} early"
    if expected.late is not None and ended_at > expected.late + 1:
        return f"{formatting.span(ended_at - expected.late)} late"
    return "in time"

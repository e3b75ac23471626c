"""The status of a rollout as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lehr.base.clock import iso
from lehr.base.moments import plain
from lehr.cli import formatting, terminal
from lehr.cli.rollout.measured import measured_lines
from lehr.model.asset import Partition
from lehr.model.provenance import Commit
from lehr.rollouts.status import PastRollout, RolloutState, RolloutStatus, UnitState, UnitStatus

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
_HAS = (UnitState.RELEASED, UnitState.PUSHING, UnitState.GOOD, UnitState.BAD)
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
    yield from _past(status.past, partition, now)


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
    if unit.state is UnitState.GOOD:
        exposed = f"good for {formatting.span(unit.exposure)}" if unit.exposure else "good"
        left = f", {formatting.span(unit.soak_left)} to go" if unit.soak_left else ""
        return "; ".join(filter(None, (unit.why, f"{exposed}{left}")))
    return unit.why


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
            item.why,
        )
        for item in past[:_MOST_PAST]
    ]
    width = terminal.width()
    titles = ("target", "ended", "how", "updated", "why")
    yield from (f"    {line}" for line in terminal.table(titles, rows, None if width is None else width - 4))
    if len(past) > _MOST_PAST:
        yield f"    and {len(past) - _MOST_PAST:,} more; see `lehr rollout history`"


def status_document(status: RolloutStatus, commit: Commit | None) -> dict[str, Any]:
    """The status as plain data."""
    return {**plain(status), "commit": plain(commit)}

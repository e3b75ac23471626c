"""An `Overview` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lehr.base.moments import plain, rfc3339
from lehr.cli import documents, formatting, terminal
from lehr.cli.active_run import seen
from lehr.cli.cause_text import cause_lines
from lehr.cli.explanation_text import control_line, paint
from lehr.model.asset import Partition
from lehr.model.attempt import Attempt, Publication
from lehr.query.causes import RootCauses
from lehr.query.overview import Overview
from lehr.query.run_state import RunState
from lehr.query.wait_conditions import HeldBack

_MOST_DIAGNOSTICS = 20
_MOST_CONTROLS = 20
_MOST_HELD = 3


def overview_lines(
    overview: Overview,
    causes: RootCauses,
    partition: Partition,
    now: float,
    run: RunState,
    most: int = 5,
) -> Iterator[str]:
    """Lines about everything that is not as intended, and what blocks it.

    Args:
        most: assets that are listed of those with their own cause.
    """
    if overview.newest is None:
        yield f"{partition} has no incarnation yet: nothing was published"
    else:
        yield _in_force(overview, now, run)
    if overview.not_published and overview.attempt is not None:
        yield ""
        yield from refused(overview.attempt, now)
    if overview.controls:
        yield ""
        yield "Active controls:"
        for control in overview.controls[:_MOST_CONTROLS]:
            yield f"  {control_line(control, now)}"
        if len(overview.controls) > _MOST_CONTROLS:
            yield f"  and {len(overview.controls) - _MOST_CONTROLS} more"
    if causes.causes:
        yield ""
        yield from cause_lines(causes, now, most)
    if not run.active:
        yield ""
        yield f"No `lehr run` is active ({run_line(run, now)}): nothing is observed or pushed."


def run_line(run: RunState, now: float) -> str:
    """When a `lehr run` was last active, if none is."""
    if run.process is not None:
        return f"process {run.process} does not answer yet"
    found = seen(run, now)
    return f"last seen {found}" if found else "never active on this state"


def held_back_line(held: Sequence[HeldBack], partition: Partition) -> str:
    """Some of the assets that pins and releases hold back."""
    by = " and ".join(
        name
        for name, released in (("pins", False), ("releases", True))
        if any(item.released is released for item in held)
    )
    named = [terminal.printable(_kept_at(item, partition)) for item in held]
    shown = formatting.first_of(named, _MOST_HELD, ", ")
    return f"{formatting.counted(len(held), 'asset')} held back by {by}: {shown}"


def _kept_at(held: HeldBack, partition: Partition) -> str:
    return (
        f"{held.id} at {partition}@{held.incarnation}" if held.incarnation else f"{held.id} without content"
    )


def _in_force(overview: Overview, now: float, run: RunState) -> str:
    assert overview.newest is not None
    newest = overview.newest
    total = sum(overview.counts.values())
    since = f"{newest.name} has been in force for {formatting.span(now - newest.created_at)}"
    assets = formatting.counted(total, "asset")
    every = f"{assets} has" if total == 1 else f"all {assets} have"
    if overview.unsettled:
        return f"{paint('Waiting', '●')} {since}; {overview.unsettled:,} of its {assets} not settled"
    if overview.held_back:
        held = held_back_line(overview.held_back, newest.partition)
        return f"{paint('Held', '●')} {since}; of its {assets}, {held}"
    if overview.not_published or not run.active:
        return f"{paint('Waiting', '●')} {since}; {assets} had converged when last checked"
    return f"{paint('Converged', '●')} {since}; {every} converged"


def refused(attempt: Attempt, now: float) -> Iterator[str]:
    """Lines about a revision that was not published, with every problem, bounded."""
    from lehr.cli.diagnostics import render

    revision = attempt.sources[0].revision[:12] if attempt.sources else "the newest revision"
    what = "was refused" if attempt.publication is Publication.REFUSED else "could not be read"
    force = (
        f"{attempt.partition}@{attempt.sequence} stays in force"
        if attempt.sequence
        else "no incarnation is in force"
    )
    yield f"{paint('Stalled', '●')} {revision} {what} {formatting.ago(attempt.at, now)}; {force}:"
    yield ""
    yield render(attempt.diagnostics, colour=terminal.coloured(), most=_MOST_DIAGNOSTICS)


def overview_document(overview: Overview) -> dict[str, Any]:
    """The whole overview as plain data."""
    return {
        "newest": None if overview.newest is None else documents.of_incarnation(overview.newest),
        "attempt": plain(overview.attempt),
        "counts": overview.counts,
        "unsettled": overview.unsettled,
        "groups": [
            {
                "status": group.status,
                "reason": group.reason,
                "count": group.count,
                "next_at": None if group.next_at is None else rfc3339(group.next_at),
                "assets": [plain(row) for row in group.rows],
            }
            for group in overview.groups
        ],
        "controls": [documents.of_control(item) for item in overview.controls],
        "held_back": [plain(item) for item in overview.held_back],
        "operations": [plain(item) for item in overview.operations],
    }

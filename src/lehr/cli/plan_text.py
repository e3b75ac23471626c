"""A plan as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lehr.cli import field_text, terminal
from lehr.cli.explanation_text import differences
from lehr.dry_run.intent_changes import IntentChanges
from lehr.dry_run.planned import Planned, PlannedResult
from lehr.model.diff import Goal
from lehr.model.operation import Purpose
from lehr.query.compare import ChangeKind
from lehr.sdk.plugin import TextChange

_MOST_CHANGES = 20

_REMOVED = "will be removed"

_COLOURS = {
    PlannedResult.PUSHED: "green",
    _REMOVED: "red",
    PlannedResult.WAITS: "yellow",
    PlannedResult.APPROVAL: "red",
    PlannedResult.HELD: "yellow",
    PlannedResult.ORPHANED: "yellow",
    PlannedResult.NOT_KNOWN: "red",
}

_COUNTED = {
    PlannedResult.PUSHED: "to push",
    _REMOVED: "to remove",
    PlannedResult.WAITS: "waiting",
    PlannedResult.APPROVAL: "to approve",
    PlannedResult.HELD: "held",
    PlannedResult.ORPHANED: "orphaned",
    PlannedResult.NOT_KNOWN: "not known",
    PlannedResult.AS_INTENDED: "as intended",
}
"""For each result, in the order of the summary, the words after a number."""


def planned_lines(
    item: Planned,
    texts: Sequence[TextChange] = (),
    intent: IntentChanges = IntentChanges(),  # noqa: B008 - a constant
    *,
    full: bool,
) -> Iterator[str]:
    """The expected result of an asset's next turn.

    Args:
        intent: the changes behind the push, for a type whose differences do not show them.
        full: all changes, and all lines of texts.
    """
    pushed = item.result is PlannedResult.PUSHED
    result = terminal.style(_result(item), _COLOURS[_result(item)])
    goal = "" if pushed or item.goal is Goal.PRESENT else f", goal {item.goal}"
    step = f" ({item.goal} first)" if pushed and item.goal in (Goal.DRAINED, Goal.FENCED) else ""
    yield f"{terminal.style(item.id, bold=True)} ({item.type}{goal}): {result}{step}"
    if not pushed:
        yield f"  because    {terminal.printable(item.message or item.reason)}"
        if item.unblock and not item.wait_for:  # for others: `because` names them
            yield f"  unblock    {terminal.printable(item.unblock)}"
    yield from _cause(item, intent, full)
    yield from differences(item.diff, texts, full=full, most=_MOST_CHANGES, hint="; see --full-diff")


def _cause(item: Planned, intent: IntentChanges, full: bool) -> Iterator[str]:
    """The reason why production differs, if it was as intended before."""
    if not item.since or item.diff is None or item.diff.empty:
        return
    match item.purpose:
        case Purpose.REPAIR:
            yield f"  cause      drift: production no longer matches {item.since}"
        case Purpose.RESTART:
            yield "  cause      a person asked for a restart"
        case Purpose.ROLLBACK | Purpose.FORWARD:
            direction = "rollback from" if item.purpose is Purpose.ROLLBACK else "new content since"
            yield f"  cause      {direction} {item.since}"
            yield from _intent(intent, full)


def _intent(intent: IntentChanges, full: bool) -> Iterator[str]:
    shown = [line for change in intent.fields for line in field_text.lines(change, full=full)]
    shown += [f"{field_text.sign(ChangeKind.CHANGED)} {id}, which it refers to" for id in intent.others]
    most = len(shown) if full else _MOST_CHANGES
    yield from (f"    {line}" for line in shown[:most])
    if len(shown) > most:
        yield f"    and {len(shown) - most} more; see --full-diff"


def summary(planned: Sequence[Planned]) -> str:
    """One line: how many assets will have which result."""
    counts = Counter(map(_result, planned))
    parts = (f"{counts[result]:,} {words}" for result, words in _COUNTED.items() if counts[result])
    return ", ".join(parts) or "no assets"


def _result(item: Planned) -> str:
    """Each push of a turndown is a step of the removal."""
    is_removal = item.result is PlannedResult.PUSHED and item.goal is not Goal.PRESENT
    return _REMOVED if is_removal else item.result

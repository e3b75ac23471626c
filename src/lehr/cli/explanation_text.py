"""An `Explanation` as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lehr.base.clock import iso
from lehr.base.text import data_line
from lehr.cli import formatting, patch_text, terminal
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status, Verdict
from lehr.model.diff import Change, Diff
from lehr.model.monitoring import Reading
from lehr.model.operation import Operation
from lehr.query.asset_rows import INERT, NO_TURN, Row
from lehr.query.explain import Explanation, Link, headline
from lehr.query.explain_at import Past
from lehr.sdk.plugin import TextChange

_COLOURS = {
    Status.CONVERGED: "green",
    Status.TURNED_DOWN: "green",
    Status.PUSHING: "cyan",
    Status.WAITING: "yellow",
    Status.HELD: "yellow",
    Status.RETRYING: "yellow",
    Status.ORPHANED: "yellow",
    Status.STALLED: "red",
    Status.UNKNOWN: "red",
}
_MOST_CHANGES = 5
_MOST_VALUE = 60
_CONTEXT = 20
"""Characters shown before the first difference of two long texts."""


def explanation_lines(
    explanation: Explanation,
    attempt: Attempt | None,
    now: float,
    *,
    alive: bool | None,
    release: Iterable[str] = (),
) -> Iterator[str]:
    """Lines that explain the status of the asset.

    Args:
        attempt: the last pass over the source, reported if it failed.
        alive: whether a `lehr run` is active; None for a moment of which that is not known.
        release: lines about the release that it waits for.
    """
    row, release = explanation.row, list(release)
    yield f"{paint(row.status, '●')} {terminal.printable(headline(explanation))}"
    if row.since is not None:
        yield f"  since      {formatting.ago(row.since, now)} ({iso(row.since)})"
    yield from release
    if row.settled:
        yield from _settled(explanation, now)
    elif row.status != NO_TURN:
        yield from _blocked(explanation, now, alive=alive, released=bool(release))
    yield from _circumstances(explanation, attempt, now, alive=alive)
    yield from _story(explanation, now)


def past_lines(past: Past, explanation: Explanation, now: float) -> Iterator[str]:
    """Lines that explain the status that the asset had at another time.

    Args:
        now: of the reader; within the explanation, ages are those of that time.
    """
    force = f"{past.incarnation} was in force" if past.incarnation else "nothing was published yet"
    yield f"at {iso(past.at)} ({formatting.ago(past.at, now)}): {force}"
    yield from explanation_lines(explanation, None, past.at, alive=None)
    if not past.intent_is_kept:
        yield "  note       intent of that time was pruned: controls are those that select its later content"
    if past.history_since is not None and past.misses(explanation.row.since):
        since = iso(past.history_since)
        yield f"  note       history from before {since} was pruned: what had ended by then is not shown"


def paint(status: str, text: str) -> str:
    """`text` in the colour of a status."""
    known = status not in (INERT, NO_TURN)
    return terminal.style(text, _COLOURS[Status(status)] if known else "blue")


# --- what blocks ---------------------------------------------------------------


def _blocked(explanation: Explanation, now: float, *, alive: bool | None, released: bool) -> Iterator[str]:
    row = explanation.row
    if row.status == Status.PUSHING and explanation.operation is not None:
        yield f"  push       {_operation(explanation.operation, now)}"
    if row.unblock and not released:
        yield f"  unblock    {terminal.printable(row.unblock)}"
    if alive and not released and row.status != Status.PUSHING:
        yield f"  next       {_next(row, now)}"
    yield from differences(explanation.diff)
    if explanation.verdicts:
        yield "  checks"
        for verdict in explanation.verdicts:
            yield from verdict_lines(verdict, now)
    for link in explanation.chain:
        yield f"  {_link(link)}"


def _next(row: Row, now: float) -> str:
    """The next step and its time."""
    at = None if row.resync is None else f"within {formatting.span(row.resync)}"
    if row.next_at is not None:
        at = formatting.when(row.next_at, now)
    if row.automatic:
        return (
            f"retries {at}, or as soon as something changes" if at else "retries as soon as something changes"
        )
    rest = f"; production is checked again {at}" if at else ""
    return f"no push until then{rest}"


def _link(link: Link) -> str:
    summary = f"{link.row.id} is {link.row.status}"
    if link.cycle:
        return f"cycle      {summary}: these assets wait for each other"
    message = terminal.printable(link.row.message)
    return f"waits for  {summary}" + (f": {message}" if message else "")


def verdict_lines(verdict: Verdict, now: float) -> Iterator[str]:
    """Lines about the verdict of a check: its message, until when it waits, and what would unblock it."""
    mark = terminal.style("allows", "green") if verdict.allow else terminal.style("waits ", "yellow")
    summary = verdict.message or ("no objection" if verdict.allow else verdict.reason)
    until = f"; until {formatting.when(verdict.until, now)}" if verdict.until and not verdict.allow else ""
    override = f"; overridden by {verdict.overridden}" if verdict.overridden else ""
    yield f"    {mark}  {terminal.printable(f'{verdict.check}: {summary}{until}{override}')}"
    if not verdict.allow and verdict.unblock:
        yield f"            {terminal.printable(verdict.unblock)}"
    for reading in verdict.readings:
        yield f"            {terminal.printable(_reading(reading, now))}"


def _reading(reading: Reading, now: float) -> str:
    """`read 12s ago from prometheus: 0.13 for {job="shop"}, must be at most 0.05`."""
    value = "no value" if reading.value is None else f"{reading.value:g}"
    if isinstance(reading.value, bool):
        value = str(reading.value).lower()
    of = f" for {reading.series}" if reading.series else ""
    found = (
        f"{value}{of}, must be {reading.bounds}" if reading.bounds != "no alert fires" else reading.question
    )
    return f"read {formatting.ago(reading.at, now)} from {reading.source}: {found}"


def differences(
    diff: Diff | None,
    texts: Sequence[TextChange] = (),
    *,
    full: bool = False,
    most: int = _MOST_CHANGES,
    hint: str = "",
) -> Iterator[str]:
    """Lines that list the differences, bounded.

    Args:
        texts: shown line by line, in place of the changes of the same path.
        full: all changes, and all lines of texts.
        most: changes that are listed otherwise.
        hint: follows the number of those that are not.
    """
    if diff is None or diff.empty:
        return
    most = len(diff.changes) if full else most
    yield "  differs" + _effects(diff)
    by_path = {text.path: text for text in texts}
    for change in diff.changes[:most]:
        if (text := by_path.get(change.path)) is None:
            yield f"    {terminal.printable(change_line(change))}"
        else:
            yield from _text(change, text, full)
    yield from _more(diff, most, hint)


def _effects(diff: Diff) -> str:
    effects = [terminal.style("destructive", "red", bold=True)] if diff.effects.destructive else []
    effects += ["disruptive"] if diff.effects.disruptive else []
    return f"    ({', '.join(effects)})" if effects else ""


def _text(change: Change, text: TextChange, full: bool) -> Iterator[str]:
    if text.hidden:
        yield f"    {terminal.printable(change_line(change))}"
        yield f"      text hidden: {terminal.printable(text.hidden)}"
        return
    missing = " is missing, should be" if text.observed is None else ""
    yield f"    {terminal.printable(change.path)}:{missing}"
    for line in patch_text.patch(text.observed or "", text.intended or "", full=full):
        yield f"      {patch_text.coloured(line)}"


def _more(diff: Diff, most: int, hint: str = "") -> Iterator[str]:
    if len(diff.changes) > most:
        yield f"    and {len(diff.changes) - most} more{hint}"


def change_line(change: Change) -> str:
    """`mode: is 0644, should be 0600`."""
    if change.observed is None:
        return f"{change.path}: is missing, should be {value(change.intended)}"
    if change.intended is None:
        return f"{change.path}: is {value(change.observed)}, should not exist"
    observed, intended = values(change.observed, change.intended)
    return f"{change.path}: is {observed}, should be {intended}"


def value(data: Any) -> str:
    """Plain data on one line, truncated if it is long."""
    return _cut(_line(data), 0)


def values(before: Any, after: Any) -> tuple[str, str]:
    """Two pieces of plain data on one line each; long ones are cut to the part where they begin to differ."""
    one, other = _line(before), _line(after)
    shorter = min(len(one), len(other))
    same = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    return _cut(one, same - _CONTEXT), _cut(other, same - _CONTEXT)


def _line(data: Any) -> str:
    text = data_line(data)
    return terminal.printable(text) if text else '""'


def _cut(text: str, begin: int) -> str:
    """At most `_MOST_VALUE` characters of `text`; of a longer one, those from `begin` on."""
    if len(text) <= _MOST_VALUE:
        return text
    if begin <= 0:
        return f"{text[: _MOST_VALUE - 1]}…"
    rest = text[begin:]
    return f"…{rest}" if len(rest) < _MOST_VALUE else f"…{rest[: _MOST_VALUE - 2]}…"


# --- history --------------------------------------------------------------------


def _settled(explanation: Explanation, now: float) -> Iterator[str]:
    entry = explanation.ledger
    if entry is None:
        return
    if entry.operation is None:
        yield f"  adopted    {formatting.ago(entry.at, now)}: production already matched; nothing was pushed"
        return
    operation = explanation.operation
    if operation is not None and operation.id == entry.operation:
        yield f"  pushed     {_operation(operation, now)}"
        yield from _carried_out(explanation, operation)
    else:
        yield f"  pushed     {formatting.ago(entry.at, now)} by operation {entry.operation}"


def _carried_out(explanation: Explanation, operation: Operation) -> Iterator[str]:
    """The changes that the push planned."""
    started = (item.decision for item in explanation.story if item.decision.operation == operation.id)
    diff = next((decision.diff for decision in started if decision.diff and decision.diff.changes), None)
    if diff is None:
        return
    for change in diff.changes[:_MOST_CHANGES]:
        yield f"    {terminal.printable(carried_out_line(change))}"
    yield from _more(diff, _MOST_CHANGES)
    yield from (f"    {terminal.printable(note)}" for note in diff.notes)


def carried_out_line(change: Change) -> str:
    """`mode: changed from 0600 to 0644`."""
    if change.observed is None:
        return f"{change.path}: created ({value(change.intended)})"
    if change.intended is None:
        return f"{change.path}: removed ({value(change.observed)})"
    observed, intended = values(change.observed, change.intended)
    return f"{change.path}: changed from {observed} to {intended}"


def _operation(operation: Operation, now: float) -> str:
    content = f"{operation.partition}@{operation.content}"
    started = f"{operation.id}, content of {content}, started {formatting.ago(operation.started_at, now)}"
    if operation.ended_at is None:
        return f"{started}, in progress"
    return f"{started}, {operation.result} after {formatting.span(operation.ended_at - operation.started_at)}"


def _story(explanation: Explanation, now: float) -> Iterator[str]:
    if not explanation.story:
        return
    yield "  decisions, newest first"
    rows = [
        (
            f"    #{item.number}",
            formatting.ago(item.decision.at, now),
            str(item.decision.condition.status),
            item.decision.condition.reason,
            f"cause: {item.decision.event}",
        )
        for item in explanation.story
    ]
    yield from terminal.table([""] * 5, rows, terminal.width())[1:]


# --- context -----------------------------------------------------------------------


def _circumstances(
    explanation: Explanation, attempt: Attempt | None, now: float, *, alive: bool | None
) -> Iterator[str]:
    for control in explanation.controls:
        yield f"  control    {control_line(control, now)}"
    if attempt is not None and attempt.publication in (Publication.REFUSED, Publication.UNREADABLE):
        yield (
            f"  note       the newest revision of the source was {attempt.publication} "
            f"{formatting.ago(attempt.at, now)}; {attempt.partition}@{attempt.sequence} stays in force; "
            "see `lehr why --all`"
        )
    if alive is False:
        yield "  note       no `lehr run` is active: nothing is observed or pushed"


def control_line(control: Control, now: float) -> str:
    """An active control in one line."""
    what = {
        ControlKind.PIN: f"pin to {control.partition}@{control.incarnation}",
        ControlKind.OVERRIDE: f"override of {control.check}",
    }.get(control.kind, str(control.kind))
    ends = (
        "until lifted" if control.expires_at is None else f"ends {formatting.when(control.expires_at, now)}"
    )
    summary = f"{what} for {control.selector} by {control.actor}, {formatting.ago(control.at, now)}, {ends}"
    return terminal.printable(f"{summary}: {control.reason}")

"""Root causes as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lehr.cli import formatting, terminal
from lehr.cli.explanation_text import paint
from lehr.model.decision import Status
from lehr.query.causes import Cause, CauseKind, RootCauses

_MOST_CAUSES = 20


def cause_lines(found: RootCauses, now: float, most: int = 5) -> Iterator[str]:
    """Lines about all root causes: first each that several assets wait for, then assets with their own.

    Args:
        most: assets that are listed of those with their own cause.
    """
    if not found.causes:
        return
    things = formatting.counted(len(found.causes), "thing")
    waits = "waits" if found.count == 1 else "wait"
    yield f"{formatting.counted(found.count, 'asset')} {waits} for {things}:"
    shared = [cause for cause in found.causes if not _alone(cause)]
    for cause in shared[:_MOST_CAUSES]:
        yield ""
        yield from _shared(cause, now)
    if len(shared) > _MOST_CAUSES:
        yield ""
        yield f"and {len(shared) - _MOST_CAUSES:,} more causes; see `lehr why --all -o json`"
    alone: dict[tuple[str, str], list[Cause]] = {}
    for cause in found.causes:
        if _alone(cause):
            alone.setdefault((cause.status, cause.reason), []).append(cause)
    for causes in sorted(alone.values(), key=len, reverse=True):
        yield ""
        yield from _each(sorted(causes, key=lambda cause: (cause.since or 0.0, cause.root)), now, most)


def _alone(cause: Cause) -> bool:
    """Whether the cause is a single asset that holds up no other asset."""
    return cause.kind is CauseKind.ASSET and cause.count == 1 and cause.examples[:1] == (cause.root,)


def _shared(cause: Cause, now: float) -> Iterator[str]:
    yield f"{_dot(cause)} {terminal.printable(_title(cause))}"
    if cause.since is not None:
        yield f"  since      {formatting.ago(cause.since, now)}"
    yield f"  holds up   {_held_up(cause)}"
    if cause.next_at is not None:
        yield f"  next       {formatting.when(cause.next_at, now)}"
    if cause.unblock:
        yield f"  unblock    {terminal.printable(cause.unblock)}"


def _title(cause: Cause) -> str:
    match cause.kind:
        case CauseKind.ASSET:
            title = f"{cause.root} is {cause.status or 'not settled'} ({cause.reason})"
        case CauseKind.CYCLE:
            title = cause.reason
        case CauseKind.ROLLOUT:
            title = f"rollout of {cause.root or 'no policy'} ({cause.reason})"
        case CauseKind.CHECK:
            title = f"{cause.root} ({cause.reason})"
        case CauseKind.CONDITION:
            title = _status(cause.status, cause.reason)
    return f"{title}: {cause.message}" if cause.message else title


def _held_up(cause: Cause) -> str:
    """How many assets wait, and some of them."""
    others = [id for id in cause.examples if id != cause.root]
    root = cause.kind is CauseKind.ASSET and len(others) < len(cause.examples)
    count, named = (cause.count - 1, others) if root else (cause.count, cause.examples)
    more = f" and {count - len(named):,} more" if count > len(named) else ""
    which = f": {', '.join(map(terminal.printable, named))}{more}" if named else ""
    return f"{formatting.counted(count, 'other asset' if root else 'asset')}{which}"


def _each(causes: Sequence[Cause], now: float, most: int) -> Iterator[str]:
    first = causes[0]
    yield f"{_dot(first)} {_status(first.status, first.reason)}: {formatting.counted(len(causes), 'asset')}"
    yield from _rows(causes[:most], now)
    if len(causes) > most:
        yield f"  and {len(causes) - most:,} more; see `lehr get assets --status {first.status}`"


def _rows(causes: Iterable[Cause], now: float) -> Iterator[str]:
    shown: set[str] = set()
    for cause in causes:
        since = "" if cause.since is None else f", since {formatting.ago(cause.since, now)}"
        yield f"  {cause.root}{since}: {terminal.printable(cause.message or cause.reason)}"
        if cause.unblock and cause.unblock not in shown:
            yield f"      unblock: {terminal.printable(cause.unblock)}"
            shown.add(cause.unblock)


def _status(status: str, reason: str) -> str:
    return f"{status} ({reason})" if reason else status


def _dot(cause: Cause) -> str:
    return paint(cause.status or Status.WAITING, "●")

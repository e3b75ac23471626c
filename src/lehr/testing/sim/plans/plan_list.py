"""Every plan that a reference run gives rise to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lehr.testing.sim.plans.plan import PUSH_FAULTS, Fault, FaultPlan, Reference, Where

_ANYWHERE = {
    Where.COMMIT: (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.SECOND, Fault.HELD),
    Where.WRITE: (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LATE, Fault.HELD),
    Where.PUSH: (*PUSH_FAULTS, Fault.HELD),
    Where.EVENT: (Fault.LOST, Fault.DOUBLED),
}
"""Faults at every point of a kind."""

_AT_LOOKS = (Fault.FAIL, Fault.OUTDATED)
_OF_A_FILE = (Fault.TRUNCATED, Fault.BLANK, Fault.REPEATED)
_OF_A_SOURCE = (Fault.HALVED, Fault.EMPTIED)

_LAGS, _LAGS_OF_REMOVALS = 1, 3
"""How far back stale reads go: to so many commits that changed what others read."""


def plans_of(reference: Reference, declaring: Sequence[str]) -> list[FaultPlan]:
    """All plans, those that may be pruned included.

    Args:
        declaring: paths of files of the source whose damage must be noticed.
    """
    return [
        *(
            FaultPlan(fault, where, point.number)
            for where, faults in _ANYWHERE.items()
            for point in reference.of(where)
            for fault in faults
        ),
        *_looks(reference),
        *_early(reference),
        *_stale(reference),
        *_sources(reference, declaring),
    ]


def _looks(reference: Reference) -> Iterator[FaultPlan]:
    """The last look before each admission of what removes or destroys."""
    looks = reference.of(Where.LOOK)
    for commit in reference.of(Where.COMMIT):
        for id, takes_away in commit.admits:
            before = [look for look in looks if look.at <= commit.at and id in look.ids]
            if takes_away and before:
                yield from (FaultPlan(fault, Where.LOOK, before[-1].number) for fault in _AT_LOOKS)


def _early(reference: Reference) -> Iterator[FaultPlan]:
    """The next step happens during this one, but not before this one's edit is published."""
    last = len(reference.rests) - 1
    edited = {point.step for point in reference.points if "word of the source" in point.what} | {0}
    published: set[int] = set()
    for point in reference.of(Where.COMMIT):
        if "Publish" in point.what:
            published.add(point.step)
        if point.step != last and (point.step in published or point.step not in edited):
            yield FaultPlan(Fault.EARLY, Where.COMMIT, point.number)


def _stale(reference: Reference) -> Iterator[FaultPlan]:
    """Before every admission, reads miss the last writes; before removals, more of them."""
    commits = reference.of(Where.COMMIT)
    for place, point in enumerate(commits):
        if not point.admits:
            continue
        removes = any(takes_away for _id, takes_away in point.admits)
        moving = [item.number for item in reversed(commits[:place]) if item.moves]
        for since in moving[: _LAGS_OF_REMOVALS if removes else _LAGS]:
            yield FaultPlan(Fault.STALE, Where.COMMIT, point.number, since)


def _sources(reference: Reference, declaring: Sequence[str]) -> Iterator[FaultPlan]:
    commits = reference.of(Where.COMMIT)
    published = next((point.at for point in commits if "Publish" in point.what), 0.0)
    for point in reference.of(Where.READ):
        yield FaultPlan(Fault.UNREADABLE, Where.READ, point.number)
        if point.at <= published:
            # Before anything is known, a part of a source cannot be distinguished from the whole.
            continue
        yield from (FaultPlan(fault, Where.READ, point.number) for fault in _OF_A_SOURCE)
        for path in declaring:
            yield from (FaultPlan(fault, Where.READ, point.number, path=path) for fault in _OF_A_FILE)

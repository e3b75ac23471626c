"""The rules of the feed: each change once, in the order of the commits, and no gap that is not reported."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import TransientError
from lehr.model.asset import Partition
from lehr.model.control import AuditEntry
from lehr.model.feed import ChangeKind, FeedEntry, RecordChange
from lehr.model.handle import Handle
from lehr.model.operation import DONE, Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import (
    Adopt,
    Audit,
    KeepHandle,
    KeepLease,
    LeaseLostError,
    LiftControl,
    Prune,
    RecordDecision,
    Reschedule,
    SetControl,
    TakeLease,
    Write,
)
from lehr.sdk.store import Store
from lehr.sdk.watch import FeedGoneError
from lehr.testing.conformance.rules import hold, raises
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULES,
    THING,
    Subject,
    admitted,
    asset,
    commit,
    control,
    decision,
    entry,
    finish,
    key,
    publication,
    published,
    refusal,
    request,
)

T = TypeVar("T")

_COMMITS = 12
_DAY = 86_400.0


def _kinds(found: FeedEntry) -> list[tuple[str, str]]:
    return [(str(change.kind), change.asset) for change in found.changes]


def _after(store: Store, position: int, partition: Partition = PARTITION) -> list[FeedEntry]:
    return store.records.feed(partition, position, 1000)


def _positions(store: Store, after: int = 0, partition: Partition = PARTITION) -> list[int]:
    return [item.position for item in _after(store, after, partition)]


def _decide(store: Store, count: int, first: int = 1, *, at: float = NOW) -> None:
    for number in range(first, first + count):
        commit(store, RecordDecision(decision("a", f"Turn{number}", at=at)))


@RULES.opened
def every_change_has_its_entry(store: Store) -> None:
    """One entry for each commit that changed something: each change, in the order of the writes."""
    commit(store, TakeLease(PARTITION, "one", NOW))
    hold(store.records.position(PARTITION) == 0, "a lease is not reported")
    expected: list[list[tuple[str, str]]] = []

    def changes(*kinds: tuple[ChangeKind, str]) -> None:
        if kinds:
            expected.append([(str(kind), asset) for kind, asset in kinds])
        found = list(map(_kinds, _after(store, 0)))
        hold(found == expected, f"the feed has {expected}, not {found}")

    published(store, 0, asset("a", "1"), asset("b", "1"))
    changes((ChangeKind.INCARNATION, ""))
    decided = replace(decision("a", Reason.PUSHING), operation="o1")
    admitted(store, request(store, "o1", decision=decided))
    changes((ChangeKind.OPERATION_STARTED, "a"), (ChangeKind.DECISION, "a"))
    commit(store, finish("o1", Outcome(Result.UNKNOWN)))
    changes((ChangeKind.OPERATION_UNKNOWN, "a"))
    store.commit([finish("o1", DONE, ledger=entry("a")), RecordDecision(decision("a"))])
    changes((ChangeKind.OPERATION_ENDED, "a"), (ChangeKind.DECISION, "a"))
    commit(store, Reschedule(key("a"), decision("a", next_at=NOW + 9).condition, NOW))
    changes((ChangeKind.RESCHEDULED, "a"))
    store.commit([SetControl(control("c1")), SetControl(control("c2")), LiftControl(PARTITION, "c1", NOW)])
    changes((ChangeKind.CONTROL_SET, ""), (ChangeKind.CONTROL_SET, ""), (ChangeKind.CONTROL_LIFTED, ""))
    found = _after(store, 0)
    controls = [change.record for change in found[-1].changes]
    hold(controls == ["c1", "c2", "c1"], f"controls are named by their ids, not {controls}")
    ids = [change.record for item in found for change in item.changes if change.kind.startswith("operation")]
    hold(ids == ["o1"] * 3, f"operations are named by their ids, not {ids}")
    numbers = [
        change.record for item in found for change in item.changes if change.kind is ChangeKind.DECISION
    ]
    kept = [str(number) for number, _ in store.records.decisions(PARTITION)][::-1]
    hold(numbers == kept, f"decisions are named by their numbers {kept}, not {numbers}")
    hold(found[0].changes == (RecordChange(ChangeKind.INCARNATION, record="1"),), "so are incarnations")


@RULES.governed
def what_changes_nothing_has_no_entry(store: Store) -> None:
    """Refused writes, writes that find nothing to change, and those that no record shows."""
    admitted(store, request(store, "o1"))
    commit(store, finish("o1", DONE))
    commit(store, SetControl(control("c1")))
    commit(store, LiftControl(PARTITION, "c1", NOW))
    before = store.records.position(PARTITION)
    outdated = request(store, "o2", "b")
    said = AuditEntry(at=NOW, actor="ana", command="pause", arguments={}, result="ok")
    writes: list[Write] = [
        publication(0, asset("a", "9")),
        finish("o1", DONE),
        finish("never", DONE),
        LiftControl(PARTITION, "c1", NOW),
        replace(outdated, operation=replace(outdated.operation, epoch=0)),
        Adopt(entry("b")),
        KeepHandle(Handle(PARTITION, key("b").id, THING, "id 1", NOW)),
        Audit(PARTITION, said),
        Prune(PARTITION, 1000, 0.0),
    ]
    answers = store.commit(writes)
    refusal(answers[0], Reason.OVERTAKEN, "an overtaken publication is refused")
    refusal(answers[4], Reason.LEASE_LOST, "a push of an earlier lease is refused")
    found = _after(store, before)
    hold(not found, f"nothing is reported, not {found}")


@RULES
def positions_count_commits_without_a_gap(subject: Subject) -> None:
    """From 1, in each partition, across restarts; and as many at a time as asked for."""
    with subject.opened() as store:
        _decide(store, 5)
        commit(store, RecordDecision(decision("z", partition=OTHER)))
    with subject.opened() as store:
        store.commit([RecordDecision(decision(id, partition=of)) for id in "ab" for of in (OTHER, PARTITION)])
        _decide(store, 4, 6)
        hold(store.records.position(PARTITION) == 10, "the newest is the tenth")
        hold(_positions(store, partition=OTHER) == [1, 2], "another partition counts its own")
        for after in range(11):
            found = _positions(store, after)
            hold(found == list(range(after + 1, 11)), f"all entries after {after} follow, not {found}")
        some = [item.position for item in store.records.feed(PARTITION, 3, 2)]
        hold(some == [4, 5], f"no more than asked for, and the first of them: {some}")
        changes = [change for item in _after(store, 0) for change in item.changes]
        hold(all(change.asset in "ab" for change in changes), "no change of another partition")
        hold(len(changes) == 11, f"and all of this one: {len(changes)}")


@RULES.governed
def a_commit_that_failed_takes_no_position(store: Store) -> None:
    """Whatever it had written already."""
    before = store.records.position(PARTITION)
    with raises(LeaseLostError, "a lease of another epoch is lost"):
        store.commit([RecordDecision(decision("a")), KeepLease(PARTITION, 9, NOW)])
    hold(store.records.position(PARTITION) == before, "it is not reported")
    _decide(store, 1)
    hold(_positions(store, before) == [before + 1], "and leaves no gap")
    [found] = _after(store, before)
    hold(len(found.changes) == 1, f"nor a change: {found.changes}")


@RULES
def a_reader_misses_nothing_of_concurrent_commits(subject: Subject) -> None:
    """Several processes commit at a time: a reader that has a position has seen all before it."""

    def write(name: str) -> None:
        with contextlib.closing(_persistently(subject.open)) as store:
            for number in range(_COMMITS):
                _persistently(partial(store.commit, [RecordDecision(decision(f"{name}/{number}"))]))

    async def read(store: Store, writers: Sequence[asyncio.Future[None]]) -> list[FeedEntry]:
        seen: list[FeedEntry] = []
        writing = True
        while writing:
            writing = not all(writer.done() for writer in writers)  # before the last look
            with contextlib.suppress(TransientError):
                for item in store.records.feed(PARTITION, len(seen), 5):
                    hold(item.position == len(seen) + 1, f"{len(seen) + 1} follows, not {item.position}")
                    seen.append(item)
            await SystemClock().sleep(0.001)
        return seen + _after(store, len(seen))

    async def main() -> list[FeedEntry]:
        threads = Threads("committers", 3)
        try:
            writers = [asyncio.ensure_future(threads.run(write, name)) for name in "pqr"]
            with subject.opened() as store:
                seen = await read(store, writers)
            await asyncio.gather(*writers)
            return seen
        finally:
            threads.close()

    seen = asyncio.run(main())
    assets = [change.asset for item in seen for change in item.changes]
    expected = sorted(f"{name}/{number}" for name in "pqr" for number in range(_COMMITS))
    hold(sorted(assets) == expected, f"every change is reported once, not {sorted(assets)}")
    numbers = [int(change.record) for item in seen for change in item.changes]
    hold(numbers == sorted(numbers), "in the order of the commits")


def _persistently(do: Callable[[], T]) -> T:
    """Do this although others hold the store for a moment."""
    while True:
        with contextlib.suppress(TransientError):
            return do()


@RULES.opened
def a_position_that_never_was_is_refused(store: Store) -> None:
    """A reader ahead of the newest entry has read another state, and must not wait for it to come."""
    with raises(FeedGoneError, "nothing follows 1 in an empty store"):
        _after(store, 1)
    hold(_after(store, 0) == [], "and everything that comes follows 0")
    _decide(store, 3)
    with raises(FeedGoneError, "nothing follows 4, which never was"):
        _after(store, 4)
    hold(_after(store, 3) == [], "the newest is a position to wait at")


@RULES.opened
def what_the_feed_has_lost_is_never_skipped(store: Store) -> None:
    """A reader before the oldest entry that is kept must list again; the others continue."""
    for day in range(1, 7):
        _decide(store, 1, day, at=NOW + day * _DAY)
    wanted = Prune(PARTITION, 1, NOW + 4.5 * _DAY)
    foreseen = store.records.prunable(wanted).entries
    gone = _pruned(store, wanted)
    hold(foreseen == gone == 3, f"three of four old ones go, as foreseen: {foreseen}, {gone}")
    for after in (0, 1, 2):
        with raises(FeedGoneError, f"what follows {after} is not known any more") as caught:
            _after(store, after)
        hold("4" in caught[0].why, "the error names the oldest that is kept")
    hold(_positions(store, 3) == [4, 5, 6], "a reader that has seen everything before continues")
    _pruned(store, Prune(PARTITION, 1, NOW + 1000 * _DAY))
    hold(store.records.position(PARTITION) == 6, "the newest stays, however old")
    hold(_positions(store, 6) == [], "so that a reader there continues")
    _decide(store, 1, 7)
    hold(_positions(store, 6) == [7], "and no position is given twice")


@RULES.opened
def a_clock_that_goes_back_leaves_no_gap_in_the_feed(store: Store) -> None:
    """Old entries go with everything before them, whatever the clock showed then."""
    for day in (1, 9, 2, 8, 3, 9):
        _decide(store, 1, day, at=NOW + day * _DAY)
    _pruned(store, Prune(PARTITION, 1, NOW + 2.5 * _DAY))
    hold(_positions(store, 2) == [3, 4, 5, 6], f"what follows stays, not only {_positions(store, 2)}")
    with raises(FeedGoneError, "what was before is gone"):
        _after(store, 1)


def _pruned(store: Store, wanted: Prune) -> int:
    """Prune to the end, two rows at a time; the number of entries that are gone."""
    rest: Prune | None = replace(wanted, most=2)
    gone = 0
    while rest is not None:
        share = commit(store, rest)
        gone, rest = gone + share.entries, share.rest
    return gone

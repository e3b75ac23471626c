"""A store over HTTP answers what the store behind it answers, whatever is asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.errors import LehrError, StalledError
from lehr.http import remote, remote_part, remote_records
from lehr.http.remote import RemoteStore
from lehr.model.asset import AssetId, Partition
from lehr.model.control import AuditEntry
from lehr.model.decision import Condition, Reservation, Status, Verdict
from lehr.model.evidence import Begun, Looked, UnitLook
from lehr.model.handle import Handle
from lehr.model.operation import Outcome, Result
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
from lehr.model.writes import (
    Audit,
    KeepHandle,
    KeepOutputs,
    LiftControl,
    Prune,
    RecordDecision,
    SetControl,
    TakeLease,
)
from lehr.query.asset_pages import Wanted, page
from lehr.query.filters import Filter
from lehr.query.partition_view import Reading
from lehr.sdk.store import PrunedError, Span, Store
from lehr.sdk.watch import FeedGoneError
from lehr.testing.conformance.store.rollouts import evidence, witnessed
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    THING,
    admitted,
    asset,
    control,
    decision,
    finish,
    key,
    publication,
    release,
    released,
    request,
)
from tests.codes import raises
from tests.integration.http.served import served

Ask = Callable[[Store], Any]

SPANS = (
    Span(),
    Span(prefix="x/"),
    Span(after="c"),
    Span(ids=frozenset(f"x/{number}" for number in range(40))),
    Span(ids=frozenset(("a", "x/1", "x/2")), prefix="x/", after="x/1"),
    Span(ids=frozenset(f"{'long' * 40}{number}" for number in range(60))),
)


def as_plain(found: Any) -> Any:
    """What iterators have in them."""
    plain = isinstance(found, str | bytes | tuple | dict) or not isinstance(found, Iterable)
    return found if plain else list(found)


ASKED: dict[str, Ask] = {
    "position": lambda store: store.records.position(PARTITION),
    "feed": lambda store: store.records.feed(PARTITION, store.records.position(PARTITION) - 1),
    "first of the feed": lambda store: store.records.feed(PARTITION, 2, 2),
    "end of the feed": lambda store: store.records.feed(PARTITION, store.records.position(PARTITION)),
    "feed of another state": lambda store: store.records.feed(PARTITION, 9_999),
    "partitions": lambda store: store.intent.partitions(),
    "newest": lambda store: store.intent.newest(PARTITION),
    "incarnation": lambda store: [store.intent.incarnation(PARTITION, n) for n in (-1, 0, 1, 2, 5, 9, 2**50)],
    "incarnations": lambda store: store.intent.incarnations(PARTITION, 2),
    "incarnations before": lambda store: store.intent.incarnations(PARTITION, 2, 2),
    "require_kept": lambda store: list(map(partial(store.intent.require_kept, PARTITION), (0, 3, 5, 9))),
    "asset": lambda store: [store.intent.asset(key(id), n) for id in ("a", "c", "none") for n in (3, 5)],
    "last": lambda store: [store.intent.last(key(id)) for id in ("a", "c", "none")],
    "versions": lambda store: [list(store.intent.versions(key("a"), n)) for n in (3, 5)],
    "heads": lambda store: store.intent.heads(PARTITION),
    "some heads": lambda store: store.intent.heads(PARTITION, [AssetId("a"), AssetId("none")]),
    "changes": lambda store: store.intent.changes(PARTITION, 3, 5),
    "changes backwards": lambda store: store.intent.changes(PARTITION, 5, 3),
    "mentioned_by": lambda store: store.intent.mentioned_by(key("a")),
    "next_change": lambda store: [store.intent.next_change(key("a"), n) for n in (3, 4, 5)],
    "past_and_present_referrers": lambda store: store.intent.past_and_present_referrers(key("a")),
    "claimed_by": lambda store: store.intent.claimed_by(PARTITION, "file:/etc/motd & more"),
    "addon_since": lambda store: [store.intent.addon_since(key("d"), name) for name in ("t.Mark", "t.None")],
    "imported": lambda store: store.intent.imported(),
    "imported_assets": lambda store: store.intent.imported_assets("none@1"),
    "controls": lambda store: store.records.controls(PARTITION, NOW),
    "past_controls": lambda store: [
        store.records.past_controls(PARTITION, NOW + after) for after in (-1, 0, 1, 99)
    ],
    "released": lambda store: store.records.released(PARTITION),
    "released since": lambda store: store.records.released(PARTITION, 1),
    "releases": lambda store: store.records.releases(key("a")),
    "evidence": lambda store: store.records.evidence(PARTITION),
    "evidence after": lambda store: store.records.evidence(PARTITION, 1, 1),
    "open_operations": lambda store: store.records.open_operations(PARTITION),
    "operation": lambda store: store.records.operation(PARTITION, "o1"),
    "operation that is not there": lambda store: store.records.operation(PARTITION, "none"),
    "operations": lambda store: store.records.operations(PARTITION),
    "ledger": lambda store: store.records.ledger(key("a")),
    "ledgers": lambda store: store.records.ledgers(PARTITION),
    "handle": lambda store: store.records.handle(key("a")),
    "handles": lambda store: store.records.handles(PARTITION),
    "outputs_of": lambda store: store.records.outputs_of(key("a")),
    "outputs": lambda store: store.records.outputs(PARTITION),
    "standing": lambda store: store.records.standing(key("a")),
    "standings": lambda store: store.records.standings(PARTITION),
    "standing_counts": lambda store: store.records.standing_counts(PARTITION),
    "decisions": lambda store: store.records.decisions(PARTITION),
    "decisions before": lambda store: store.records.decisions(PARTITION, None, 10, 2),
    "unsettled": lambda store: store.records.unsettled(PARTITION),
    "without_turn": lambda store: store.records.without_turn(PARTITION),
    "usage": lambda store: store.records.usage(Reservation("rate/x", 3, 60.0), NOW),
    "usage that is not told by time": lambda store: store.records.usage(Reservation("rate/x", 3), NOW),
    "attempt": lambda store: store.records.attempt(PARTITION),
    "prunable": lambda store: store.records.prunable(Prune(PARTITION, keep=1, before=float("inf"))),
    "audit": lambda store: store.records.audit(PARTITION),
    "audit of a few": lambda store: store.records.audit(PARTITION, 7),
    "audit before a number": lambda store: store.records.audit(
        PARTITION, 3, store.records.audit(PARTITION)[1][0]
    ),
    "operations before one": lambda store: store.records.operations(PARTITION, before="o1"),
    "operations before one that is gone": lambda store: store.records.operations(PARTITION, before="gone"),
    **{
        f"assets {number}": lambda store, span=span: store.intent.assets(PARTITION, 5, [THING], span)  # type: ignore[misc]
        for number, span in enumerate(SPANS)
    },
    "assets of no type": lambda store: store.intent.assets(PARTITION, 5, []),
    "assets of more types than can be named": lambda store: store.intent.assets(
        PARTITION, 5, [THING, *(f"t.Type{number}" for number in range(500))]
    ),
    "assets as rows": lambda store: [row.asset() for row in store.intent.rows(PARTITION, 4)],
    # What there is not:
    "asset that is pruned": lambda store: store.intent.asset(key("a"), 1),
    "incarnation that is pruned": lambda store: store.intent.require_kept(PARTITION, 1),
    "changes since it was pruned": lambda store: store.intent.changes(PARTITION, 1, 5),
}


NOT_SENT = ("damaged_operations", "decision", "feed", "position")


def fill(store: Store) -> None:
    first = [asset("a", "1"), asset("b", "a"), *(asset(f"x/{number}") for number in range(30))]
    store.commit([publication(0, *first, mentions={"b": ["a"]}, at=NOW)])
    store.commit([publication(1, asset("a", "2"), at=NOW + 1)])
    store.commit([publication(2, asset("c", "a"), asset("b", "x/1"), mentions={"c": ["a"], "b": ["x/1"]})])
    store.commit([publication(3, asset("d", addons={"t.Mark": {"by": "me"}}), removals=(AssetId("c"),))])
    store.commit([publication(4, asset("e", "a"), mentions={"e": ["a"]}, at=NOW + 9)])
    store.commit([KeepHandle(Handle(PARTITION, AssetId("a"), THING, "vol-1 & more", NOW))])
    released(store, release("r1", "a", 5), release("r2", "b", 4))
    released(store, release("r3", "a", 5), withdrawn=["r2"])
    witnessed(store, evidence("ro1", Begun(4)), evidence("ro1", Looked({"a & b": UnitLook(True, 1.5)})))
    store.commit([KeepOutputs(Outputs(PARTITION, AssetId("a"), THING, {"id": ["vol-1 & more", None]}, NOW))])
    store.commit([TakeLease(PARTITION, "one", NOW)])
    admitted(store, request(store, "o1"))
    store.commit([finish("o1", Outcome(Result.FAILED, "no"))])
    admitted(store, request(store, "o2"))
    waiting = Condition(Status.WAITING, Reason.DEPENDENCY_DIFFERS, "a differs", "wait")
    verdicts = (
        Verdict("rate/x", allow=True),
        Verdict("depends-on", allow=False, message="a differs", wait_for=(AssetId("a"),)),
    )
    for id, condition in (("b", waiting), ("x/1", Condition(Status.STALLED, Reason.PUSH_STALLED))):
        turn = msgspec.structs.replace(decision(id), condition=condition, verdicts=verdicts)
        store.commit([RecordDecision(turn)])
    store.commit([RecordDecision(decision("x/2", Reason.AWAITING_RELEASE)), RecordDecision(decision("x/3"))])
    entries = (
        AuditEntry(at=NOW + n, actor="ana", command="pause", arguments={"n": n}, result="ok")
        for n in range(9)
    )
    store.commit([Audit(PARTITION, entry) for entry in entries])
    store.commit([Prune(PARTITION, keep=3, before=float("inf"))])
    given = [control("c1"), control("c2", at=NOW + 1)]
    store.commit([*map(SetControl, given), LiftControl(PARTITION, "c1", NOW + 1)])


def told(store: Store, ask: Ask) -> Any:
    try:
        return as_plain(ask(store))
    except LehrError as error:
        known = (kind for kind in (PrunedError, FeedGoneError) if isinstance(error, kind))
        return next(known, type(error)), vars(error)


def test_inputs_are_not_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            there = RemoteStore(server.running.url)
            with raises("HTP128", StalledError):
                there.records.decision(PARTITION, 1)
            there.close()

    asyncio.run(main())


def test_operations_are_not_said_to_be_intact_by_who_cannot_know(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            there = RemoteStore(server.running.url)
            with raises("HTP120", StalledError):
                there.records.damaged_operations(PARTITION)
            there.close()

    asyncio.run(main())


@pytest.mark.parametrize("size", [7, 10_000])
def test_everything_that_can_be_read_is_the_same(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PAGE", size)
    monkeypatch.setattr(remote_records, "_PAGE", size)

    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server.store)
            there = RemoteStore(server.running.url)
            for name, ask in ASKED.items():
                answer = await asyncio.to_thread(told, there, ask)
                assert answer == told(server.store, ask), name
            there.close()

    asyncio.run(main())


LONG = " || ".join(f"id == 'x/{number}'" for number in range(400))
PAGES: list[tuple[str | None, str | None, str, int | None]] = [
    (None, None, "latest", None),
    (None, None, "3", 5),
    ("payload.value == '1' || id == 'b'", None, "latest", None),
    ("payload.value.startsWith('')", "x/*", "latest", 12),
    ("payload.other == 1", "type=test.Thing,id=x/1*", "latest", None),
    (None, "x/1*", "latest", 3),
    (LONG, None, "latest", 20),
    ("id == 'é'", None, "latest", 20),
]


@pytest.mark.parametrize("size", [7, 10_000])
def test_listings_are_filtered_there_and_are_the_same(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PAGE", size)

    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server.store)
            there = RemoteStore(server.running.url)
            here, away = (
                Reading(store, PARTITION, NOW, lambda type: False) for store in (server.store, there)
            )
            for condition, selector, at, limit in PAGES:

                def wanted(condition: str | None = condition, selector: str | None = selector) -> Wanted:
                    return Wanted(
                        None if condition is None else Filter(condition),
                        None if selector is None else parse_selector(selector),
                    )

                cursor = ""
                while True:
                    own = page(here, wanted(), incarnation=at, cursor=cursor, limit=limit)
                    ask = partial(there.page, away, wanted(), incarnation=at, cursor=cursor, limit=limit)
                    other = await asyncio.to_thread(ask)
                    assert (own.assets, own.cursor) == (other.assets, other.cursor)
                    assert own.incarnation == other.incarnation
                    if limit is None:
                        assert own.plan == other.plan
                    cursor = own.cursor
                    if not cursor:
                        break
            there.close()

    asyncio.run(main())


def test_every_question_of_the_protocol_is_asked() -> None:
    for part in (Store.intent.fget, Store.records.fget):  # type: ignore[attr-defined]
        names = {name for name in vars(part.__globals__[part.__annotations__["return"]]) if name[0] != "_"}
        asked = {word.removeprefix("some ").split()[0] for word in ASKED}
        assert names <= asked | {"rows", *NOT_SENT}, "the last have tests of their own"


def test_more_than_is_told_at_a_time_is_not_taken_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_part, "_MOST", 2)

    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server.store)
            there = RemoteStore(server.running.url)
            two = await asyncio.to_thread(there.intent.incarnations, PARTITION, 2)
            assert [header.sequence for header in two] == [5, 4]
            with raises("HTP122", match="more than 2"):
                await asyncio.to_thread(there.intent.incarnations, PARTITION, 3)
            there.close()

    asyncio.run(main())


def test_nothing_is_written_and_what_is_not_there_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server.store)
            there = RemoteStore(server.running.url)
            with raises("HTP121", StalledError):
                there.commit([Prune(PARTITION, keep=1, before=0.0)])
            with raises("QRY113", match="two"):
                await asyncio.to_thread(there.intent.newest, Partition(OTHER))
            there.close()

    asyncio.run(main())

"""The rules of transactions: commits are there for all, whole, immediately, and whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from lehr.base.diagnostics import Position
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import ControlKind
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Change, Diff, Effects
from lehr.model.handle import Handle
from lehr.model.outputs import Outputs
from lehr.model.writes import (
    Adopt,
    KeepHandle,
    KeepOutputs,
    RecordDecision,
    SetControl,
    TakeLease,
)
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import hold, raises
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULES,
    THING,
    Subject,
    asset,
    commit,
    contents,
    control,
    decision,
    entry,
    governed,
    key,
    only,
    published,
    request,
    trace,
)

_TEXT = "größe 名前 \U0001f9ca \u2028 \\ \" ' %s {x}"


@RULES
def what_was_committed_needs_no_close(subject: Subject) -> None:
    """A process that dies closes nothing: the next one that opens the store has everything committed."""
    with subject.opened() as dead:
        governed(dead)
        commit(dead, request(dead, "o1"))
        with subject.opened() as store:
            hold(contents(store, 1) == contents(dead, 1), "an incarnation is there without a close")
            hold(len(store.records.open_operations(PARTITION)) == 1, "and so is a push that was started")


@RULES
def handles_see_each_others_commits(subject: Subject) -> None:
    """A commit of one handle is immediately readable by another open one."""
    with subject.opened() as writer:
        published(writer, 0, asset("a", "1"))
        with subject.opened() as reader:
            for sequence in (1, 2, 3):
                newest = reader.intent.newest(PARTITION)
                hold(
                    newest is not None and newest.sequence == sequence,
                    f"incarnation {sequence} is the newest",
                )
                commit(writer, RecordDecision(decision("a", f"Turn{sequence}")))
                hold(len(reader.records.decisions(PARTITION)) == sequence, "each decision is seen")
                published(writer, sequence, asset("a", str(sequence + 1)))


@RULES.opened
def answers_are_of_one_moment(store: Store) -> None:
    """A read in pieces does not mix with concurrent commits."""
    assets = [asset(f"a{number:03}", "1") for number in range(100)]
    published(store, 0, *assets)
    store.commit(
        [
            write
            for item in assets
            for write in (RecordDecision(decision(item.id)), Adopt(entry(item.id)), *_found(item.id, 0))
        ]
    )
    questions: dict[str, Callable[[], Iterator[Any]]] = {
        "assets": lambda: store.intent.assets(PARTITION, 1),
        "heads": lambda: store.intent.heads(PARTITION),
        "changes": lambda: store.intent.changes(PARTITION, 0, 1),
        "standings": lambda: store.records.standings(PARTITION),
        "ledgers": lambda: store.records.ledgers(PARTITION),
        "handles": lambda: store.records.handles(PARTITION),
        "outputs": lambda: store.records.outputs(PARTITION),
    }
    for turn, (name, ask) in enumerate(questions.items(), start=1):
        expected = list(ask())
        answer = ask()
        first = next(answer)
        _change_everything(store, assets, turn)
        hold([first, *answer] == expected, f"`{name}` answers as of when it was asked")
    hold(list(store.intent.assets(PARTITION, 1)) == assets, "and the past reads as on its first day")


@RULES
def values_come_back_as_they_were(subject: Subject) -> None:
    """Text of any script, large bodies, fractions, nothing, and values within values."""
    body = {"text": _TEXT, "large": "x" * 100_000, "none": None, "number": 0.1, "list": [{"a": [1, -1]}]}
    large = make_asset(
        AssetId("deep/er@1:2"), THING, body, {"test.Addon": {_TEXT: _TEXT}}, Position("a", 3, 7)
    )
    limit = Reservation(_TEXT, 3, 0.5)
    verdict = Verdict("c/a", False, "Why", _TEXT, _TEXT, NOW + 0.25, (AssetId("b"),), (limit,), "c1")
    said = replace(
        decision(large.id),
        verdicts=(verdict,),
        diff=Diff((Change("a/b", {"n": [1, None]}, None),), Effects(None, "1", "2", True, True)),
        operation="o1",
        evidence={"a": {"b": [0.1, _TEXT]}},
    )
    with subject.opened() as store:
        published(store, 0, large)
        commit(store, RecordDecision(said))
        commit(store, SetControl(control("c1", ControlKind.PIN, selects="a/*", expires_at=NOW + 0.125)))
    with subject.opened() as store:
        hold(contents(store, 1) == [large], "an asset comes back as it was published")
        _, found = only(store.records.decisions(PARTITION), "one decision was recorded")
        hold(found == said, f"a decision comes back as it was recorded, not {found}")
        kept = store.records.controls(PARTITION, NOW)[1]
        expected = control("c1", ControlKind.PIN, selects="a/*", expires_at=NOW + 0.125)
        hold(kept == [expected], "a control comes back as it was given")


@RULES.opened
def partitions_are_known_from_the_first_word(store: Store) -> None:
    """A lease or a control makes a partition known, before anything was published; by name, each once."""
    commit(store, SetControl(control("c1", partition=OTHER)))
    hold(store.intent.partitions() == [OTHER], "a control makes its partition known")
    commit(store, TakeLease(PARTITION, "one", NOW))
    commit(store, TakeLease(PARTITION, "one", NOW))
    hold(store.intent.partitions() == sorted([PARTITION, OTHER]), "and so does a lease")
    hold(store.intent.newest(PARTITION) is None, "that publishes nothing")


@RULES
def trouble_is_named_and_loses_nothing(subject: Subject) -> None:
    """In trouble a commit raises `TransientError` or `StalledError`; after it all is as before."""
    with subject.opened() as store:
        governed(store)
        before, assets = trace(store), contents(store, 1)
        for trouble in subject.troubles:
            with trouble():
                with raises((TransientError, StalledError), "what cannot be written raises"):
                    store.commit([RecordDecision(decision("a")), Adopt(entry("a"))])
                _reads_rightly_or_not_at_all(store, assets)
            hold(trace(store) == before, "a commit that raised has written nothing")
            hold(contents(store, 1) == assets, "nothing was lost")
        commit(store, RecordDecision(decision("a")))
        hold(store.records.standing(key("a")) is not None, "when the trouble is over, the store continues")


def _change_everything(store: Store, assets: list[Asset], turn: int) -> None:
    published(store, turn, asset(f"b{turn}", "1"), *(asset(item.id, f"{turn + 1}") for item in assets))
    store.commit([RecordDecision(decision(item.id, f"Turn{turn}")) for item in assets])
    store.commit([Adopt(entry(item.id, content=turn + 1)) for item in assets])
    store.commit([write for item in assets for write in _found(item.id, turn)])


def _found(id: str, turn: int) -> tuple[KeepHandle, KeepOutputs]:
    handle = KeepHandle(Handle(PARTITION, AssetId(id), THING, f"id {turn}", NOW))
    return handle, KeepOutputs(Outputs(PARTITION, AssetId(id), THING, {"turn": turn}, NOW))


def _reads_rightly_or_not_at_all(store: Store, assets: list[Asset]) -> None:
    try:
        found = contents(store, 1)
    except LehrError:
        return
    hold(found == assets, "what is read in trouble is what was written")

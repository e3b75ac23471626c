"""The rules of records: decisions, standings, ledger, controls, attempts, audit."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.asset import AssetId, Partition
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import AuditEntry
from lehr.model.decision import SETTLED, Condition, Status, Verdict
from lehr.model.handle import Handle
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.writes import (
    Adopt,
    Audit,
    KeepHandle,
    KeepOutputs,
    LiftControl,
    RecordAttempt,
    RecordDecision,
    Reschedule,
    SetControl,
)
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import hold
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULES,
    Subject,
    admitted,
    asset,
    commit,
    control,
    decision,
    entry,
    governed,
    key,
    only,
    published,
    request,
)

_ODD = "größe 名前 \U0001f9ca \\ \" ' %s {x}"


@RULES.opened
def an_empty_store_has_no_history(store: Store) -> None:
    """Every question has an answer before anything was written."""
    records = store.records
    hold(records.controls(PARTITION, NOW) == (0, []), "controls begin with version 0")
    hold(records.open_operations(PARTITION) == [], "no operation is open")
    hold(records.operations(PARTITION) == [], "there are no operations")
    hold(records.ledger(key("a")) is None, "the ledger is empty")
    hold(list(records.ledgers(PARTITION)) == [], "the ledger is empty")
    hold(records.handle(key("a")) is None, "there are no handles")
    hold(list(records.handles(PARTITION)) == [], "there are no handles")
    hold(records.outputs_of(key("a")) is None, "there are no outputs")
    hold(list(records.outputs(PARTITION)) == [], "there are no outputs")
    hold(records.standing(key("a")) is None, "nothing is recorded")
    hold(list(records.standings(PARTITION)) == [], "nothing is recorded")
    hold(records.decisions(PARTITION) == [], "nothing was decided")
    hold(records.attempt(PARTITION) is None, "nothing was attempted")
    hold(records.audit(PARTITION) == [], "the audit is empty")


@RULES.opened
def decisions_come_newest_first(store: Store) -> None:
    """By numbers that only grow, of all assets or of one, of this partition alone."""
    made = [decision("a", "One"), decision("b", "Two"), decision("a", "Three")]
    for item in made:
        commit(store, RecordDecision(item))
    commit(store, RecordDecision(decision("a", "Elsewhere", partition=OTHER)))
    found = store.records.decisions(PARTITION)
    hold([item for _, item in found] == made[::-1], "the newest decisions come first")
    numbers = [number for number, _ in found]
    hold(numbers == sorted(set(numbers), reverse=True), f"numbers only grow, not {numbers}")
    of_a = [item for _, item in store.records.decisions(PARTITION, AssetId("a"))]
    hold(of_a == [made[2], made[0]], "one asset's are its own")
    hold(store.records.decisions(PARTITION, limit=1) == found[:1], "no more than asked")
    for at, (number, _decision) in enumerate(found):
        older = store.records.decisions(PARTITION, before=number)
        hold(older == found[at + 1 :], "before a number are those with lower ones")
    hold(
        store.records.decisions(PARTITION, AssetId("a"), 1) == found[:1],
        "no more than asked of one asset",
    )


@RULES
def a_decision_keeps_its_inputs(subject: Subject) -> None:
    """Those of an admitted push included; whatever bytes they are, and only in its own partition."""
    inputs = bytes(range(256))
    with subject.opened() as store:
        governed(store)
        commit(store, RecordDecision(decision("a"), inputs))
        pushing = decision("b", Reason.PUSHING)
        admitted(store, request(store, "o1", "b", decision=pushing, inputs=inputs[::-1]))
        commit(store, RecordDecision(decision("c")))
    with subject.opened() as store:
        numbers = {item.asset: number for number, item in store.records.decisions(PARTITION)}
        found = {id: store.records.decision(PARTITION, number) for id, number in numbers.items()}
        expected = {"a": (decision("a"), inputs), "b": (pushing, inputs[::-1]), "c": (decision("c"), b"")}
        hold(found == expected, f"each decision has its inputs, not {found}")
        hold(
            store.records.decision(OTHER, numbers[AssetId("a")]) is None, "another partition does not have it"
        )
        hold(store.records.decision(PARTITION, 10**6) is None, "nor is there one that was never made")


@RULES.opened
def a_standing_is_as_old_as_its_verdict(store: Store) -> None:
    """`since` moves when the condition's key changes, and only then."""

    def since() -> float:
        standing = store.records.standing(key("a"))
        hold(standing is not None, "the decision is recorded")
        assert standing is not None
        hold(standing.key == standing.condition.key(), "the stored key is that of its condition")
        return standing.since

    commit(store, RecordDecision(decision("a", "One", at=NOW)))
    hold(since() == NOW, "it dates from its decision")
    commit(store, RecordDecision(decision("a", "One", at=NOW + 5, next_at=NOW + 9)))
    hold(since() == NOW, "an equal decision does not make it younger")
    standing = store.records.standing(key("a"))
    hold(standing is not None and standing.condition.next_at == NOW + 9, "but it is the condition now")
    commit(store, RecordDecision(decision("a", "Two", at=NOW + 6)))
    hold(since() == NOW + 6, "another verdict dates from its own decision")
    commit(store, RecordDecision(decision("a", "One", at=NOW + 7)))
    hold(since() == NOW + 7, "and coming back is another verdict again")


@RULES.opened
def a_touch_is_no_decision(store: Store) -> None:
    """It moves the due time of an existing record; without one it does nothing."""
    commit(store, Reschedule(key("a"), decision("a").condition, NOW))
    hold(store.records.standing(key("a")) is None, "touching nothing makes nothing")
    commit(store, RecordDecision(decision("a", "One", at=NOW)))
    condition = decision("a", "One", next_at=NOW + 30).condition
    commit(store, Reschedule(key("a"), condition, NOW))
    standing = store.records.standing(key("a"))
    hold(standing is not None and standing.condition == condition, "the condition is the new one")
    hold(standing is not None and standing.since == NOW, "it is as old as before")
    hold(len(store.records.decisions(PARTITION)) == 1, "no decision was recorded")


@RULES.opened
def standings_come_by_id(store: Store) -> None:
    """Of every asset that had a turn, in this partition."""
    for id in ("b", "a", "c"):
        commit(store, RecordDecision(decision(id)))
    commit(store, RecordDecision(decision("d", partition=OTHER)))
    found = [(item.asset, item.condition.reason) for item in store.records.standings(PARTITION)]
    hold(found == [(id, Reason.AS_INTENDED) for id in "abc"], f"standings come by id, not {found}")


@RULES.opened
def standings_are_counted_by_status_and_reason(store: Store) -> None:
    """The most frequent first; another decision about an asset replaces its earlier one."""
    waiting = Condition(Status.WAITING, Reason.FROZEN, "frozen by ana")
    for id, condition in (
        ("a", waiting),
        ("b", waiting),
        ("b", replace(waiting, message="frozen by ben")),
        ("c", waiting),
        ("c", Condition(Status.RETRYING, "OfItsOwn", '"}')),
    ):
        commit(store, RecordDecision(replace(decision(id), condition=condition)))
    commit(store, RecordDecision(decision("d", partition=OTHER)))
    found = [(item.status, item.reason, item.count) for item in store.records.standing_counts(PARTITION)]
    expected = [(Status.WAITING, Reason.FROZEN, 2), (Status.RETRYING, "OfItsOwn", 1)]
    hold(found == expected, f"statuses are counted, not {found}")


@RULES.opened
def what_is_unsettled_comes_with_what_it_waits_for(store: Store) -> None:
    """By id: every asset that is not settled, or waits for a release; of a waiting one, the last decision."""
    allowed = Verdict("rate/x", allow=True)
    waits = Verdict("depends-on", allow=False, message="b differs", wait_for=(AssetId("b"),))
    waiting = Condition(Status.WAITING, Reason.DEPENDENCY_DIFFERS, "b differs")
    settled = [Condition(status, "Because") for status in SETTLED]
    others = [Condition(status, "Because") for status in Status if status not in SETTLED]
    held = Condition(Status.CONVERGED, Reason.AWAITING_RELEASE, '"}')
    conditions = {f"{number:02}": item for number, item in enumerate((held, *settled, *others))}
    for id, condition in (
        *conditions.items(),
        ("last", Condition(Status.WAITING, "Earlier")),
        ("last", waiting),
    ):
        made = replace(decision(id), condition=condition, verdicts=(allowed, waits), awaits=(AssetId("c"),))
        commit(store, RecordDecision(made))
    commit(store, RecordDecision(replace(decision("d", partition=OTHER), condition=waiting)))
    found = list(store.records.unsettled(PARTITION))
    expected = [
        id
        for id, item in conditions.items()
        if not item.status.settled or item.reason == Reason.AWAITING_RELEASE
    ]
    ids = [item.standing.asset for item in found]
    hold(ids == [*expected, "last"], f"unsettled assets come by id, not {ids}")
    for item in found:
        hold(item.standing == store.records.standing(key(item.standing.asset)), "each with its condition")
        due = item.standing.condition.status is Status.WAITING
        hold(item.awaits == ((AssetId("c"),) if due else ()), "what it awaits is of a waiting asset")
        hold(item.verdicts == ((waits,) if due else ()), "verdicts are those that do not allow the push")


@RULES.opened
def what_had_no_turn_is_told(store: Store) -> None:
    """Assets of the newest incarnation, by id, that have no decision in this partition."""
    published(store, 0, asset("gone"))
    published(store, 1, asset("c"), asset("b"), asset("a"), removals=(AssetId("gone"),))
    commit(store, RecordDecision(decision("b")))
    commit(store, RecordDecision(decision("a", partition=OTHER)))
    found = store.records.without_turn(PARTITION)
    heads = {head.id: head for head in store.intent.heads(PARTITION)}
    hold(found == [heads[AssetId("a")], heads[AssetId("c")]], f"a and c had no turn, not {found}")


@RULES.opened
def the_ledger_keeps_the_last_word(store: Store) -> None:
    """One entry for each asset: the last applied or adopted."""
    commit(store, Adopt(entry("b")))
    commit(store, Adopt(entry("a", content=1)))
    commit(store, Adopt(entry("a", content=2, operation="o1", at=NOW + 1)))
    last = entry("a", content=2, operation="o1", at=NOW + 1)
    hold(store.records.ledger(key("a")) == last, "a later entry replaces the earlier one")
    hold(list(store.records.ledgers(PARTITION)) == [last, entry("b")], "one entry for each asset")
    hold(store.records.ledger(key("a", OTHER)) is None, "each partition has its own")


@RULES.opened
def the_last_handle_is_kept_until_it_is_forgotten(store: Store) -> None:
    """One for each asset, whatever became of the asset; one with nothing in it forgets it."""
    lost = Handle(PARTITION, AssetId("b"), "test.Thing", "", NOW, lost="o1")
    made = [lost, _handle("a", "old"), _handle("a", _ODD), _handle("c", "x")]
    for handle in (*made, _handle("a", "elsewhere", OTHER)):
        commit(store, KeepHandle(handle))
    hold(store.records.handle(key("a")) == made[2], "a later handle replaces the earlier one")
    commit(store, KeepHandle(_handle("c", "")))
    commit(store, KeepHandle(_handle("never", "")))
    hold(store.records.handle(key("c")) is None, "an empty handle forgets the one there was")
    hold(list(store.records.handles(PARTITION)) == [made[2], made[0]], "handles come by id")
    hold(store.records.handle(key("a", OTHER)) == _handle("a", "elsewhere", OTHER), "partitions share none")


def _handle(id: str, text: str, partition: Partition = PARTITION) -> Handle:
    return Handle(partition, AssetId(id), "test.Thing", text, NOW)


@RULES.opened
def the_last_outputs_are_kept_until_they_are_forgotten(store: Store) -> None:
    """Of each asset as a whole: later ones replace all earlier ones, and none forget them."""
    odd = {_ODD: [None, True, 1.5, {"a": _ODD}]}
    made = [_outputs("b", {"id": 1}), _outputs("a", {"id": 1, "arn": 2}), _outputs("a", odd)]
    for outputs in (*made, _outputs("c", {"id": 1}), _outputs("a", {"id": "elsewhere"}, OTHER)):
        commit(store, KeepOutputs(outputs))
    hold(store.records.outputs_of(key("a")) == made[2], "later outputs replace the earlier ones")
    commit(store, KeepOutputs(_outputs("c", {})))
    commit(store, KeepOutputs(_outputs("never", {})))
    hold(store.records.outputs_of(key("c")) is None, "empty outputs forget those there were")
    hold(list(store.records.outputs(PARTITION)) == [made[2], made[0]], "outputs come by id")
    other = _outputs("a", {"id": "elsewhere"}, OTHER)
    hold(store.records.outputs_of(key("a", OTHER)) == other, "partitions share none")


def _outputs(id: str, values: dict[str, Any], partition: Partition = PARTITION) -> Outputs:
    return Outputs(partition, AssetId(id), "test.Thing", values, NOW)


@RULES.opened
def controls_stand_until_lifted_or_run_out(store: Store) -> None:
    """The active ones, in the order in which they were given."""
    commit(store, SetControl(control("c1")))
    commit(store, SetControl(control("c2", expires_at=NOW + 10)))
    commit(store, SetControl(control("c0", partition=OTHER)))
    hold(_active_controls(store, NOW) == ["c1", "c2"], "both are active")
    hold(_active_controls(store, NOW + 10) == ["c1"], "one runs out at its time")
    hold(commit(store, LiftControl(PARTITION, "c1", NOW)) is True, "lifting answers that it was active")
    hold(_active_controls(store, NOW) == ["c2"], "a lifted one is not active")
    hold(commit(store, LiftControl(PARTITION, "c1", NOW)) is False, "it is lifted once")
    hold(
        commit(store, LiftControl(PARTITION, "never", NOW)) is False,
        "a control that never existed is not lifted",
    )
    hold(commit(store, LiftControl(PARTITION, "c0", NOW)) is False, "nor one of another partition")
    kept = only(store.records.controls(PARTITION, NOW)[1], "one control is active")
    hold(kept == control("c2", expires_at=NOW + 10), "a control is kept as it was given")


@RULES.opened
def the_controls_of_another_time_are_those_that_were_active_then(store: Store) -> None:
    """Also those that were lifted or have expired since, until they are pruned."""
    commit(store, SetControl(control("c1", at=NOW)))
    commit(store, SetControl(control("c2", at=NOW + 5, expires_at=NOW + 20)))
    commit(store, SetControl(control("c0", at=NOW, partition=OTHER)))
    commit(store, LiftControl(PARTITION, "c1", NOW + 10))
    found = {
        after: [item.id for item in store.records.past_controls(PARTITION, NOW + after)]
        for after in (-1, 0, 5, 9, 10, 19, 20)
    }
    both, second = ["c1", "c2"], ["c2"]
    expected: dict[int, list[str]] = {-1: [], 0: ["c1"], 5: both, 9: both, 10: second, 19: second, 20: []}
    hold(found == expected, f"a control is active from when it was set until it ends, not {found}")


@RULES
def the_version_of_controls_grows_with_every_word(subject: Subject) -> None:
    """Given or lifted: a writer that relied on an older version is refused."""
    with subject.opened() as store:
        versions = [store.records.controls(PARTITION, NOW)[0]]
        for write in (
            SetControl(control("c1")),
            SetControl(control("c2", expires_at=NOW + 10)),
            LiftControl(PARTITION, "c1", NOW),
        ):
            commit(store, write)
            versions.append(store.records.controls(PARTITION, NOW)[0])
        hold(versions == sorted(set(versions)), f"each word raises the version, not {versions}")
        hold(store.records.controls(OTHER, NOW)[0] == 0, "another partition's stays")
    with subject.opened() as store:
        hold(store.records.controls(PARTITION, NOW)[0] == versions[-1], "the version is remembered")


@RULES
def the_last_attempt_is_kept(subject: Subject) -> None:
    """With all its diagnostics."""
    problem = Diagnostic(code="GEN001", what="no", at=Position("a.yaml", 3, 7))
    with subject.opened() as store:
        for publication, problems in ((Publication.PUBLISHED, ()), (Publication.REFUSED, (problem,))):
            attempt = Attempt(
                partition=PARTITION,
                at=NOW,
                publication=publication,
                sources=(),
                sequence=1,
                diagnostics=problems,
                seconds={"generate": 0.5},
            )
            commit(store, RecordAttempt(attempt))
            hold(store.records.attempt(PARTITION) == attempt, f"the last attempt is {attempt}")
        hold(store.intent.partitions() == [PARTITION], "a partition is known from its first attempt")


@RULES.opened
def commands_are_kept_for_ever(store: Store) -> None:
    """Newest first."""
    entries = [
        AuditEntry(at=NOW, actor="ana", command=name, arguments={"n": [1, None]}, result="ok")
        for name in ("pause", "resume")
    ]
    for item in entries:
        commit(store, Audit(PARTITION, item))
    numbered = store.records.audit(PARTITION)
    hold([entry for _number, entry in numbered] == entries[::-1], "every command is kept")
    hold(store.records.audit(PARTITION, 1) == numbered[:1], "no more than asked")
    newest, _entry = numbered[0]
    hold(store.records.audit(PARTITION, 9, newest) == numbered[1:], "only those before a number")
    hold(store.records.audit(OTHER) == [], "another partition has its own")


def _active_controls(store: Store, now: float) -> list[str]:
    return [item.id for item in store.records.controls(PARTITION, now)[1]]

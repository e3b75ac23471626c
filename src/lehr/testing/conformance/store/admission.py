"""The rules of pushes: admission re-validates a turn's basis, and nothing started is forgotten."""

from __future__ import annotations

import functools
from collections.abc import Callable

from msgspec.structs import replace

from lehr.base.digest import Digest, digest
from lehr.model.asset import AssetId, Partition
from lehr.model.control import ControlKind
from lehr.model.decision import Reservation
from lehr.model.diff import Goal
from lehr.model.operation import DONE, Outcome, PushStep, Result
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Basis, LiftControl, Refused, SetControl, TakeLease, Write
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import hold
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    RULE,
    RULES,
    Rule,
    Subject,
    admitted,
    asset,
    basis,
    commit,
    control,
    decision,
    entry,
    finish,
    governed,
    key,
    only,
    operation,
    published,
    refusal,
    refused,
    request,
)

_UNKNOWN = Outcome(Result.UNKNOWN, "it hung")
_FAILED = Outcome(Result.FAILED, "no")
_STALLED = Outcome(Result.STALLED, "no such port")


@RULES
def admission_starts_an_operation(subject: Subject) -> None:
    """Operation and decision are there together, also after opening again (I12)."""
    with subject.opened() as store:
        governed(store)
        admitted(store, request(store, "o1", decision=decision("a", Reason.PUSHING)))
        hold(store.records.open_operations(PARTITION) == [operation("o1")], "the operation is open")
        _, recorded = only(store.records.decisions(PARTITION), "one decision is recorded")
        hold(recorded == decision("a", Reason.PUSHING), "its decision is recorded")
    with subject.opened() as store:
        hold(store.records.open_operations(PARTITION) == [operation("o1")], "a started push is remembered")


@RULES.governed
def an_admission_sees_the_writes_before_it(store: Store) -> None:
    """Those of its own commit included: a control, another lease."""
    writes: list[Write] = [
        request(store, "o1", "a"),
        SetControl(control("c1", selects="b")),
        request(store, "o2", "b"),
        TakeLease(PARTITION, "one", NOW),
        request(store, "o3", "c"),
    ]
    first, _control, second, epoch, third = store.commit(writes)
    hold((first, epoch) == (None, 2), f"the first is admitted, not {first}")
    refusal(second, Reason.CONTROLS_CHANGED, "the control before it refuses the second")
    refusal(third, Reason.LEASE_LOST, "and the lease before it refuses the third")


@RULES.governed
def an_overtaken_lease_admits_nothing(store: Store) -> None:
    """Another epoch than the newest, whether older or made up, is refused."""
    hold(commit(store, TakeLease(PARTITION, "one", NOW)) == 2, "the second lease has epoch 2")
    refused(store, request(store, "o1"), Reason.LEASE_LOST)
    refused(store, Admit(operation("o1", epoch=3), basis(store, "a")), Reason.LEASE_LOST)
    admitted(store, Admit(operation("o1", epoch=2), basis(store, "a")))


def _after(reason: str) -> Callable[[Callable[[Store], object]], Rule]:
    """Add the rule that a push of `a`, resting on `b`, is refused after this change."""

    def add(change: Callable[[Store], object]) -> Rule:
        @functools.wraps(change)
        def rule(store: Store) -> None:
            quiet = ((AssetId("b"), asset("b", "1").digest),)
            asked = Admit(
                operation("o1"), replace(basis(store, "a"), looked_at=quiet, others=(AssetId("b"),))
            )
            change(store)
            refused(store, asked, reason)

        return RULES.governed(rule)

    return add


@_after(Reason.GOVERNANCE_CHANGED)
def changed_governance_refuses(store: Store) -> None:
    """A check's configuration was published since."""
    published(store, 1, asset("rule", "2", type=RULE))


@_after(Reason.CONTROLS_CHANGED)
def changed_controls_refuse(store: Store) -> None:
    """A control over the asset was set since."""
    commit(store, SetControl(control("c1", selects="a")))


@_after(Reason.CONTROLS_CHANGED)
def changed_controls_of_a_dependency_refuse(store: Store) -> None:
    """A control was set since over a dependency whose pin the verdicts rest on."""
    commit(store, SetControl(control("c1", selects="b")))


@RULES.governed
def lifted_controls_refuse(store: Store) -> None:
    """A control over the asset was lifted since, and others were set and lifted in between."""
    commit(store, SetControl(control("c1", selects="a")))
    asked = request(store, "o1")
    commit(store, SetControl(control("c2", selects="z")))
    commit(store, LiftControl(PARTITION, "c1", NOW))
    commit(store, LiftControl(PARTITION, "c2", NOW))
    refused(store, asked, Reason.CONTROLS_CHANGED)


@RULES.governed
def controls_of_other_assets_do_not_refuse(store: Store) -> None:
    """A pin, an approval or a pause of one asset refuses the push of no other."""
    commit(store, SetControl(control("c1", selects="z")))
    asked = request(store, "o1")
    commit(store, SetControl(control("c2", selects="b")))
    commit(store, SetControl(control("c3", selects="b*")))
    commit(store, LiftControl(PARTITION, "c1", NOW))
    admitted(store, asked)


@_after(Reason.OVERTAKEN)
def changed_content_refuses(store: Store) -> None:
    """The asset itself was published again since."""
    published(store, 1, asset("a", "2"))


@_after(Reason.OVERTAKEN)
def vanished_content_refuses(store: Store) -> None:
    """The asset was removed from intent since."""
    published(store, 1, removals=["a"])


@_after(Reason.DEPENDENCY_CHANGED)
def changed_dependency_refuses(store: Store) -> None:
    """A dependency that had nothing to do has new content."""
    published(store, 1, asset("b", "2"))


@_after(Reason.DEPENDENCY_CHANGED)
def vanished_dependency_refuses(store: Store) -> None:
    """A dependency that had nothing to do is gone."""
    published(store, 1, removals=["b"])


@_after(Reason.DEPENDENCY_BUSY)
def pushed_dependency_refuses(store: Store) -> None:
    """A dependency that had nothing to do is being pushed."""
    admitted(store, request(store, "o0", "b"))


@RULES.governed
def unrelated_content_does_not_refuse(store: Store) -> None:
    """Facts outside of the verdicts' basis may change."""
    asked = request(store, "o1")
    published(store, 1, asset("b", "2"), asset("new", "1"), removals=["c"])
    admitted(store, asked)


@RULES.governed
def an_asset_that_left_intent_can_be_pushed(store: Store) -> None:
    """Its turndown continues, and it is still gone."""
    published(store, 1, removals=["a"])
    gone = request(store, "o1")
    hold(gone.basis.newest_digest is None, "an asset that is gone has no digest")
    admitted(store, gone)
    commit(store, finish("o1", DONE))
    gone = request(store, "o2")
    published(store, 2, asset("a", "1"))
    refused(store, gone, Reason.OVERTAKEN)


@RULES.governed
def a_newer_incarnation_refuses_a_turndown(store: Store) -> None:
    """That nothing refers to an asset is true of one incarnation; a newer one may add a reference."""
    stages = [goal for goal in Goal if goal is not Goal.PRESENT]
    asked = [_towards(request(store, f"o{goal}"), goal) for goal in stages]
    present = request(store, "present")
    published(store, 1, asset("new", "1"), mentions={"new": ["a"]})
    for turndown in asked:
        refused(store, turndown, Reason.OVERTAKEN)
    admitted(store, present)
    commit(store, finish("present", DONE))
    looked_again = _towards(request(store, "again"), Goal.ABSENT)
    newest = replace(looked_again.operation, governing=2)
    admitted(store, replace(looked_again, operation=newest))


def _towards(admit: Admit, goal: Goal) -> Admit:
    return replace(admit, operation=replace(admit.operation, goal=goal))


@RULES.governed
def at_most_one_push_per_asset(store: Store) -> None:
    """Invariant I5, also within one commit, and while the outcome is unknown."""
    first, second = store.commit([request(store, "o1"), request(store, "o2")])
    hold(first is None, f"the first of two is admitted, not {first}")
    hold(second is not None and second.reason == Reason.IN_FLIGHT, f"the second is refused, not {second}")
    refused(store, request(store, "o2"), Reason.IN_FLIGHT)
    commit(store, finish("o1", _UNKNOWN))
    refused(store, request(store, "o2"), Reason.IN_FLIGHT)
    admitted(store, request(store, "o3", "b"))
    commit(store, finish("o1", _FAILED))
    admitted(store, request(store, "o2"))


@RULES.governed
def unknown_keeps_an_operation_open(store: Store) -> None:
    """It has a result, no end, and stays open until its end is known."""
    admitted(store, request(store, "o1"))
    commit(store, finish("o1", _UNKNOWN))
    found = only(store.records.open_operations(PARTITION), "one operation is open")
    hold(found.result is Result.UNKNOWN, "its result is unknown")
    hold((found.message, found.ended_at) == ("it hung", None), "it has the reason, and has not ended")
    commit(store, finish("o1", DONE, at=NOW + 9))
    hold(store.records.open_operations(PARTITION) == [], "a resolved unknown is closed")
    ended = only(store.records.operations(PARTITION), "there is one operation")
    hold((ended.result, ended.ended_at) == (Result.DONE, NOW + 9), "with its outcome and time")


@RULES.governed
def an_operation_keeps_what_its_plugin_reported(store: Store) -> None:
    """The steps of a push are stored with its end, and those of an unknown one are not replaced later."""
    admitted(store, request(store, "o1"))
    first, second = PushStep(NOW + 0.5, "adding"), PushStep(NOW + 1.5, "removing")
    commit(store, replace(finish("o1", _UNKNOWN), steps=(first,)))
    commit(store, replace(finish("o1", DONE, at=NOW + 9), steps=(second,)))
    found = store.records.operation(PARTITION, "o1")
    hold(found is not None and found.steps == (first, second), "all steps are kept, in their order")
    hold(found == only(store.records.operations(PARTITION), "there is one operation"), "it is the same")
    hold(store.records.operation(PARTITION, "o2") is None, "there is no other one")
    hold(store.records.operation(Partition("elsewhere"), "o1") is None, "nor one of another partition")


@RULES.governed
def an_operation_ends_once(store: Store) -> None:
    """Finishing an operation that is closed, or unknown, changes nothing: not even the ledger."""
    admitted(store, request(store, "o1"))
    commit(store, finish("o1", DONE, ledger=entry("a", content=1, operation="o1")))
    before = store.records.operations(PARTITION)
    for id in ("o1", "never"):
        commit(store, finish(id, _FAILED, at=NOW + 99, ledger=entry("a", content=7, operation=id)))
    hold(store.records.operations(PARTITION) == before, "an operation that ended stays as it ended")
    hold(
        store.records.ledger(key("a")) == entry("a", content=1, operation="o1"),
        "a late end enters nothing into the ledger",
    )


@RULES.governed
def every_outcome_but_unknown_ends_it(store: Store) -> None:
    """Done, failed and stalled close an operation, with their message."""
    for number, outcome in enumerate((DONE, _FAILED, _STALLED)):
        admitted(store, request(store, f"o{number}"))
        commit(store, finish(f"o{number}", outcome))
        hold(store.records.open_operations(PARTITION) == [], f"{outcome.result} ends an operation")
    found = [(item.id, item.result, item.message) for item in store.records.operations(PARTITION)]
    expected = [
        ("o2", Result.STALLED, "no such port"),
        ("o1", Result.FAILED, "no"),
        ("o0", Result.DONE, ""),
    ]
    hold(found == expected, f"the newest come first: {expected}, not {found}")
    newest = store.records.operations(PARTITION)
    for number, item in enumerate(newest, 1):
        older = store.records.operations(PARTITION, before=item.id)
        hold(older == newest[number:], f"before {item.id} are only those that are older")
    hold(store.records.operations(PARTITION, before="none") == [], "nothing is before what is not there")
    found_for_b = store.records.operations(PARTITION, AssetId("b"))
    hold(found_for_b == [], "another asset has none")
    hold(len(store.records.operations(PARTITION, AssetId("a"), 2)) == 2, "no more than asked")


def _taken(store: Store, id: str, asset: str, *limits: Reservation, at: float = NOW) -> None:
    """Start a push, for which these limits must have room."""
    admitted(store, request(store, id, asset, at=at, reservations=limits))


def _full(store: Store, id: str, asset: str, *limits: Reservation, at: float = NOW) -> Refused:
    """Ask for a push, for which one of these limits must have no room."""
    return refused(store, request(store, id, asset, at=at, reservations=limits), Reason.LIMIT_REACHED)


@RULES.governed
def a_window_counts_starts(store: Store) -> None:
    """A start counts until its window is over, however the push ended."""
    limit = Reservation("rate", 2, 60.0)
    hold(store.records.usage(limit, NOW) == (0, None), "nothing is taken yet")
    _taken(store, "o1", "a", limit)
    _taken(store, "o2", "b", limit, at=NOW + 10)
    commit(store, finish("o1", DONE))
    hold(store.records.usage(limit, NOW + 10) == (2, NOW + 60), "both count, the oldest until NOW + 60")
    answer = _full(store, "o3", "c", limit, at=NOW + 59)
    hold(answer.until == NOW + 60, f"there is room at NOW + 60, not at {answer.until}")
    hold(store.records.usage(limit, NOW + 60) == (1, NOW + 70), "then only the second counts")
    _taken(store, "o3", "c", limit, at=NOW + 60)


@RULES.governed
def what_is_tried_again_counts_once(store: Store) -> None:
    """Where an asset counts once, pushes of it that are tried again take no more."""
    limit = Reservation("removals", 2, 60.0, once=True)
    for number, at in (("o1", NOW), ("o2", NOW + 10), ("o3", NOW + 20)):
        _taken(store, number, "a", limit, at=at)
        commit(store, finish(number, _FAILED))
    hold(store.records.usage(limit, NOW + 20) == (1, NOW + 80), "one asset counts, since its last push")
    _taken(store, "o4", "b", limit, at=NOW + 20)
    commit(store, finish("o4", _FAILED))
    _full(store, "o5", "c", limit, at=NOW + 20)
    _taken(store, "o5", "b", limit, at=NOW + 20)


@RULES.governed
def one_share_counts_against_several_limits(store: Store) -> None:
    """Limits of one key count the same starts, each over its own window."""
    soon, long = Reservation("removals", 1, 10.0), Reservation("removals", 2, 60.0)
    _taken(store, "o1", "a", soon, long)
    _full(store, "o2", "b", soon, long, at=NOW + 9)
    _taken(store, "o2", "b", soon, long, at=NOW + 10)
    hold(store.records.usage(long, NOW + 20) == (2, NOW + 60), "both still count against the longer one")
    answer = _full(store, "o3", "c", soon, long, at=NOW + 20)
    hold(answer.until == NOW + 60, f"there is room at NOW + 60, not at {answer.until}")


@RULES.governed
def a_clock_that_was_ahead_blocks_nothing(store: Store) -> None:
    """Starts from further ahead than a window come from a clock that was set back since."""
    limit = Reservation("rate", 1, 60.0)
    _taken(store, "o1", "a", limit, at=NOW + 1e6)
    hold(store.records.usage(limit, NOW) == (0, None), "what is to start in days does not count today")
    _taken(store, "o2", "b", limit, at=NOW)
    _full(store, "o3", "c", limit, at=NOW + 1)


@RULES.governed
def a_long_turn_counts_what_started_in_between(store: Store) -> None:
    """A push whose turn began more than a window before another push started counts that push."""
    limit = Reservation("rate", 1, 5.0)
    _taken(store, "o1", "a", limit, at=NOW + 30)
    _full(store, "o2", "b", limit, at=NOW)


@RULES.governed
def what_is_held_is_released_by_the_outcome(store: Store) -> None:
    """A reservation without a window counts until the push has ended; unknown is not an end."""
    limit = Reservation("slots", 1)
    _taken(store, "o1", "a", limit)
    answer = _full(store, "o2", "b", limit)
    hold(answer.until is None, "it has no time at which it is free")
    commit(store, finish("o1", _UNKNOWN))
    _full(store, "o2", "b", limit, at=NOW + 1e6)
    hold(store.records.usage(limit, NOW + 1e6) == (1, None), "an unknown outcome holds what it had")
    commit(store, finish("o1", _FAILED))
    hold(store.records.usage(limit, NOW) == (0, None), "an end releases it")
    _taken(store, "o2", "b", limit)


@RULES.governed
def all_limits_or_none(store: Store) -> None:
    """A push that finds one limit full takes nothing of the others; keys do not mix."""
    wide, tight = Reservation("wide", 5), Reservation("tight", 1)
    _taken(store, "o1", "a", wide, tight)
    _full(store, "o2", "b", wide, tight)
    hold(store.records.usage(wide, NOW) == (1, None), "a refused push takes nothing")
    _taken(store, "o2", "b", wide)
    hold(store.records.usage(wide, NOW) == (2, None), "a limit counts its own key")


@RULES.governed
def an_approval_is_of_exactly_one_diff_of_one_asset(store: Store) -> None:
    """Of another diff, another asset or everything, lifted or run out, it does not count."""
    kind = ControlKind.APPROVAL
    refused(store, request(store, "o1", approval=True), Reason.APPROVAL_MISSING)
    commit(store, SetControl(control("c1", kind, selects="a", diff="another")))
    commit(store, SetControl(control("c2", kind, selects="b", diff="d")))
    commit(store, SetControl(control("c3", kind, selects="*", diff="d")))
    commit(store, SetControl(control("c4", kind, selects="a", diff="d", expires_at=NOW)))
    commit(store, SetControl(control("c5", ControlKind.OVERRIDE, selects="a", diff="d")))
    refused(store, request(store, "o1", approval=True), Reason.APPROVAL_MISSING)
    commit(store, SetControl(control("c6", kind, selects="a", diff="d")))
    commit(store, LiftControl(PARTITION, "c6", NOW))
    refused(store, request(store, "o1", approval=True), Reason.APPROVAL_MISSING)
    commit(store, SetControl(control("c7", kind, selects="a", diff="d", expires_at=NOW + 1)))
    admitted(store, request(store, "o1", approval=True))


@RULES
def epochs_only_grow(subject: Subject) -> None:
    """Also after opening again."""
    with subject.opened() as store:
        epochs = [commit(store, TakeLease(PARTITION, "one", NOW)) for _ in range(3)]
    with subject.opened() as store:
        epochs.append(commit(store, TakeLease(PARTITION, "one", NOW)))
        hold(epochs == sorted(set(epochs)), f"each lease has a greater epoch, not {epochs}")
        before_anything = Admit(operation("o1", epoch=epochs[-1]), Basis(None, Digest(""), 0))
        admitted(store, before_anything)
        wrong = replace(before_anything, basis=Basis(digest("x"), Digest(""), 0))
        refused(store, replace(wrong, operation=operation("o2", "b", epoch=epochs[-1])), Reason.OVERTAKEN)

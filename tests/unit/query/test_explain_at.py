"""Why an asset stood as it did at another time, from what is still recorded of it."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Status, Verdict
from lehr.model.operation import Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish, LiftControl, Prune
from lehr.query.asset_rows import INERT, NO_TURN
from lehr.query.explain import explain
from lehr.query.explain_at import explain_at
from tests.codes import raises
from tests.unit.query.conftest import GOVERNING_TYPE, PARTITION

Shelf = Any


def waits_for(id: str) -> tuple[Verdict, ...]:
    return (Verdict("depends-on", allow=False, message=f"{id} differs", wait_for=(AssetId(id),)),)


def prune(shelf: Shelf, before: float, keep: int = 1) -> None:
    share: Prune | None = Prune(PARTITION, keep=keep, before=before)
    while share is not None:
        [pruned] = shelf.store.commit([share])
        share = pruned.rest


def test_the_decision_before_a_time_says_what_was_so(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen")
    waiting = shelf.now
    shelf.tick()
    shelf.decide("a", Status.CONVERGED, Reason.AS_INTENDED, "done")
    for at, status, since in ((waiting, "Waiting", waiting), (shelf.now - 1, "Waiting", waiting)):
        past, found = explain_at(shelf.reading(), "a", at)
        assert (found.row.status, found.row.since, past.at) == (status, since, at)
        assert not past.misses(found.row.since)
    _past, found = explain_at(shelf.reading(), "a", shelf.now)
    assert found.row.status == "Converged"


def test_at_the_time_of_asking_the_answer_is_that_of_now(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"), shelf.asset("c"))
    shelf.push("a", 1, 1)
    shelf.decide("a", Status.WAITING, Reason.DEPENDENCY_DIFFERS, "b differs", waits_for("b"))
    shelf.decide("b", Status.WAITING, Reason.DEPENDENCY_DIFFERS, "c differs", waits_for("c"))
    shelf.decide("c", Status.STALLED)
    shelf.say(ControlKind.FREEZE, "a")
    shelf.say(ControlKind.PAUSE, "b")
    for id in "abc":
        now = explain(shelf.reading(), id)
        _past, found = explain_at(shelf.reading(), id, shelf.now)
        for field in ("row", "verdicts", "diff", "chain", "controls", "operation", "story", "ledger"):
            assert getattr(found, field) == getattr(now, field), (id, field)


def test_who_was_waited_for_is_followed_as_it_was(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    shelf.decide("b", Status.STALLED, Reason.PUSH_STALLED, "disk full")
    shelf.decide("a", Status.WAITING, Reason.DEPENDENCY_DIFFERS, "b differs", waits_for("b"))
    at = shelf.now
    shelf.decide("b", Status.CONVERGED)
    shelf.decide("a", Status.CONVERGED)
    _past, found = explain_at(shelf.reading(), "a", at)
    assert [(link.row.id, link.row.status, link.row.message) for link in found.chain] == [
        ("b", "Stalled", "disk full")
    ]


def test_controls_are_those_that_were_active_then(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.decide("a", Status.WAITING)
    before = shelf.now
    shelf.say(ControlKind.FREEZE, "a")
    frozen = shelf.now
    shelf.say(ControlKind.PAUSE, "b")
    shelf.store.commit([LiftControl(PARTITION, f"freeze{frozen:.0f}", shelf.tick())])
    lifted = shelf.now
    kinds = {
        at: [str(control.kind) for control in explain_at(shelf.reading(), "a", at)[1].controls]
        for at in (before, frozen, lifted - 0.5, lifted)
    }
    assert kinds == {before: [], frozen: ["freeze"], lifted - 0.5: ["freeze"], lifted: []}


def test_a_push_that_has_ended_since_was_under_way(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    operation = shelf.push("a", 1, 1, None)
    at = shelf.now
    shelf.store.commit([Finish(PARTITION, operation.id, Outcome(Result.FAILED, "no"), shelf.tick())])
    past, found = explain_at(shelf.reading(), "a", at)
    assert found.operation is not None
    assert (found.operation.id, found.operation.result, found.operation.message) == (operation.id, None, "")
    assert found.row.status == "Pushing"
    _past, later = explain_at(shelf.reading(), "a", shelf.now)
    assert later.operation is not None
    assert later.operation.result is Result.FAILED
    assert past.incarnation == f"{PARTITION}@1"


def test_what_was_applied_then_is_that_of_the_last_push(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    first = shelf.push("a", 1, 1)
    shelf.decide("a", Status.CONVERGED)
    at = shelf.now
    shelf.push("a", 2, 1)
    _past, found = explain_at(shelf.reading(), "a", at)
    assert found.ledger is not None
    assert (found.ledger.operation, found.ledger.content) == (first.id, 1)


def test_more_than_a_page_of_decisions_is_searched(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lehr.query.explain_at._FIRST_ROWS", 1)
    shelf.publish(shelf.asset("a"))
    for number in range(30):
        shelf.decide("a", Status.WAITING, message=f"turn {number}")
    at = shelf.now - 27
    _past, found = explain_at(shelf.reading(), "a", at)
    assert found.row.message == "turn 2"
    assert [item.decision.condition.message for item in found.story] == ["turn 2", "turn 1", "turn 0"]


def test_an_asset_without_a_turn_had_none(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("limit", type=GOVERNING_TYPE))
    at = shelf.now
    shelf.decide("a", Status.CONVERGED)
    assert explain_at(shelf.reading(), "a", at)[1].row.status == NO_TURN
    assert explain_at(shelf.reading(), "limit", at)[1].row.status == INERT


def test_an_asset_that_had_left_intent_is_departed(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    shelf.decide("a", Status.CONVERGED)
    there = shelf.now
    shelf.publish(shelf.asset("b"))
    gone = shelf.now
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    assert not explain_at(shelf.reading(), "a", there)[1].row.departed
    past, found = explain_at(shelf.reading(), "a", gone)
    assert (past.incarnation, found.row.departed) == (f"{PARTITION}@2", True)


@pytest.mark.parametrize(
    ("id", "at", "code"),
    [
        ("a", 2_000.0, "QRY127"),  # in the future
        ("none", 1_001.0, "QRY121"),
        ("a", 0.0, "QRY129"),  # before anything was published
        ("b", 1_001.0, "QRY129"),  # which came with the second incarnation
    ],
)
def test_what_was_not_there_cannot_be_explained(shelf: Shelf, id: str, at: float, code: str) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    with raises(code):
        explain_at(shelf.reading(), id, at)


def test_history_that_was_pruned_is_not_made_up(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.decide("a", Status.WAITING)
    waiting = shelf.now
    shelf.publish(shelf.asset("a", "2"))
    shelf.decide("a", Status.CONVERGED)
    kept = shelf.now
    shelf.publish(shelf.asset("a", "3"))
    prune(shelf, kept)
    with raises("QRY128", match="a"):
        explain_at(shelf.reading(), "a", waiting)
    with raises("QRY128"):
        explain_at(shelf.reading(), "a", kept - 0.5)  # it still waited, and that is gone
    past, found = explain_at(shelf.reading(), "a", kept)
    assert found.row.status == "Converged"
    assert past.history_since is not None
    assert waiting < past.history_since <= kept
    assert not past.misses(found.row.since)


def test_an_asset_that_never_had_a_turn_had_none_whatever_was_pruned(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.publish(shelf.asset("a", "2"))
    prune(shelf, shelf.now + 1)
    past, found = explain_at(shelf.reading(), "a", shelf.now)
    assert found.row.status == NO_TURN
    assert past.history_since is not None


def test_a_decision_that_outlived_others_comes_with_a_warning(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.say(ControlKind.FREEZE, "a", expires_at=shelf.now + 3)
    shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen")
    waiting = shelf.now
    shelf.tick()
    shelf.publish(shelf.asset("a", "2"))
    shelf.publish(shelf.asset("a", "3"))
    prune(shelf, shelf.now)
    past, found = explain_at(shelf.reading(), "a", waiting)
    assert found.row.status == "Waiting"
    assert not found.controls, "it was pruned"
    assert past.misses(found.row.since)
    assert (past.incarnation, past.intent_is_kept) == (f"{PARTITION}@1", False)
    assert past.history_since is not None
    assert waiting < past.history_since <= shelf.now

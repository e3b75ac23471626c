"""Why an asset stands as it does."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Status, Verdict
from lehr.model.reason import Reason
from lehr.query.asset_rows import INERT, NO_TURN
from lehr.query.explain import explain, headline
from tests.codes import raises

Shelf = Any


def waits_for(*ids: str) -> tuple[Verdict, ...]:
    found = Verdict("depends-on", allow=False, message="not yet", wait_for=tuple(AssetId(id) for id in ids))
    return (Verdict("freeze", allow=True), found)


def test_what_blocks_comes_before_what_allows(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.decide("a", Status.WAITING, Reason.DEPENDENCY_DIFFERS, "b differs", waits_for("b"), next_at=2000.0)
    found = explain(shelf.reading(), "a")
    assert [verdict.check for verdict in found.verdicts] == ["depends-on", "freeze"]
    assert found.row.next_at == 2000.0
    assert found.row.since == shelf.now
    assert headline(found) == "a is waiting: b differs"


def test_who_is_waited_for_is_followed_to_its_end(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id) for id in "abc"))
    shelf.decide("a", Status.WAITING, verdicts=waits_for("b"))
    shelf.decide("b", Status.WAITING, verdicts=waits_for("c"))
    shelf.decide("c", Status.STALLED)
    chain = explain(shelf.reading(), "a").chain
    assert [(link.row.id, link.row.status, link.cycle) for link in chain] == [
        ("b", Status.WAITING, False),
        ("c", Status.STALLED, False),
    ]


def test_assets_that_wait_for_each_other_are_told_as_a_cycle(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id) for id in "ab"))
    shelf.decide("a", Status.WAITING, verdicts=waits_for("b"))
    shelf.decide("b", Status.WAITING, verdicts=waits_for("a"))
    chain = explain(shelf.reading(), "a").chain
    assert [(link.row.id, link.cycle) for link in chain] == [("b", False), ("a", True)]


def test_what_a_settled_asset_once_waited_for_is_not_told(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id) for id in "ab"))
    shelf.decide("a", Status.WAITING, verdicts=waits_for("b"))
    shelf.decide("a", Status.CONVERGED, verdicts=waits_for("b"))
    assert not explain(shelf.reading(), "a").chain


def test_the_story_goes_back_to_what_came_before_the_last_push(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.push("a", 1, 1)
    shelf.decide("a", Status.CONVERGED)
    shelf.decide("a", Status.WAITING)
    shelf.push("a", 2, 1)
    shelf.decide("a", Status.CONVERGED)
    found = explain(shelf.reading(), "a")
    assert [item.decision.condition.status for item in found.story] == [
        Status.CONVERGED,
        Status.PUSHING,
        Status.WAITING,
    ]
    assert found.operation is not None
    assert found.ledger is not None
    assert found.ledger.operation == found.operation.id == "op0002"


def test_controls_that_stand_over_the_asset_are_told_and_no_others(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.say(ControlKind.FREEZE, "all")
    shelf.say(ControlKind.PIN, "b", incarnation=1)
    shelf.say(ControlKind.PAUSE, "a", expires_at=shelf.now + 2)
    shelf.tick()
    shelf.tick()
    found = explain(shelf.reading(), "a")
    assert [control.kind for control in found.controls] == [ControlKind.FREEZE]


@pytest.mark.parametrize(("type", "status"), [("test.Limit", INERT), ("test.Thing", NO_TURN)])
def test_an_asset_without_a_turn_says_whether_it_will_have_one(shelf: Shelf, type: str, status: str) -> None:
    shelf.publish(shelf.asset("a", type=type))
    found = explain(shelf.reading(), "a")
    assert found.row.status == status
    assert headline(found).startswith("a ")


def test_an_asset_that_was_removed_can_still_be_asked_about(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    shelf.publish(shelf.asset("b"))
    shelf.decide("a", Status.TURNED_DOWN, Reason.REMOVED, "removed from production")
    assert headline(explain(shelf.reading(), "a")) == "a is turned down: removed from production"


def test_an_asset_that_never_was_is_an_error(shelf: Shelf) -> None:
    with raises("QRY121", match="no asset a"):
        explain(shelf.reading(), "a")

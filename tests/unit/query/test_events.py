"""Events show what the feed refers to, in its order."""

from __future__ import annotations

from typing import Any

from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.feed import ChangeKind
from lehr.model.operation import Result
from lehr.model.writes import LiftControl, Prune
from lehr.query.events import Event, events, position_before

Shelf = Any


def all_events(shelf: Shelf, after: int = 0, asset: str | None = None) -> list[Event]:
    reading = shelf.reading()
    entries = reading.records.feed(reading.partition, after, 1000)
    return events(reading, entries, None if asset is None else AssetId(asset))


def test_each_change_is_an_event_with_its_record(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    shelf.push("a", 1, 1, Result.FAILED)
    shelf.decide("b", Status.WAITING)
    shelf.say(ControlKind.FREEZE, "a")
    found = all_events(shelf)
    assert [(event.kind, event.asset, event.message) for event in found if event.asset != "a"] == [
        (ChangeKind.INCARNATION, "", "shop@1 published: 2 added, 0 changed, 0 removed"),
        (ChangeKind.DECISION, "b", "Waiting (Because): said so"),
        (ChangeKind.CONTROL_SET, "", "freeze set on id=a by ana: because"),
    ]
    pushed = [event.message for event in found if event.record == "op0001"]
    assert pushed == ["push op0001 of shop@1 started (forward)", "push op0001: failed"]
    assert [event.position for event in found] == sorted(event.position for event in found)


def test_events_of_one_asset_are_its_own(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    shelf.decide("a", Status.WAITING)
    shelf.decide("b", Status.WAITING)
    assert {event.asset for event in all_events(shelf, asset="b")} == {"b"}


def test_a_control_that_was_lifted_is_still_an_event(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.say(ControlKind.PAUSE, "a")
    reading = shelf.reading()
    [control] = reading.records.controls(reading.partition, reading.now)[1]
    shelf.store.commit([LiftControl(reading.partition, control.id, shelf.tick())])
    assert [event.message for event in all_events(shelf)][-2:] == [
        f"control {control.id}, which has ended",
        f"control {control.id} lifted",
    ]


def test_a_time_selects_the_events_since(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    for number in range(5):
        shelf.decide("a", Status.WAITING, message=f"turn {number}")
    moment = shelf.now
    shelf.decide("a", Status.WAITING, message="late")
    shelf.decide("a", Status.CONVERGED, message="later")
    found = all_events(shelf, position_before(shelf.reading(), moment))
    assert [event.message.rpartition(": ")[2] for event in found] == ["turn 4", "late", "later"]
    assert position_before(shelf.reading(), 0.0) == 0
    assert all_events(shelf, position_before(shelf.reading(), shelf.now + 1)) == []


def test_what_was_pruned_is_left_out(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    for number in range(5):
        shelf.decide("a", Status.WAITING, message=f"turn {number}")
    shelf.publish(shelf.asset("a", "new"))
    reading = shelf.reading()
    write: Prune | None = Prune(reading.partition, 1, shelf.now + 1)
    while write is not None:
        [share] = shelf.store.commit([write])
        write = share.rest
    after = position_before(shelf.reading(), 0.0)
    assert after > 0
    assert all_events(shelf, after)

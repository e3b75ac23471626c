"""How assets stand, and which there are."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from lehr.base.errors import LehrError
from lehr.model.asset import Partition
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.operation import Result
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
from lehr.query.asset_rows import INERT, NO_TURN, known_asset, orphans, rows, selected
from lehr.query.overview import survey
from lehr.query.partition_view import NoIncarnationError, choose_partition
from lehr.query.wait_conditions import not_at, not_converged
from tests.codes import raises

Shelf = Any
LIMIT = "test.Limit"


def statuses(shelf: Shelf, selector: str | None = None) -> dict[str, str]:
    chosen = None if selector is None else parse_selector(selector)
    return {row.id: row.status for row in rows(shelf.reading(), chosen)}


def test_every_asset_of_the_newest_incarnation_has_a_row(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"), shelf.asset("limit", type=LIMIT))
    shelf.decide("a", Status.WAITING)
    assert statuses(shelf) == {"a": Status.WAITING, "b": NO_TURN, "limit": INERT}


def test_an_asset_that_left_intent_has_a_row_as_long_as_work_remains(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id) for id in ("going", "gone", "kept", "let-go")))
    shelf.publish(shelf.asset("kept"))
    shelf.decide("going", Status.WAITING)
    shelf.decide("gone", Status.TURNED_DOWN)
    shelf.decide("let-go", Status.ORPHANED)
    assert statuses(shelf) == {"kept": NO_TURN, "going": Status.WAITING}
    assert [row.id for row in orphans(shelf.reading())] == ["let-go"]


def test_an_orphan_that_is_declared_again_is_none(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    shelf.decide("a", Status.ORPHANED)
    assert not orphans(shelf.reading())


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("all", {"web-1", "web-2", "db"}),
        ("web-*", {"web-1", "web-2"}),
        ("type=test.Other", {"db"}),
        ("label:team=web", {"web-2"}),
        ("web-1,db", {"web-1", "db"}),
    ],
)
def test_a_selector_chooses_rows(shelf: Shelf, selector: str, expected: set[str]) -> None:
    labelled = shelf.asset("web-2", Labels={"labels": {"team": "web"}})
    shelf.publish(shelf.asset("web-1"), labelled, shelf.asset("db", type="test.Other"))
    assert set(statuses(shelf, selector)) == expected


def test_selecting_nothing_is_an_error_and_not_everything(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    with raises("QRY120", match="id=x"):
        selected(shelf.reading(), parse_selector("x"))


def test_an_unknown_asset_is_told_with_one_that_is_written_alike(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("web/process"))
    with raises("QRY121") as caught:
        known_asset(shelf.reading(), "web/proces")
    assert caught.value.fix == "did you mean web/process?"


def test_unsettled_assets_are_grouped_by_what_holds_them_those_that_stand_longest_first(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(f"a{number}") for number in range(9)))
    for number in (5, 4, 3):
        shelf.decide(f"a{number}", Status.WAITING, Reason.FROZEN, next_at=2000.0 + number)
    shelf.decide("a0", Status.STALLED, Reason.PUSH_STALLED)
    shelf.decide("a1", Status.CONVERGED)
    found = survey(shelf.reading(), most=2)
    assert [(group.status, group.reason, group.count) for group in found.groups] == [
        (NO_TURN, "", 4),
        (Status.WAITING, Reason.FROZEN, 3),
        (Status.STALLED, Reason.PUSH_STALLED, 1),
    ]
    frozen = found.groups[1]
    assert [row.id for row in frozen.rows] == ["a5", "a4"]
    assert frozen.next_at == 2003.0
    assert found.unsettled == 8
    assert found.counts == {NO_TURN: 4, Status.WAITING: 3, Status.STALLED: 1, Status.CONVERGED: 1}


def test_converged_means_as_the_newest_incarnation_says_and_not_as_one_before(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", "1"), shelf.asset("b", "1"), shelf.asset("limit", type=LIMIT))
    for id in ("a", "b"):
        shelf.adopt(id, 1)
        shelf.decide(id, Status.CONVERGED)
    reading = shelf.reading()
    assert not not_converged(reading, rows(reading))
    shelf.publish(shelf.asset("a", "2"), shelf.asset("b", "1"), shelf.asset("limit", type=LIMIT))
    assert [row.id for row in not_converged(reading, rows(reading))] == ["a"]
    shelf.push("a", 1, 2)
    assert [row.id for row in not_converged(reading, rows(reading))] == ["a"]  # nobody has looked again
    shelf.decide("a", Status.CONVERGED)
    assert not not_converged(reading, rows(reading))


def test_content_that_came_back_to_what_was_applied_is_converged(shelf: Shelf) -> None:
    for value in ("1", "2", "1"):
        shelf.publish(shelf.asset("a", value))
    shelf.adopt("a", 1)
    shelf.decide("a", Status.CONVERGED)
    reading = shelf.reading()
    assert not not_converged(reading, rows(reading))


def test_a_pin_counts_as_soon_as_it_stands_and_not_any_more_once_it_is_lifted(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", "1"))
    shelf.publish(shelf.asset("a", "2"))
    shelf.push("a", 1, 2)
    shelf.decide("a", Status.CONVERGED)
    assert not not_converged(shelf.reading(), rows(shelf.reading()))
    shelf.say(ControlKind.PIN, "a", expires_at=shelf.now + 100, incarnation=1)
    assert not_converged(shelf.reading(), rows(shelf.reading()))
    shelf.push("a", 2, 1)
    shelf.decide("a", Status.CONVERGED, Reason.PINNED)
    assert not not_converged(shelf.reading(), rows(shelf.reading()))
    shelf.now += 200
    assert not_converged(shelf.reading(), rows(shelf.reading()))


def test_waiting_for_a_status_leaves_out_what_has_no_production(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"), shelf.asset("limit", type=LIMIT))
    shelf.decide("a", Status.WAITING)
    assert [row.id for row in not_at(rows(shelf.reading()), Status.WAITING)] == ["b"]


def test_pushes_under_way_are_part_of_the_overview(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"), shelf.asset("b"))
    shelf.push("a", 1, 1)
    shelf.push("b", 2, 1, result=None)
    shelf.push("a", 3, 1, result=Result.UNKNOWN)
    assert [operation.asset for operation in survey(shelf.reading()).operations] == ["a", "b"]


def test_incarnations_have_four_names(shelf: Shelf) -> None:
    for value in ("1", "2", "3"):
        shelf.publish(shelf.asset("a", value))
    reading = shelf.reading()
    found = [reading.incarnation(text).sequence for text in ("latest", "previous", "1", "shop@2")]
    assert found == [3, 2, 1, 2]
    for text in ("0", "4", "other@1", "newest", "-1", "9" * 30, "\u0663"):
        with pytest.raises(LehrError):
            reading.incarnation(text)


def test_a_time_names_the_newest_incarnation_that_was_there_then(shelf: Shelf) -> None:
    first, second = (shelf.publish(shelf.asset("a", value)).created_at for value in ("1", "2"))
    reading = shelf.reading()
    for moment, sequence in ((first, 1), ((first + second) / 2, 1), (second, 2), (second + 1e6, 2)):
        in_utc = dt.datetime.fromtimestamp(moment, tz=dt.UTC)
        for text in (
            in_utc.isoformat(),
            in_utc.replace(tzinfo=None).isoformat(),
            f"shop@{in_utc.isoformat()}",
        ):
            assert reading.incarnation(text).sequence == sequence
    with raises("QRY112", NoIncarnationError):
        reading.incarnation("1969-12-31")


def test_the_partition_need_be_named_only_where_there_are_several() -> None:
    one, other = Partition("one"), Partition("other")
    assert choose_partition([one], None) == one
    assert choose_partition([one, other], "other") == other
    for known, wanted in (([one, other], None), ([], None), ([one], "other")):
        with pytest.raises(LehrError):
            choose_partition(known, wanted)

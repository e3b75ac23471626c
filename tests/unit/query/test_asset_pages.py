"""Listings: pages are of one incarnation, cursors say where they go on, fields are picked."""

from __future__ import annotations

import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.query.asset_pages import Wanted, page, parse_cursor, parse_fields, projected
from lehr.query.filters import Filter
from tests.codes import raises
from tests.unit.query.conftest import Shelf

IDS = ["a", "b", "c", "d", "e"]


def ids(found: object) -> list[str]:
    return [asset.id for asset in found]  # type: ignore[attr-defined]


def test_all_pages_are_of_one_incarnation_whatever_is_published_meanwhile(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id, "1") for id in IDS))
    reading = shelf.reading()
    first = page(reading, Wanted(), limit=2)
    shelf.publish(*(shelf.asset(id, "2") for id in ["0", "cc", "d"]))
    second = page(reading, Wanted(), cursor=first.cursor, limit=2)
    third = page(reading, Wanted(), cursor=second.cursor, limit=2)
    assert [ids(item.assets) for item in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert {item.incarnation.sequence for item in (first, second, third)} == {1}
    assert third.cursor == ""


def test_the_last_page_is_known_to_be_the_last(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id) for id in IDS))
    assert page(shelf.reading(), Wanted(), limit=5).cursor == ""
    assert page(shelf.reading(), Wanted(), limit=4).cursor != ""


def test_a_page_that_has_taken_long_enough_goes_on_behind_what_was_looked_at(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lehr.query.asset_pages._AT_ONCE", 2)
    shelf.publish(*(shelf.asset(id) for id in IDS))
    wanted = Wanted(Filter("id == 'e' || payload.value == 'x'"))
    first = page(shelf.reading(), wanted, enough=lambda: True)
    assert (ids(first.assets), parse_cursor(first.cursor).last) == ([], "b")
    second = page(shelf.reading(), wanted, cursor=first.cursor)
    assert (ids(second.assets), second.cursor) == (["e"], "")


def test_the_clock_is_looked_at_soon_for_a_filter_may_be_slow(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(f"a{number:02}") for number in range(60)))
    wanted = Wanted(Filter("payload.value == 'x'"))
    found = page(shelf.reading(), wanted, enough=lambda: True)
    assert found.plan is not None
    assert (found.plan.looked_at, parse_cursor(found.cursor).last) == (16, "a15")


def test_a_cursor_of_another_state_is_refused(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(id) for id in IDS))
    cursor = parse_cursor(page(shelf.reading(), Wanted(), limit=1).cursor)
    other = type(cursor)(cursor.sequence, "beef", cursor.last).text()
    with raises("QRY105"):
        page(shelf.reading(), Wanted(), cursor=other)


@pytest.mark.parametrize("text", ["x", "é", "bm8", "W10", "WzEsMiwzXQ"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with raises("QRY106"):
        parse_cursor(text)


def test_a_filter_is_looked_up_by_index_and_that_is_told(shelf: Shelf) -> None:
    made = [shelf.asset("a", "1", type="test.Other"), shelf.asset("a/b"), shelf.asset("b", "1")]
    shelf.publish(*made)
    found = page(shelf.reading(), Wanted(Filter("type == 'test.Thing' && payload.value == '1'")))
    assert ids(found.assets) == ["b"]
    assert found.plan is not None
    assert (found.plan.looked_at, found.plan.matched) == (2, 1)
    assert found.plan.by_index == ("type is one of test.Thing",)


def test_types_and_a_filter_are_looked_up_together(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", type="test.Other"), shelf.asset("b"))
    wanted = Wanted(Filter("type in ['test.Other', 'x']"), types=("test.Other", "test.Thing"))
    assert ids(page(shelf.reading(), wanted).assets) == ["a"]


@pytest.mark.parametrize("text", ["id == '\\u0000'", "id.startsWith('\\u0000')", "type == '\\u0000'"])
def test_what_no_text_in_a_database_can_be_is_found_nowhere(shelf: Shelf, text: str) -> None:
    shelf.publish(shelf.asset("a"))
    assert ids(page(shelf.reading(), Wanted(Filter(text))).assets) == []


def test_fields_are_picked_also_behind_names_with_dots() -> None:
    addons = {"lehr.Labels": {"labels": {"team": "x"}, "more": 1}, "lehr.Other": {}}
    asset = make_asset(AssetId("a"), "t", {"replicas": 3, "deep": {"a": 1, "b": 2}}, addons)
    document = projected(asset, parse_fields("payload.replicas,payload.deep.b,addons.lehr.Labels.labels"))
    assert document == {
        "id": "a",
        "type": "t",
        "payload": {"replicas": 3, "deep": {"b": 2}},
        "addons": {"lehr.Labels": {"labels": {"team": "x"}}},
    }
    assert projected(asset, parse_fields("payload.none,addons.lehr.None.x")) == {"id": "a", "type": "t"}
    both = projected(asset, parse_fields("payload,payload.replicas"))
    assert both["payload"] == {"replicas": 3, "deep": {"a": 1, "b": 2}}


@pytest.mark.parametrize("text", ["", "payload.", "nothing", "payload..a"])
def test_what_names_no_field_is_refused(text: str) -> None:
    with raises("QRY107"):
        parse_fields(text)


def test_all_that_name_no_field_are_told_at_once() -> None:
    with raises("QRY107", match=r"'nothing', 'payload\.'"):
        parse_fields("nothing,id,payload.")

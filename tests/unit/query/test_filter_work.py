"""What a filter takes is counted over all assets of a page, and ends the page at its cursor."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.query.asset_pages import Sieve, Wanted, page
from lehr.query.filters import Filter

Shelf = Any

MACRO = "[1,2,3,4,5,6,7,8,9].exists(x, [1,2,3,4,5,6,7,8,9].exists(y, x * y == 1000)) || payload.value == '7'"


def test_macros_and_the_library_make_a_filter_heavy() -> None:
    assert not Filter("payload.value == '7' && type == 'x'").heavy
    assert Filter(MACRO).heavy
    assert Filter("payload.value.matches('a*')").heavy
    assert Filter(" || ".join(f"id == '{number}'" for number in range(60))).heavy


def test_the_same_assets_take_the_same_work(shelf: Shelf) -> None:
    assets = [shelf.asset(f"a{number}", str(number)) for number in range(3)]
    [first, second] = (Filter(MACRO).sift(assets, 10**9, lambda: False) for _ in range(2))
    assert first == second
    assert first.work > 3 * 90  # items that its macros look at
    assert Filter("id == 'x'").sift(assets, 10**9, lambda: False).work < 3 * 10


@pytest.mark.parametrize(
    ("most_work", "looked_at"), [(0, 1), (1, 1), (3, 1), (4, 2), (6, 2), (9, 3), (99, 3)]
)
def test_a_filter_without_macros_ends_with_the_asset_that_reaches_the_limit(
    shelf: Shelf, most_work: int, looked_at: int
) -> None:
    assets = [shelf.asset(f"a{number}", str(number)) for number in range(3)]
    found = Filter("id == 'a1'").sift(assets, most_work, lambda: True)
    assert (found.looked_at, found.work) == (looked_at, 3 * looked_at)
    assert found.matched == ((1,) if looked_at > 1 else ())


def listed(shelf: Shelf, most_work: int, **more: Any) -> tuple[list[str], int]:
    """What a listing has, over all its pages, and how many pages that were."""
    found: list[str] = []
    cursor, pages = "", 0
    while cursor or not pages:
        got = page(shelf.reading(), Wanted(Filter(MACRO)), cursor=cursor, most_work=most_work, **more)
        found += [asset.id for asset in got.assets]
        cursor, pages = got.cursor, pages + 1
    return found, pages


def test_a_page_whose_filter_takes_too_much_ends_at_its_cursor_even_with_nothing_found(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(f"a{number:02}", str(number)) for number in range(20)))
    assert listed(shelf, 10**9) == (["a07"], 1)
    found, pages = listed(shelf, 1)
    assert found == ["a07"]
    assert pages == 20
    first = page(shelf.reading(), Wanted(Filter(MACRO)), most_work=1)
    assert (first.assets, bool(first.cursor)) == ((), True)
    assert first.plan is not None
    assert first.plan.looked_at == 1


def test_time_is_looked_at_after_each_asset_of_a_heavy_filter(shelf: Shelf) -> None:
    shelf.publish(*(shelf.asset(f"a{number:02}", str(number)) for number in range(20)))
    assert listed(shelf, 10**9, enough=lambda: True) == (["a07"], 20)
    nowhere: Sieve | None = None
    assert listed(shelf, 10**9, sieve=nowhere) == (["a07"], 1)

"""Filters: what is looked up in indexes, what is decoded, what is said when there is no answer."""

from __future__ import annotations

import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.query.filters import ANYWHERE, Bounds, Filter
from tests.codes import raises

WEB = make_asset(AssetId("shop/web"), "lehr.Process", {"replicas": 3, "command": ["web"]}, {})
MOTD = make_asset(AssetId("motd"), "lehr.File", {"path": "etc/motd"}, {})


def among(*values: str) -> frozenset[str]:
    return frozenset(values)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("type == 'a'", Bounds(types=among("a"))),
        ("'a' == type && payload.x > 1", Bounds(types=among("a"))),
        ("type in ['a', 'b'] && type != 'b'", Bounds(types=among("a", "b"))),
        ("type == 'a' && type == 'b'", Bounds(types=among())),
        ("id == 'a' || id == 'b'", Bounds(ids=among("a", "b"))),
        ("id.startsWith('a/') && type == 'x'", Bounds(types=among("x"), prefix="a/")),
        ("id.startsWith('a/') && id.startsWith('a/b')", Bounds(prefix="a/b")),
        ("id.startsWith('a') && id.startsWith('b')", Bounds(ids=among())),
        ("type == 'a' || payload.x == 1", ANYWHERE),
        ("!(type == 'a')", ANYWHERE),
        ("type == payload.type", ANYWHERE),
        ("id.matches('a.*')", ANYWHERE),
    ],
)
def test_what_a_filter_says_of_ids_and_types_bounds_where_it_looks(text: str, bounds: Bounds) -> None:
    assert Filter(text).bounds == bounds


def test_matching_assets_are_found() -> None:
    assert list(Filter("payload.replicas >= 3").of([WEB, MOTD])) == [WEB]
    assert list(Filter("type == 'lehr.File'").of([WEB, MOTD])) == [MOTD]


def test_where_there_is_no_answer_nothing_matches_and_that_is_told() -> None:
    found = Filter("payload.replicas >= 3")
    assert list(found.of([WEB, MOTD, MOTD])) == [WEB]
    assert found.unanswered == ("motd: no such key: replicas", 2)


def test_what_cannot_be_understood_says_where_and_what_would_be() -> None:
    with raises("QRY103") as caught:
        Filter("type = 'a'")
    assert "1:6" in caught.value.why
    assert "type == 'lehr.File'" in caught.value.fix


def test_a_filter_says_whether_the_library_has_to_be_asked() -> None:
    assert Filter("payload.replicas >= 3").fast
    assert not Filter("id.matches('a.*')").fast

"""A selector selects what it names, and an empty one is an error."""

from __future__ import annotations

import pytest

from lehr.base.errors import LehrError
from lehr.model.addons import LABELS, Labels
from lehr.model.asset import Asset, AssetId, id_problem, make_asset, partition_problem
from lehr.model.selector import Selector, parse_selector


def asset(id: str, type: str = "test.Thing", **labels: str) -> Asset:
    return make_asset(AssetId(id), type, {}, {LABELS: Labels(labels)} if labels else {})


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("all", {"a", "web-1", "web-2"}),
        ("a", {"a"}),
        ("web-*", {"web-1", "web-2"}),
        ("id=a,id=web-1", {"a", "web-1"}),
        ("type=test.*", {"a", "web-1"}),
        ("type=other.Thing", {"web-2"}),
        ("web-*,type=test.Thing", {"web-1"}),
        ("label:team=x", {"web-1"}),
        ("label:team=y", set()),
        ("nobody", set()),
    ],
)
def test_every_part_must_hold(text: str, selected: set[str]) -> None:
    assets = [asset("a"), asset("web-1", team="x"), asset("web-2", "other.Thing")]
    selector = parse_selector(text)
    assert {item.id for item in assets if selector.matches(item)} == selected


@pytest.mark.parametrize("text", ["", " ", ",", "id=", "colour=red", "all,web-*", "label:=x"])
def test_what_cannot_be_understood_or_is_empty_is_an_error(text: str) -> None:
    with pytest.raises(LehrError) as caught:
        parse_selector(text)
    assert caught.value.fix


def test_an_empty_selector_never_means_everything() -> None:
    with pytest.raises(ValueError, match="selects nothing"):
        Selector()


@pytest.mark.parametrize("text", ["web-*", "type=test.*", "label:team=x,id=a", "all"])
def test_a_selector_is_written_as_it_is_read(text: str) -> None:
    assert parse_selector(str(parse_selector(text))) == parse_selector(text)


@pytest.mark.parametrize("id", ["a", "web/eu-1", "A_b.c:d@1", "0"])
def test_ids_that_are_good(id: str) -> None:
    assert id_problem(id) is None


@pytest.mark.parametrize(
    "id", ["", "..", "a/../b", "/a", "a/", "a//b", "a b", "a\n", "\x00", "é", "x" * 201, "-a"]
)
def test_ids_that_are_not(id: str) -> None:
    assert id_problem(id)


@pytest.mark.parametrize(
    ("name", "good"), [("a", True), ("a-1", True), ("A", False), ("-a", False), ("", False)]
)
def test_partition_names(name: str, good: bool) -> None:
    assert (partition_problem(name) is None) is good


@pytest.mark.parametrize(
    ("text", "exact", "one"),
    [
        ("a", ("a",), True),
        ("a,b,a", ("a", "b"), False),
        ("a,type=test.Thing", ("a",), False),
        ("a,web-*", (), False),
        ("web-?", (), False),
        ("web-[12]", (), False),
        ("type=test.Thing", (), False),
        ("all", (), False),
    ],
)
def test_ids_that_are_named_in_full_are_known(text: str, exact: tuple[str, ...], one: bool) -> None:
    selector = parse_selector(text)
    assert (selector.exact_ids, selector.is_one_id) == (exact, one)

"""Everything that is wrong with a value is listed, in words for people."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from lehr.generate.problems import problems_of, quoted


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=1)]


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Literal["big", "small"] = "big"
    inner: Inner | None = None
    either: int | list[str] | None = None
    many: dict[str, Inner] = {}

    def __post_init__(self) -> None:
        if self.name == "forbidden":
            raise ValueError("that name is taken")


class Tree(msgspec.Struct):
    inner: Tree | None = None


def listed(value: Any) -> list[tuple[str, str]]:
    return [(item.pointer, item.what) for item in problems_of(value, Outer)]


def test_a_value_that_fits_has_no_problems() -> None:
    assert listed({"name": "x", "inner": {"size": 1}, "either": ["a"]}) == []


@pytest.mark.parametrize(
    ("value", "pointer", "what"),
    [
        ({}, "", "name is missing"),
        ({"name": 1}, "/name", "`name` is the number 1, not a string"),
        ({"name": None}, "/name", "`name` is null, not a string"),
        ({"name": "x", "mane": 1}, "/mane", "mane is not known here"),
        ({"name": "x", "inner": {"size": 0}}, "/inner/size", "`inner.size`: 0 is less than the minimum of 1"),
        ({"name": "x", "inner": {}}, "/inner", "inner.size is missing"),
        (
            {"name": "x", "either": "y"},
            "/either",
            "`either` is the string 'y', which is not an integer or a list",
        ),
        (
            {"name": "x", "many": {"a/b": {"size": "1"}}},
            "/many/a~1b/size",
            "`many.a/b.size` is the string '1', not an integer",
        ),
        ({"name": "forbidden"}, "", "that name is taken"),
        ([], "", "it is a list, not a mapping"),
    ],
)
def test_each_problem_has_its_pointer_and_says_what_is_wrong(value: Any, pointer: str, what: str) -> None:
    assert listed(value) == [(pointer, what)]


def test_all_problems_are_listed_at_once() -> None:
    found = listed({"kind": "huge", "inner": {"sise": 1}, "many": {"a": {"size": -1}, "b": {"size": True}}})
    assert sorted(pointer for pointer, _ in found) == [
        "",
        "/inner",
        "/inner/sise",
        "/kind",
        "/many/a/size",
        "/many/b/size",
    ]


def test_a_value_nested_beyond_reason_is_a_problem_and_no_crash() -> None:
    value: Any = None
    for _ in range(100_000):
        value = {"inner": value}
    assert problems_of(value, Any) == []
    assert "nested" in problems_of(value, Tree)[0].what


def test_what_users_wrote_is_quoted_short_and_without_control_characters() -> None:
    assert quoted("a\x1b[2J") == "`a\\x1b[2J`"
    assert len(quoted("x" * 1000)) < 100

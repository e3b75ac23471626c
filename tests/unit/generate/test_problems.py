"""Everything that is wrong with a value is listed, in words for people."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from lehr.base.documents import MAX_PROBLEMS
from lehr.generate.typing.problems import problems_of, quoted, schema_problems, unusable
from lehr.model.types import Schema


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=1)]


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: Literal["big", "small"] = "big"
    inner: Inner | None = None
    either: int | list[str] | None = None
    bound: Annotated[int, msgspec.Meta(ge=0)] | Literal["unlimited"] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, lt=1.5)] = 1
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
        ({}, "", "`name` is missing"),
        ({"name": 1}, "/name", "`name` is the number 1, not a string"),
        ({"name": None}, "/name", "`name` is null, not a string"),
        ({"name": "x", "mane": 1}, "/mane", "unknown field `mane`"),
        ({"name": "x", "inner": {"size": 0}}, "/inner/size", "`inner.size`: 0 is less than the minimum of 1"),
        ({"name": "x", "inner": {}}, "/inner", "`inner.size` is missing"),
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
        (
            {"name": "x", "kind": "huge"},
            "/kind",
            "`kind` is the string 'huge', not one of `big`, `small`",
        ),
        ({"name": "x", "either": [1]}, "/either/0", "`either[0]` is the number 1, not a string"),
        ({"name": "x", "bound": -1}, "/bound", "`bound`: -1 is less than the minimum of 0"),
        (
            {"name": "x", "bound": "8M"},
            "/bound",
            "`bound` is the string '8M', which is not an integer or `unlimited`",
        ),
        ({"name": "x", "share": 0}, "/share", "`share`: 0 is not greater than 0"),
        ({"name": "x", "share": 2}, "/share", "`share`: 2 is not less than 1.5"),
        ({"name": "forbidden"}, "", "that name is taken"),
        ([], "", "it is a list, not a mapping"),
    ],
)
def test_each_problem_has_its_pointer_and_says_what_is_wrong(value: Any, pointer: str, what: str) -> None:
    assert listed(value) == [(pointer, what)]


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ({"inner": {"size": 0}}, "write a number that is at least 1"),
        ({"share": 0}, "write a number that is greater than 0"),
    ],
)
def test_a_number_out_of_bounds_is_answered_with_the_bound(value: Any, fix: str) -> None:
    [problem] = problems_of({"name": "x", **value}, Outer)
    assert problem.fix == fix


def test_a_value_in_another_case_is_recognized() -> None:
    [problem] = problems_of({"name": "x", "kind": "SMALL"}, Outer)
    assert problem.fix == "did you mean `small`?"


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


def test_of_many_problems_as_many_are_listed_as_anybody_reads() -> None:
    assert len(listed({"name": "x", "many": {str(number): 1 for number in range(5_000)}})) == MAX_PROBLEMS + 1
    assert len(listed({"name": "x", **{f"field-{number}": 1 for number in range(3_000)}})) == MAX_PROBLEMS + 1


def test_of_what_is_far_too_large_for_an_asset_one_problem_is_enough() -> None:
    assert len(listed({"name": "x", "many": {str(number): 1 for number in range(150_000)}})) == 1
    schema = Schema({"items": {"type": "string"}}, {})
    assert [item.pointer for item in schema_problems([1] * 600_000, schema)] == ["/0"]


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"maxLength": 3}, "is longer than 3 characters"),
        ({"pattern": "^b+$"}, 'does not match "^b+$"'),
        ({"pattern": "^(a+)+$"}, 'does not match "^(a+)+$"'),
    ],
)
def test_what_is_wrong_with_a_long_value_is_said_at_the_end_of_a_short_text(schema: Any, what: str) -> None:
    (problem,) = schema_problems("a" * 100_000 + "!", Schema(schema, {}))
    assert problem.what.endswith(what)
    assert len(problem.what) < 200


@pytest.mark.parametrize("name", ["http://127.0.0.1:1/schema", "file:///etc/passwd", 3])
def test_a_schema_names_no_other_dialect_for_that_would_be_fetched(name: Any) -> None:
    [problem] = unusable({"$schema": name})
    assert problem.pointer == "/$schema"
    assert "https://json-schema.org/draft/2020-12/schema" in problem.what


def test_a_schema_may_name_its_own_dialect() -> None:
    assert not unusable({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"})


def test_everything_that_is_wrong_with_a_schema_is_told_with_its_place() -> None:
    parts = {"a": {"type": "text"}, "b": {"pattern": "("}, "c": {"minimum": "1"}, "d": {"pattern": ")"}}
    found = unusable({"properties": parts, "required": "a"})
    assert sorted(item.pointer for item in found) == [
        "/properties/a/type",
        "/properties/b/pattern",
        "/properties/c/minimum",
        "/properties/d/pattern",
        "/required",
    ]


@pytest.mark.parametrize("reference", ["#/$defs/none", "https://example.org/s", "other.json"])
def test_a_schema_refers_to_nothing_that_is_not_in_it(reference: str) -> None:
    assert unusable({"properties": {"a": {"$ref": reference}}})


def test_a_schema_that_would_never_come_to_an_end_is_refused() -> None:
    doubled = {f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(60)}
    chain = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(60)}
    for definitions, last in ((doubled, "d60"), (chain, "d60")):
        found = unusable({"$ref": "#/$defs/d0", "$defs": {**definitions, last: {"type": "string"}}})
        assert any("10,000" in item.what for item in found) == (definitions is doubled)
    chain = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(5_000)}
    assert unusable({"$ref": "#/$defs/d0", "$defs": {**chain, "d5000": {}}})


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("^(?=a)b", "back-reference"),
        ("^(?!-)[a-z-]+$", "back-reference"),
        ("(?<=a)b", "back-reference"),
        ("(?<!a)b", "back-reference"),
        (r"^(?:(a+)+)+\1b$", "back-reference"),
        ("^[^/]{1,4096}$", "too large"),
        ("(", "is not a"),
    ],
)
def test_patterns_that_cannot_be_matched_in_linear_time_are_refused(pattern: str, what: str) -> None:
    for schema, at in (
        ({"properties": {"a": {"pattern": pattern}}}, "/properties/a/pattern"),
        ({"patternProperties": {pattern: {}}}, "/patternProperties"),
    ):
        [problem] = unusable(schema)
        assert problem.pointer.startswith(at)
        assert what in problem.what
        assert problem.fix or pattern == "("
    for other in ({"const": {"pattern": pattern}}, {"properties": {"pattern": {"const": pattern}}}):
        assert not unusable(other)


def test_what_patterns_ask_of_a_value_is_bounded_in_all() -> None:
    """A pattern of some hundred states takes seconds for each megabyte, and a place may have thousands."""
    heavy = Schema({"allOf": [{"pattern": "^[ab]*a[ab]{1000}c"}] * 1000}, {})
    [problem] = schema_problems({"text": "ab" * 500_000}, heavy)
    assert "patterns" in problem.what
    host = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
    light = Schema({"items": {"pattern": host}}, {})
    assert not schema_problems(["www.example.org"] * 20_000, light)

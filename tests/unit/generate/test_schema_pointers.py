"""A pointer that can lead nowhere is told: a slip in what marks secrets must not be silent."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.generate.typing.schema_pointers import kind_problem, pointer_problem

CLOSED = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "parent": {"type": "string"},
        "members": {"type": "array", "items": {"$ref": "#/$defs/Member"}},
        "named": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Member"}},
        "either": {"anyOf": [{"$ref": "#/$defs/Member"}, {"type": "null"}]},
        "free": {"type": "object"},
    },
    "$defs": {
        "Member": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"who": {"type": "string"}, "below": {"$ref": "#/$defs/Member"}},
        }
    },
}


@pytest.mark.parametrize(
    "pattern",
    [
        "/parent",
        "/members/*",
        "/members/*/who",
        "/members/0/below/below/who",
        "/named/*/who",
        "/named/#",
        "/either/who",
        "/free/whatever/it/is",
        "/*",
    ],
)
def test_a_pointer_that_may_lead_somewhere_is_fine(pattern: str) -> None:
    assert pointer_problem(pattern, CLOSED) is None


@pytest.mark.parametrize(
    ("pattern", "part", "fix"),
    [
        ("/parnt", "parnt", "did you mean `parent`?"),
        ("/members/who", "who", "fix the pointer"),
        ("/members/*/whom", "whom", "did you mean `who`?"),
        ("/parent/*", "*", "fix the pointer"),
        ("/either/x", "x", "fields: who, below"),
    ],
)
def test_a_pointer_that_leads_nowhere_is_told_where_it_goes_astray(pattern: str, part: str, fix: str) -> None:
    assert pointer_problem(pattern, CLOSED) == (f"`{pattern}` leads nowhere: `{part}` does not exist", fix)


@pytest.mark.parametrize(
    "schema", [{}, True, {"type": "object"}, {"oneOf": []}, {"additionalProperties": False, "allOf": []}]
)
def test_where_a_schema_leaves_things_open_any_pointer_may_lead_somewhere(schema: Any) -> None:
    assert pointer_problem("/any/thing", schema) is None


@pytest.mark.parametrize(
    "pattern", ["/parent", "/members/*/who", "/named/#", "/either/who", "/free/whatever"]
)
def test_what_may_be_of_the_kind_that_is_wanted_is_fine(pattern: str) -> None:
    assert kind_problem(pattern, CLOSED, ["string"]) is None


@pytest.mark.parametrize(
    ("pattern", "kinds", "what", "fix"),
    [
        ("/members", ["string"], "a list, not to a string", "mark its content: `/members/*`"),
        ("/named", ["string"], "a mapping, not to a string", "mark its content: `/named/*`"),
        ("/parent", ["object"], "a string, not to a mapping", "let the schema allow a mapping there"),
        (
            "/either",
            ["string", "integer"],
            "a mapping or null, not to a string or an integer",
            "mark its content: `/either/*`",
        ),
    ],
)
def test_what_can_never_be_of_the_kind_that_is_wanted_is_told(
    pattern: str, kinds: list[str], what: str, fix: str
) -> None:
    assert kind_problem(pattern, CLOSED, kinds) == (f"`{pattern}` leads to {what}", fix)

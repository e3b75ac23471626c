"""How often a place of a value would be looked at."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.generate.typing.schema_cost import MOST_LOOKS, looks, pattern_bytes

LEAF = {"type": "string"}
TREE = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "items": {"$ref": "#"}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, 1),
        ({"$ref": "#"}, 1),
        ({"allOf": [{}, {}], "not": {}}, 4),
        ({"if": {}, "then": {}, "else": {}}, 4),
        ({"properties": {"a": {}, "b": {"anyOf": [{}, {}]}}}, 3),
        ({"properties": {"a": {}}, "patternProperties": {"^a": {}, "b$": {}}}, 3),
        ({"properties": {"a": {}}, "additionalProperties": False}, 1),
        ({"dependentSchemas": {"a": {}, "b": True}}, 2),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, 3),
        ({"$ref": "#a", "$defs": {"x": {"$anchor": "a", "oneOf": [{}, {}]}}}, 4),
        ({"$ref": "http://x.example/y#/a~1b/0", "a": {"$id": "http://x.example/y", "a/b": [{}]}}, 2),
        ({"$ref": "#/nowhere/0", "$dynamicRef": "http://x.example/"}, 1),
        ({"allOf": "not a list", "$ref": 3, "properties": []}, 1),
        (TREE, 2),
        ({"prefixItems": [{"allOf": [{}]}, {}], "items": {}, "contains": {}}, 3),
    ],
)
def test_each_subschema_for_the_same_place_is_a_look(schema: Any, expected: int) -> None:
    assert looks(schema) == expected


def test_doubling_is_found_at_one_place_and_from_level_to_level() -> None:
    doubled: dict[str, Any] = {"$defs": {"d30": LEAF}, "$ref": "#/$defs/d0"}
    for number in range(30):
        doubled["$defs"][f"d{number}"] = {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2}
    assert looks(doubled) == MOST_LOOKS + 1
    assert looks({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}) == MOST_LOOKS + 1
    assert looks({"patternProperties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}) == MOST_LOOKS + 1


def test_a_long_way_is_no_doubling() -> None:
    wide = {f"field-{number}": {"$ref": "#/$defs/a"} for number in range(2_000)}
    assert looks({"properties": wide, "$defs": {"a": TREE}}) <= 5
    deep: dict[str, Any] = LEAF
    for _ in range(60):
        deep = {"anyOf": [{}], "properties": {"a": deep}}
    assert looks(deep) == 2


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, 0),
        ({"pattern": "abc"}, 3),
        ({"pattern": "abc", "allOf": [{"pattern": "ab"}, {"not": {"pattern": "a"}}]}, 6),
        ({"properties": {"a": {"pattern": "abc"}, "b": {"pattern": "ab"}}}, 3),
        ({"patternProperties": {"abc": {"pattern": "a"}, "ab": {"pattern": "a"}}}, 5),
        ({"patternProperties": {"a": {"pattern": "abc"}, "b": {"pattern": "ab"}}}, 5),
        ({"items": {"items": {"pattern": "abc"}}, "pattern": "ab"}, 3),
        ({"const": {"pattern": "abc"}}, 0),
    ],
)
def test_patterns_count_where_a_place_is_matched_against_them(schema: Any, expected: int) -> None:
    assert pattern_bytes(schema, len) == expected

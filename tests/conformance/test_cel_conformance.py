"""The public conformance tests of CEL: those that are about plain data.

They are not shipped here. `CEL_SPEC=folder` names a checkout of the specification's repository.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.cel import NoAnswerError, compile_expression
from tests.conformance import textproto

FOLDER = Path(os.environ.get("CEL_SPEC", "")) / "tests/simple/testdata"

FILES = (
    *("basic", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic"),
    *("macros", "namespace", "parse", "plumbing", "string", "timestamps"),
)
"""The others are about messages (proto2, proto3, enums, dynamic, wrappers, type_deduction) or extensions
that filters do not have (bindings, block, encoders, macros2, math, network, optionals, strings)."""

KNOWN = {"fields-qualified_identifier_resolution-map_value_repeat_key_heterogeneous"}
"""What the library itself does otherwise: `{0: 1, 0u: 2}` is a map of two keys."""

pytestmark = pytest.mark.skipif("CEL_SPEC" not in os.environ, reason="CEL_SPEC names no checkout of cel-spec")


class UnlikeError(Exception):
    """A value that is no plain data: a message, a type."""


def plain(value: dict[str, list[Any]]) -> Any:
    [(kind, [content])] = value.items()
    match kind:
        case "null_value":
            return None
        case "bool_value":
            return content == "true"
        case "int64_value" | "uint64_value":
            return int(content, 0)
        case "double_value":
            return float(content)
        case "string_value":
            return content.decode()
        case "bytes_value":
            return content
        case "list_value":
            return [plain(item) for item in content.get("values", ())]
        case "map_value":
            entries = content.get("entries", ())
            return {plain(entry["key"][0]): plain(entry["value"][0]) for entry in entries}
    raise UnlikeError(kind)


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        if math.isnan(expected):
            return isinstance(found, float) and math.isnan(found)
        return isinstance(found, float) and found == expected
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, bytes):
        return bytes(found) == expected
    return type(found) is type(expected) and bool(found == expected)


def cases() -> Iterator[Any]:
    if "CEL_SPEC" not in os.environ:
        yield pytest.param({}, id="none")
        return
    for name in FILES:
        for section in textproto.read((FOLDER / f"{name}.textproto").read_text())["section"]:
            for test in section.get("test", ()):
                title = "-".join((name, section["name"][0].decode(), test["name"][0].decode()))
                marks = [pytest.mark.xfail(reason="the library differs")] if title in KNOWN else []
                yield pytest.param(test, id=title, marks=marks)


@pytest.mark.parametrize("test", list(cases()))
def test_answers_as_the_specification_says(test: dict[str, list[Any]]) -> None:
    text = test["expr"][0].decode()
    if "disable_check" in test:
        pytest.skip("what does not pass the check is never asked here")
    if "TestAllTypes" in text or "container" in test or "google.protobuf" in text:
        pytest.skip("about messages")
    try:
        given = {
            entry["key"][0].decode(): plain(entry["value"][0]["value"][0])
            for entry in test.get("bindings", ())
        }
        expected = plain(test["value"][0]) if "value" in test else True
    except UnlikeError as reason:
        pytest.skip(f"about {reason}")
    declared = (item["name"][0].decode() for item in test.get("type_env", ()) if "name" in item)
    names = tuple(dict.fromkeys((*given, *declared)))
    try:
        answer = compile_expression(text, names).answer(given)
    except (NoAnswerError, ValueError, KeyError):
        assert "eval_error" in test or "any_eval_errors" in test, text
        return
    assert "eval_error" not in test, f"{text} is {answer!r}"
    assert same(answer, expected), f"{text} is {answer!r}, not {expected!r}"

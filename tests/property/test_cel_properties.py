"""Closures answer as the library does, and where it has no answer, neither have they."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from lehr.base.cel import compile_expression
from lehr.base.cel.closures import closure_of
from lehr.base.cel.google import compile_text
from lehr.base.cel.operators import NoAnswerError
from lehr.base.cel.tree import UnsupportedError, read_tree

VARIABLES = ("type", "payload", "addons")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, -(2**63), 2**53]),
    st.sampled_from([0.0, 1.0, -1.5, 2.0**53, 2.0**63, math.inf, math.nan]),
    st.sampled_from(["", "a", "ab", "b", "\N{GRINNING FACE}a"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "size"]), inner, max_size=3)
    ),
    max_leaves=6,
)

NUMBERS = ("0", "1", "-2", "9223372036854775807", "1.0", "0.0")
OTHERS = (
    "null",
    "true",
    "false",
    "''",
    "'a'",
    "'ab'",
    "[]",
    "[1, 2.0, 'a']",
    "{}",
    "{'a': 1}",
    "payload.a",
    "payload.b",
    "type",
    "addons",
    "addons['a']",
)
literals = st.sampled_from((*NUMBERS, *OTHERS))


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger expressions."""
    binary = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "/", "%", "in"])
    macros = st.sampled_from(["exists", "all", "exists_one", "filter"])
    pair = st.tuples(inner, binary, inner).map(lambda parts: f"({' '.join(parts)})")
    return st.one_of(
        pair,
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        inner.map(lambda one: f"!({one})"),
        inner.map(lambda one: f"-({one})"),
        inner.map(lambda one: f"size({one})"),
        inner.map(lambda one: f"dyn({one}).a"),
        st.tuples(inner, inner).map(lambda parts: f"dyn({parts[0]})[{parts[1]}]"),
        st.tuples(inner, st.sampled_from(["contains", "startsWith", "endsWith"]), inner).map(
            lambda parts: f"dyn({parts[0]}).{parts[1]}({parts[2]})"
        ),
        st.tuples(inner, macros, inner).map(lambda parts: f"dyn({parts[0]}).{parts[1]}(x, x == {parts[2]})"),
        st.tuples(inner, inner).map(lambda parts: f"dyn({parts[0]}).exists(x, x.a > {parts[1]} || x > 1)"),
        st.tuples(inner, inner).map(lambda parts: f"dyn({parts[0]}).map(x, [x, {parts[1]}])"),
        st.sampled_from(["has(payload.a)", "has(payload.a.b)", "has(type.a)"]),
    )


expressions = st.recursive(literals, grown, max_leaves=8)


def answer(ask: Any, given: Any) -> Any:
    try:
        return told(ask(given))
    except NoAnswerError:
        return "no answer"


def told(value: Any) -> Any:
    """With types, as `True == 1` and `1 == 1.0` in Python; and NaN like NaN."""
    if isinstance(value, list):
        return [told(item) for item in value]
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items()}
    return (type(value).__name__, repr(value))


@settings(max_examples=400, deadline=None)
@given(expressions, values, values, values)
@example("payload.a || true", None, {}, None)
@example("type in {}", None, None, None)
@example("1.0 in {'a': 1}", None, None, None)
@example("[1, 'a'].exists(x, x > 1 || x == 'a')", None, None, None)
@example("type == 'a' && payload.b > 1.0", "a", {"b": 2}, None)
@example("1 in {'a': 1} || 9223372036854775807 + 1 > 0", None, None, None)
@example("-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1", None, None, None)
def test_closures_answer_as_the_library_does(text: str, type: Any, payload: Any, addons: Any) -> None:
    try:
        compiled = compile_text(text, VARIABLES)
    except ValueError:
        return  # it is refused, whoever would answer it
    closure = closure_of(read_tree(compiled.serialized()), VARIABLES)
    given = {"type": type, "payload": payload, "addons": addons}
    assert answer(closure, [type, payload, addons]) == answer(compiled.answer, given), text


@given(expressions, st.dictionaries(st.sampled_from(["a", "b"]), values))
@example("has(payload.a) && payload.b == 1", {"b": 1})
@example("payload.a.b", {"a": {"b": 1}})
@example("payload.exists(x, payload.a == x)", {"a": "a"})
def test_fields_that_are_given_apart_answer_as_those_of_their_map(text: str, payload: dict[str, Any]) -> None:
    try:
        tree = read_tree(compile_text(text, VARIABLES).serialized())
        whole = closure_of(tree, VARIABLES)
    except (ValueError, UnsupportedError):
        return
    apart = closure_of(tree, VARIABLES, [("payload", "a"), ("payload", "b")])
    fields = [payload.get(name, UNSET) for name in ("a", "b")]
    assert answer(apart, ["", payload, None, *fields]) == answer(whole, ["", payload, None]), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("type.matches('^a+$')", True),
        ("int('7') + 1", 8),
        ("timestamp('2026-01-05T00:00:00Z').getFullYear()", 2026),
        ("type(payload) == map", True),
        ("string(1.5)", "1.5"),
        ("{1: 'a'}[1]", "a"),
        ("payload.map(k, k)", ["b"]),
    ],
)
def test_what_has_no_closure_is_asked_of_the_library(text: str, expected: Any) -> None:
    given = {"type": "aaa", "payload": {"b": 1}, "addons": {}}
    assert compile_expression(text, VARIABLES).answer(given) == expected

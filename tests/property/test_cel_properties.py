"""Closures answer as the library does, and where it has no answer, neither have they."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from lehr.cel import compile_expression
from lehr.cel.closures import closure_of
from lehr.cel.google import compile_text
from lehr.cel.operators import NoAnswerError
from lehr.cel.tree import UnsupportedError, read_tree

VARIABLES = ("type", "payload", "addons")

numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, -(2**63), 2**53]),
    st.sampled_from([0.0, 1.0, -1.5, 2.0**53, 2.0**63, math.inf, math.nan]),
)
texts = st.sampled_from(["", "a", "ab", "b", "\N{GRINNING FACE}a"])
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "size"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "number": numbers,
    "text": texts,
    "list": st.lists(values, max_size=3),
    "map": st.dictionaries(st.sampled_from(["a", "b", "size"]), values, max_size=3),
    "truth": st.booleans(),
}
FIELDS = {"n": "number", "i": "number", "s": "text", "l": "list", "m": "map", "b": "truth"}


@st.composite
def payloads(draw: st.DrawFn) -> Any:
    """Fields of the kinds that expressions take them for; now and then of another, none, or no map at all."""
    if draw(st.integers(0, 19)) == 0:
        return draw(values)
    made = {}
    for name, kind in FIELDS.items():
        otherwise = draw(st.integers(0, 9))
        if otherwise != 0:
            made[name] = draw(KINDS[kind] if otherwise > 1 else values)
    return made


# Expressions, by what they mostly answer. In braces stands what else is put in.
LEAVES = {
    "number": (
        "0",
        "1",
        "-2",
        "3",
        "9223372036854775807",
        "1.0",
        "0.0",
        "payload.n",
        "payload.i",
        "payload.l[0]",
    ),
    "text": ("''", "'a'", "'ab'", "payload.s", "type", "payload.m.a"),
    "list": ("[]", "[1, 2.0, 'a']", "[true, null]", "payload.l", "payload.m.b", "[payload.n, payload.s]"),
    "map": ("{}", "{'a': 1}", "payload", "payload.m", "addons", "{'a': payload.n}"),
    "truth": ("true", "false", "payload.b", "has(payload.n)", "has(payload.m.a)", "has(type.a)"),
    "item": ("x == 1", "dyn(x) > 1", "x == payload.n", "dyn(x).a == 1", "x == 'a'", "x == type", "dyn(x)"),
    "none": ("null", "payload.none", "payload.m", "dyn(1).a"),
}
GROWN = {
    "number": (
        *(f"(dyn({{number}}) {operator} {{number}})" for operator in "+-*/%"),
        "-dyn({number})",
        "size(dyn({text}))",
        "dyn({list}).size()",
        "size(dyn({map}))",
        "dyn({list})[{number}]",
        "({truth} ? dyn({number}) : {number})",
    ),
    "text": ("(dyn({text}) + {text})", "dyn({map})[{text}]", "dyn({map}).a", "dyn({list})[0]"),
    "list": (
        "(dyn({list}) + {list})",
        "[{any}, dyn({any})]",
        "dyn({list}).filter(x, {item})",
        "dyn({map}).filter(x, {item})",
        "dyn({list}).map(x, [x, dyn({any})])",
        "dyn({list}).map(x, {item}, dyn(x))",
    ),
    "map": ("{{'a': {any}}}", "dyn({list})[0]", "dyn({map}).m", "({truth} ? dyn({map}) : {map})"),
    "truth": (
        *(f"(dyn({{any}}) {operator} {{any}})" for operator in ("==", "!=")),
        *(f"(dyn({{{kind}}}) == {{{kind}}})" for kind in ("number", "text", "list", "map", "truth")),
        *(f"(dyn({{number}}) {operator} {{number}})" for operator in ("<", "<=", ">", ">=")),
        *(f"(dyn({{text}}) {operator} {{text}})" for operator in ("<", "<=", ">", ">=")),
        "(dyn({truth}) < {truth})",
        "(dyn({any}) in dyn({list}))",
        "(dyn({any}) in dyn({map}))",
        "(dyn({truth}) && {truth})",
        "(dyn({truth}) || {truth})",
        "!dyn({truth})",
        "({truth} ? dyn({truth}) : {truth})",
        *(f"dyn({{text}}).{name}({{text}})" for name in ("contains", "startsWith", "endsWith")),
        *(f"dyn({{list}}).{name}(x, {{item}})" for name in ("all", "exists", "exists_one")),
        *(f"dyn({{map}}).{name}(x, {{item}})" for name in ("all", "exists", "exists_one")),
        "has(dyn({map}).b)",
    ),
    "item": (
        "(dyn({item}) && {item})",
        "(dyn({item}) || {item})",
        "!dyn({item})",
        "dyn({list}).exists(y, y == x || dyn(y) > 1)",
        "(dyn(x) == {any})",
        "(dyn(x) < {any})",
        "{truth}",
    ),
}
SLOT = re.compile(r"(?<!{){(\w+)}(?!})")


@st.composite
def of_kind(draw: st.DrawFn, kind: str, depth: int) -> str:
    """An expression that mostly answers a `kind`."""
    chosen = draw(st.sampled_from(list(LEAVES))) if kind == "any" or draw(st.integers(0, 11)) == 0 else kind
    grows = depth > 0 and chosen in GROWN
    template = draw(st.sampled_from((GROWN if grows else LEAVES)[chosen]))
    if chosen == "item" != kind:
        return "null"  # it speaks of x, which is not there
    if grows:
        template = SLOT.sub(lambda slot: draw(of_kind(slot[1], depth - 1)), template)
        template = template.replace("{{", "{").replace("}}", "}")
    return template if chosen == kind else f"dyn({template})"


expressions = st.integers(0, 3).flatmap(lambda depth: of_kind("truth", depth) | of_kind("any", depth))


def answer(ask: Any, given: Any) -> Any:
    try:
        return told(ask(given))
    except NoAnswerError:
        return "no answer"


def turned(value: Any, by: int) -> Any:
    """The same with keys in another order: the library goes through maps in any, so nothing rests on it."""
    if isinstance(value, list):
        return [turned(item, by) for item in value]
    if isinstance(value, dict):
        names = list(value)
        return {name: turned(value[name], by) for name in names[by:] + names[:by]}
    return value


def told(value: Any) -> Any:
    """With types, as `True == 1` and `1 == 1.0` in Python; and NaN like NaN."""
    if isinstance(value, list):
        return [told(item) for item in value]
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items()}
    return (type(value).__name__, repr(value))


@settings(max_examples=500)
@given(expressions, texts | values, payloads(), KINDS["map"] | values)
@example("payload.a || true", None, {}, None)
@example("type in {}", None, None, None)
@example("dyn(1.0) in {'a': 1}", None, None, None)
@example("[1, 'a'].exists(x, x > 1 || x == 'a')", None, None, None)
@example("type == 'a' && payload.b > 1.0", "a", {"b": 2}, None)
@example("dyn(1) in {'a': 1} || 9223372036854775807 + 1 > 0", None, None, None)
@example("-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1", None, None, None)
def test_closures_answer_as_the_library_does(text: str, type: Any, payload: Any, addons: Any) -> None:
    try:
        compiled = compile_text(text, VARIABLES)
    except ValueError:
        return  # it is refused, whoever would answer it
    closure = closure_of(read_tree(compiled.serialized()), VARIABLES)
    given = {"type": type, "payload": payload, "addons": addons}
    found = answer(closure, [type, payload, addons])
    orders = [[turned(value, by) for value in (type, payload, addons)] for by in (1, -1)]
    if all(answer(closure, order) == found for order in orders):
        assert answer(compiled.answer, given) == found, text


OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "/", "%", "in")
OF_TWO = (
    *(f"x {operator} y" for operator in OPERATORS),
    *(f"x.{function}(y)" for function in ("contains", "startsWith", "endsWith")),
    *("x[y]", "x ? y : x", "[x, y]", "{'a': x, 'b': y}", "x.a", "has(x.a)", "x == x", "-x", "!x", "size(x)"),
    *(f"x.{macro}(i, i == y)" for macro in ("exists", "all", "exists_one", "filter", "map")),
    *(f"[x, y].{macro}(i, i > 1)" for macro in ("exists", "all", "exists_one", "filter")),
    *(f"[x, y].{macro}(i, i.a == 1)" for macro in ("exists", "all", "exists_one")),
    *("x.matches(y)", "string(x)", "int(x)", "double(x)", "bool(x)", "x.map(i, string(i) + y)"),
    *("x.map(i, [i, y])", "x.map(i, i == y, i)", "x.exists(i, [i, y].all(x, x == i))"),
)
BOUNDS = (0, 1, -1, 2, 3, -7, 2**63 - 1, -(2**63), 2**53, 2**53 + 1)
EVERY: tuple[Any, ...] = (
    *(None, True, False, *BOUNDS, *map(float, BOUNDS), -0.0, 0.5, -1.5, math.inf, -math.inf, math.nan),
    *("", "a", "ab", "b", "\N{GRINNING FACE}a"),
    *([], [1], [1.0], [True], [1, 2], [None, "a"], [[1], {"a": 1}], [math.nan], [2**53], [2**53 + 1]),
    *({}, {"a": 1}, {"a": 1.0}, {"a": True}, {"a": None}, {"b": {"a": 1}}, {"a": "b"}),
)


@pytest.mark.parametrize("text", OF_TWO)
def test_of_any_two_values_the_answers_are_the_same(text: str) -> None:
    compiled = compile_text(text, ("x", "y"))
    closure = closure_of(read_tree(compiled.serialized()), ("x", "y"))
    for x in EVERY:
        for y in EVERY:
            expected = answer(compiled.answer, {"x": x, "y": y})
            assert answer(closure, [x, y]) == expected, f"{text} of {x!r} and {y!r}"


@given(expressions, payloads().filter(lambda payload: isinstance(payload, dict)))
@example("has(payload.n) && payload.i == 1", {"i": 1})
@example("has(payload.n)", {"n": None})
@example("payload.m.b", {"m": {"b": 1}})
@example("payload.exists(x, payload.s == x)", {"s": "s"})
def test_fields_that_are_given_apart_answer_as_those_of_their_map(text: str, payload: dict[str, Any]) -> None:
    try:
        tree = read_tree(compile_text(text, VARIABLES).serialized())
        whole = closure_of(tree, VARIABLES)
    except (ValueError, UnsupportedError):
        return
    apart = closure_of(tree, VARIABLES, [("payload", name) for name in FIELDS])
    fields = [payload.get(name, UNSET) for name in FIELDS]
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

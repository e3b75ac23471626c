"""Conditions in CEL."""

from __future__ import annotations

import re

import pytest

from lehr.cel import NoAnswerError, compile_condition, compile_expression


def test_a_condition_answers_for_the_values_that_it_is_given() -> None:
    grows = compile_condition("mine.capacity != null && mine.capacity > 0", ("mine",))
    assert grows({"mine": {"capacity": 2}})
    assert not grows({"mine": {"capacity": -2}})
    assert not grows({"mine": {"capacity": None}})


@pytest.mark.parametrize("expression", ["", "1 +", "mine.x ||", "nobody.x", "'"])
def test_what_cannot_be_understood_is_said_before_it_is_asked(expression: str) -> None:
    with pytest.raises(ValueError, match=":"):
        compile_condition(expression, ("mine",))


def test_all_that_is_wrong_is_said_at_once_in_its_order_and_each_thing_once() -> None:
    with pytest.raises(ValueError, match=r"^1:1: .*'yours'; 1:12: .*'split'; 2:5: .*'ours'$"):
        compile_condition("yours.split('.') == yours\n && ours == ''", ("mine",))
    with pytest.raises(ValueError, match=r"'e'; and 2 more$"):
        compile_condition("a + b + c + d + e + f + g", ("mine",))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (" + ".join("1" * 100), "^Exceeded max recursion depth of 32 when parsing.$"),
        ("(" * 100 + "1" + ")" * 100, "^Expression recursion limit exceeded. limit: 32$"),
    ],
)
def test_what_is_too_deep_is_said_in_plain_words(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compile_condition(expression, ())


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("'a'.matches('(')", r"^invalid regular expression: missing \): \($"),
        ("{'a': 1, 'a': 2} == {}", "^duplicate key in map$"),
        ("int('x') == 1", "^cannot convert string to int$"),
        ("dyn({'a': 1}).b.matches('')", "^no such key: b$"),
    ],
)
def test_why_the_library_has_no_answer_is_said_in_plain_words(expression: str, why: str) -> None:
    with pytest.raises(NoAnswerError, match=why):
        compile_condition(expression, ())({})


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("mine = 'a'", "1:6: `=` is not understood: write `==`; 1:8: `'a'` is not expected here"),
        ("mine and mine", "1:6: `and` is not expected here: write `&&`"),
        ("mine like 'a%'", "1:6: `like` is not expected here"),
        ("mine == 1 &&", "1:13: it ends where more is expected"),
        ("(mine == 1", "1:11: `)` is missing at the end"),
        ("mine ? 1", "1:9: `:` is missing at the end"),
        ("{'a' 1}", "1:6: `:` is missing before this"),
        ("mine.a..b", "1:8: `..` is not expected here"),
        ("mine == 'a\"", "1:9: the string that begins with 'a\" has no end, or an invalid \\ escape; "),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(why)):
        compile_condition(expression, ("mine",))


@pytest.mark.parametrize("expression", ["mine", "mine.nothing", "mine.text > 1", "1 + 1"])
def test_what_has_no_answer_is_an_error_and_never_yes(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_condition(expression, ("mine",))({"mine": {"text": "a"}})


def nested(levels: int, inner: str = "true") -> str:
    for level in range(levels):
        inner = f"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(a{level}, {inner})"
    return inner


def test_an_answer_takes_a_bounded_number_of_steps() -> None:
    """A rule is asked where everything else waits for the answer: 300 characters must not stop production."""
    assert compile_condition(nested(4), ())({})
    with pytest.raises(NoAnswerError, match="200,000"):
        compile_condition(nested(9), ())({})
    many = compile_condition("mine.all(a, mine.all(b, true))", ("mine",))
    assert many({"mine": [1] * 400})
    assert many({"mine": [1] * 400})  # each answer has its own steps
    with pytest.raises(NoAnswerError, match="200,000"):
        many({"mine": [1] * 500})


@pytest.mark.parametrize("start", ["'x'", "[1]"])
def test_what_doubles_is_stopped_before_it_fills_the_memory(start: str) -> None:
    doubled = f"[{start}]" + ".map(q, q + q)" * 18 + " == []"
    with pytest.raises(NoAnswerError, match=r"\+"):
        compile_condition(doubled, ())({})


def test_macros_inside_each_other_are_only_for_what_can_be_stopped() -> None:
    match = "mine.exists(a, a.matches('^b+$'))"
    assert compile_condition(f"{match} && {match}", ("mine",))({"mine": ["a", "b"]})
    for text in (nested(2, "'a'.matches('a')"), nested(2, "b'a' == b'a'")):
        with pytest.raises(ValueError, match="macros"):
            compile_condition(text, ())


MANY = {name: number for number, name in enumerate("abcdefghijklmnop")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mine.map(name, name + string(mine[name]))", [f"{name}{number}" for name, number in MANY.items()]),
        ("mine.filter(name, name.matches('[b-d]'))", ["b", "c", "d"]),
        ("mine.map(name, int('7') == mine[name], name)", ["h"]),
    ],
)
def test_lists_that_are_made_of_maps_have_the_order_of_the_maps(text: str, expected: list[str]) -> None:
    """The library goes through maps in another order in each process, and nothing may rest on that."""
    assert compile_expression(text, ("mine",)).answer({"mine": MANY}) == expected


def test_what_would_have_no_order_has_no_answer() -> None:
    by_time = compile_expression("mine.map(item, timestamp(0) < timestamp(item))", ("mine",))
    assert by_time.answer({"mine": [1, -1]}) == [True, False]
    with pytest.raises(NoAnswerError, match="no order"):
        by_time.answer({"mine": {"a": 1}})
    for text in ("{1: 2}.map(a, a)", "mine.map(a, b'x')"):
        with pytest.raises(ValueError, match="no order"):
            compile_expression(text, ("mine",))
    assert compile_expression("mine.exists(a, type(a) == string)", ("mine",)).answer({"mine": MANY})


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("1 + 1", "int"),
        ("size(x)", "int"),
        ("'yes'", "string"),
        ("[x]", "list"),
        ("x ? 1 : 2", "int"),
        ("null", "null"),
    ],
)
def test_what_can_never_be_a_condition_is_said_before_it_is_asked(expression: str, type: str) -> None:
    with pytest.raises(ValueError, match=f"its answer is of type {type}"):
        compile_condition(expression, ("x",))


@pytest.mark.parametrize("expression", ["x", "x.y", "dyn(1) == 1", "x ? x : false", "[true][0]"])
def test_what_may_be_a_condition_is_asked(expression: str) -> None:
    compile_condition(expression, ("x",))

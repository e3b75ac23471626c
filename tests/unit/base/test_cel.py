"""Conditions in CEL."""

from __future__ import annotations

import pytest

from lehr.base.cel import compile_condition


def test_a_condition_answers_for_the_values_that_it_is_given() -> None:
    grows = compile_condition("mine.capacity != null && mine.capacity > 0", ("mine",))
    assert grows({"mine": {"capacity": 2}})
    assert not grows({"mine": {"capacity": -2}})
    assert not grows({"mine": {"capacity": None}})


@pytest.mark.parametrize("expression", ["", "1 +", "mine.x ||", "nobody.x", "'"])
def test_what_cannot_be_understood_is_said_before_it_is_asked(expression: str) -> None:
    with pytest.raises(ValueError, match=":"):
        compile_condition(expression, ("mine",))


@pytest.mark.parametrize("expression", ["mine", "mine.nothing", "mine.text > 1", "1 + 1"])
def test_what_has_no_answer_is_an_error_and_never_yes(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_condition(expression, ("mine",))({"mine": {"text": "a"}})

"""Expressions in CEL, the Common Expression Language: compiled once, asked often.

In: text, and the names of its variables, whose types are not known before. Out: a function of plain
data (None, bool, int, float, str, list, dict with text for keys).

Google's implementation (`google`) parses and checks. What it finds is made into closures over plain
data, which answer six times as fast; an expression with anything that has no closure (regular expressions,
time, conversions) is asked of the library whole. A property test holds the two together.

| module | what |
|---|---|
| `google` | the one place that knows its library, imported with the first expression |
| `wording` | what its messages mean |
| `tree` | its syntax tree |
| `closures`, `operators` | from the tree to functions |
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lehr.base.cel.operators import NoAnswerError, type_name
from lehr.base.cel.tree import Node, UnsupportedError, folds_within, read_tree

__all__ = [
    "Compiled",
    "Condition",
    "Expression",
    "NoAnswerError",
    "compile_condition",
    "compile_expression",
    "no_condition",
]

_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transform\w*)\s*\(")

Expression = Callable[[Mapping[str, Any]], Any]
"""Takes a value for each variable. Raises `NoAnswerError` when there is no answer for them."""

Condition = Callable[[Mapping[str, Any]], bool]
"""An expression that answers yes or no. Raises `NoAnswerError` also when it answers anything else."""


class Compiled(NamedTuple):
    """An expression, and its tree, for whoever wants to know what it asks for; None if that is not known.

    Attributes:
        fast: False if the library is asked.
    """

    answer: Expression
    tree: Node | None
    fast: bool


@functools.lru_cache(maxsize=1024)
def compile_expression(text: str, variables: tuple[str, ...]) -> Compiled:
    """The expression that `text` writes over `variables`.

    Raises:
        ValueError: it cannot be understood; the text says where.
    """
    from lehr.base.cel.closures import closure_of  # noqa: PLC0415
    from lehr.base.cel.google import compile_text  # noqa: PLC0415

    compiled = compile_text(text, variables)
    try:
        tree = read_tree(compiled.serialized())
    except UnsupportedError:
        _refuse_macros(len(_MACRO.findall(text)))
        return Compiled(compiled.answer, None, fast=False)
    try:
        closure = closure_of(tree, variables)
    except UnsupportedError:
        _refuse_macros(folds_within(tree))
        return Compiled(compiled.answer, tree, fast=False)
    return Compiled(lambda values: closure([values[name] for name in variables]), tree, fast=True)


def _refuse_macros(number: int) -> None:
    """The library cannot be stopped, and whoever asks it is held up meanwhile."""
    if number > 1:
        raise ValueError(
            "macros inside each other, with regular expressions, times or conversions: it could take for ever"
        )


@functools.lru_cache(maxsize=1024)
def compile_condition(text: str, variables: tuple[str, ...]) -> Condition:
    """The condition that `text` writes over `variables`.

    Raises:
        ValueError: it cannot be understood; the text says where.
    """
    expression = compile_expression(text, variables).answer

    def condition(values: Mapping[str, Any]) -> bool:
        answer = expression(values)
        if answer is True or answer is False:
            return answer
        raise no_condition(answer)

    return condition


def no_condition(answer: Any) -> NoAnswerError:
    """What is wrong with the answer of a condition that is neither true nor false."""
    return NoAnswerError(f"the answer is a {type_name(answer)}, not true or false")

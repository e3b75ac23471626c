"""Expressions in CEL, the Common Expression Language: compiled once, evaluated often.

In: text, and the names of its variables, whose types are not known in advance. Out: a function of plain data
(None, bool, int, float, str, list, dict with text for keys).

Google's implementation (`google`) parses and checks. Its tree is compiled to closures over plain data, which
are six times as fast; an expression that uses anything without a closure (regular expressions, time,
conversions) is evaluated entirely by the library. A property test checks that both agree.

Invariant: for the same values an expression has the same answer, in every process. The library iterates over
maps in an order that changes each time; so lists are built from maps by closures, or not at all.

| module | what |
|---|---|
| `google` | the one place that knows its library and its messages, imported with the first expression |
| `tree` | its syntax tree |
| `closures`, `operators` | from the tree to functions |
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lehr.cel.operators import NoAnswerError, type_name
from lehr.cel.tree import Call, Fold, ListOf, Node, UnsupportedError, folds_within, read_tree, walk

__all__ = [
    "Compiled",
    "Condition",
    "Expression",
    "NoAnswerError",
    "compile_condition",
    "compile_expression",
    "compile_question",
    "no_condition",
]

_LISTING = re.compile(r"\.\s*(?:filter|map)\s*\(")
_NO_ORDER = "`map` and `filter` over a map, with times, types, bytes or unsigned numbers, would have no order"
_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transform\w*)\s*\(")

_NO_CONDITIONS = ("int", "uint", "double", "string", "bytes", "list", "map", "timestamp", "duration", "null")

Expression = Callable[[Mapping[str, Any]], Any]
"""Takes a value for each variable. Raises `NoAnswerError` when there is no answer for them."""

Condition = Callable[[Mapping[str, Any]], bool]
"""An expression that answers yes or no. Any other answer also raises `NoAnswerError`."""


class Compiled(NamedTuple):
    """An expression, and its tree, which shows what it reads; None if unknown.

    Attributes:
        fast: False if the library evaluates it.
    """

    answer: Expression
    tree: Node | None
    fast: bool


@functools.lru_cache(maxsize=1024)
def compile_expression(text: str, variables: tuple[str, ...]) -> Compiled:
    """Compile the expression `text` over `variables`.

    Raises:
        ValueError: it is not valid; the message has the position.
    """
    from lehr.cel.closures import ASKED, closure_of  # noqa: PLC0415
    from lehr.cel.google import compile_text  # noqa: PLC0415

    compiled = compile_text(text, variables)
    try:
        tree = read_tree(compiled.serialized())
    except UnsupportedError:
        _refuse_macros(len(_MACRO.findall(text)))
        if _LISTING.search(text):
            raise ValueError(_NO_ORDER) from None
        return Compiled(compiled.answer, None, fast=False)
    listing = [part for part in walk(tree) if isinstance(part, Fold) and isinstance(part.initial, ListOf)]
    try:
        closure = closure_of(tree, variables)
    except UnsupportedError:
        _refuse_macros(folds_within(tree))
        return Compiled(_in_order(compiled.answer, listing, variables), tree, fast=False)
    fast = not any(isinstance(part, Call) and part.function in ASKED for part in walk(tree))
    if not fast:
        _refuse_macros(folds_within(tree))
        if not listing:
            return Compiled(compiled.answer, tree, fast)
    return Compiled(lambda values: closure([values[name] for name in variables]), tree, fast)


def _in_order(answer: Expression, listing: list[Fold], variables: tuple[str, ...]) -> Expression:
    """Refuse to build a list whose order changes each time, as the library's order of maps does.

    Args:
        listing: folds that build lists.

    Raises:
        ValueError: the source of a list is unknown.
    """
    from lehr.cel.closures import closure_of  # noqa: PLC0415

    try:
        sources = [closure_of(fold.over, variables) for fold in listing]
    except UnsupportedError:
        raise ValueError(_NO_ORDER) from None

    def in_order(values: Mapping[str, Any]) -> Any:
        given = [values[name] for name in variables]
        if any(isinstance(_known(source, given), dict) for source in sources):
            raise NoAnswerError(_NO_ORDER)
        return answer(values)

    return in_order if sources else answer


def _known(source: Callable[[list[Any]], Any], given: list[Any]) -> Any:
    try:
        return source(given)
    except NoAnswerError:
        return None  # the library has no answer here either


def _refuse_macros(number: int) -> None:
    """Refuse nested macros: the library cannot be interrupted, and blocks its caller."""
    if number > 1:
        raise ValueError(
            "macros inside each other, with regular expressions, times or conversions: it could take forever"
        )


@functools.lru_cache(maxsize=1024)
def compile_question(text: str, variables: tuple[str, ...]) -> Compiled:
    """As `compile_expression`, for an expression that may answer yes or no.

    Raises:
        ValueError: it is not valid, or is known to always answer something else.
    """
    from lehr.cel.google import compile_text  # noqa: PLC0415

    compiled, known = compile_expression(text, variables), compile_text(text, variables).type()
    if known.startswith(_NO_CONDITIONS):
        raise ValueError(f"1:1: its answer is of type {known}, but should be true or false")
    return compiled


@functools.lru_cache(maxsize=1024)
def compile_condition(text: str, variables: tuple[str, ...]) -> Condition:
    """Compile the condition `text` over `variables`.

    Raises:
        ValueError: it is not valid; the message has the position.
    """
    expression = compile_question(text, variables).answer

    def condition(values: Mapping[str, Any]) -> bool:
        answer = expression(values)
        if answer is True or answer is False:
            return answer
        raise no_condition(answer)

    return condition


def no_condition(answer: Any) -> NoAnswerError:
    """The problem with a condition's answer that is neither true nor false."""
    return NoAnswerError(f"the answer is of type {type_name(answer)}, not true or false")

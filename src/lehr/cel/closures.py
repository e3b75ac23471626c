"""Compiles a syntax tree to closures over plain data: six times as fast as the library, same answers.

A *frame* is a list of values: first those of the variables, then those of separately given fields, then the
number of steps left for macros, then one place for each variable of a macro. Regular expressions and
conversions of plain data call the library each time. Anything else (time, types, unsigned numbers, bytes)
raises `UnsupportedError`, and the library evaluates the whole expression.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET

from lehr.cel import operators
from lehr.cel.operators import NoAnswerError, equal, no_overload, ordered
from lehr.cel.tree import (
    Call,
    Constant,
    Fold,
    ListOf,
    MapOf,
    Name,
    Node,
    Select,
    UnsupportedError,
    Variable,
)

MOST_STEPS = 200_000
"""Maximum number of items that macros may visit for one answer: the caller is blocked during that time."""

Frame = list[Any]
Closure = Callable[[Frame], Any]
Field = tuple[str, str]
"""A variable that is a map, and one of its keys."""


def closure_of(tree: Node, variables: Sequence[str], fields: Sequence[Field] = ()) -> Closure:
    """A function from a list of values, one for each of `variables`, then of `fields`, to the answer.

    Args:
        fields: fields of maps that are not given as a whole. The value of a missing field is `UNSET`.

    The returned function raises `NoAnswerError`.

    Raises:
        UnsupportedError: the tree has something that has no closure here.
    """
    closure, rest = framed(tree, variables, fields)
    return lambda values: closure(values + rest)


def framed(tree: Node, variables: Sequence[str], fields: Sequence[Field] = ()) -> tuple[Closure, Frame]:
    """As `closure_of`, for callers that build the frame: the closure, and the frame's remaining part."""
    compiler = _Compiler(variables, fields)
    return compiler.compile(tree), compiler.rest()


class _Compiler:
    """Knows the place of each variable in the frame."""

    def __init__(self, variables: Sequence[str], fields: Sequence[Field]) -> None:
        self._variables = {name: place for place, name in enumerate(variables)}
        self._fields = {field: len(variables) + place for place, field in enumerate(fields)}
        self._places: dict[str, int] = {}
        self._totals: set[str] = set()
        self._left = len(variables) + len(fields)
        self._size = self._left + 1

    def rest(self) -> Frame:
        """The part of a frame after the given values."""
        return [MOST_STEPS, *[None] * (self._size - self._left - 1)]

    def compile(self, node: Node) -> Closure:
        match node:
            case Constant(value):
                return lambda frame: value
            case Variable(name):
                return operator.itemgetter(self._variables[name])
            case Name(name):
                return self._name(name)
            case Select(Variable(name), field, test) if (name, field) in self._fields:
                return (_has_given if test else _given)(self._fields[name, field], field)
            case Select(operand, field, test):
                return (_has if test else _select)(self.compile(operand), field)
            case Call(function, arguments):
                return self._call(function, arguments)
            case ListOf(items):
                parts = [self.compile(item) for item in items]
                return lambda frame: [part(frame) for part in parts]
            case MapOf(entries):
                return self._map(entries)
            case Fold():
                return self._fold(node)

    def _name(self, name: str) -> Closure:
        place = self._places.get(name)
        if place is None:
            raise UnsupportedError(f"the name {name}")
        if name not in self._totals:
            return operator.itemgetter(place)

        def total(frame: Frame) -> Any:
            value = frame[place]
            if type(value) is NoAnswerError:
                raise value
            return value

        return total

    def _call(self, function: str, nodes: Sequence[Node]) -> Closure:
        make = _FUNCTIONS.get((function, len(nodes)))
        if make is None:
            raise UnsupportedError(f"the function {function}")
        return make(*map(self.compile, nodes))

    def _map(self, entries: Sequence[tuple[Node, Node]]) -> Closure:
        parts = []
        for key, value in entries:
            if not isinstance(key, Constant) or not isinstance(key.value, str):
                raise UnsupportedError("a key that is not a string")
            parts.append((key.value, self.compile(value)))
        if len(dict(parts)) < len(parts):
            raise UnsupportedError("a duplicate key")
        return lambda frame: {key: part(frame) for key, part in parts}

    def _fold(self, fold: Fold) -> Closure:
        over, initial = self.compile(fold.over), self.compile(fold.initial)
        hidden = self._places.copy(), self._totals.copy()
        item, total = self._enter(fold.item), self._enter(fold.total)
        self._totals = {*self._totals - {fold.item}, fold.total}
        goes_on, step, result = map(self.compile, (fold.goes_on, fold.step, fold.result))
        self._places, self._totals = hidden
        left = self._left

        def folded(frame: Frame) -> Any:
            among = over(frame)
            if type(among) not in (list, dict):
                raise no_overload("a macro", among)
            frame[total] = initial(frame)
            for value in among:
                frame[left] -= 1
                if frame[left] < 0:
                    raise NoAnswerError(f"its macros visit more than {MOST_STEPS:,} items")
                frame[item] = value
                if not goes_on(frame):
                    break
                try:
                    frame[total] = step(frame)
                except NoAnswerError as error:
                    frame[total] = error  # a later item may still answer
            return result(frame)

        return folded

    def _enter(self, name: str) -> int:
        place = self._places[name] = self._size
        self._size += 1
        return place


def _given(place: int, field: str) -> Closure:
    def given(frame: Frame) -> Any:
        value = frame[place]
        if value is UNSET:
            raise _no_such_key(field)
        return value

    return given


def _has_given(place: int, field: str) -> Closure:
    return lambda frame: frame[place] is not UNSET


def _select(operand: Closure, field: str) -> Closure:
    def select(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is not dict:
            raise no_overload(f".{field}", value)
        try:
            return value[field]
        except KeyError:
            raise _no_such_key(field) from None

    return select


def _no_such_key(field: str) -> NoAnswerError:
    return NoAnswerError(f"no such key: {field}")


def _has(operand: Closure, field: str) -> Closure:
    def has(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not dict:
            raise no_overload("has", value)
        return field in value

    return has


def _logical(operator: str, deciding: bool, one: Closure, other: Closure) -> Closure:
    """`deciding` if either operand is, even if the other has no answer."""

    def both(frame: Frame) -> Any:
        try:
            first = one(frame)
        except NoAnswerError:
            if other(frame) is deciding:
                return deciding
            raise
        if first is deciding:
            return deciding
        second = other(frame)
        if type(first) is bool and type(second) is bool:
            return second
        if second is deciding:
            return deciding
        raise no_overload(operator, first, second)

    return both


def _not(one: Closure) -> Closure:
    def negated(frame: Frame) -> bool:
        value = one(frame)
        if type(value) is not bool:
            raise no_overload("!", value)
        return not value

    return negated


def _not_strictly_false(one: Closure) -> Closure:
    def not_false(frame: Frame) -> bool:
        try:
            return one(frame) is not False
        except NoAnswerError:
            return True

    return not_false


def _conditional(test: Closure, yes: Closure, no: Closure) -> Closure:
    def chosen(frame: Frame) -> Any:
        value = test(frame)
        if type(value) is not bool:
            raise no_overload("?:", value)
        return yes(frame) if value else no(frame)

    return chosen


def _equal(one: Closure, other: Closure) -> Closure:
    def answer(frame: Frame) -> bool:
        first, second = one(frame), other(frame)
        return first == second if type(first) is type(second) is str else equal(first, second)

    return answer


def _unequal(one: Closure, other: Closure) -> Closure:
    same = _equal(one, other)
    return lambda frame: not same(frame)


def _ordered(symbol: str, compare: Callable[[Any, Any], bool]) -> Callable[[Closure, Closure], Closure]:
    return lambda one, other: lambda frame: ordered(symbol, compare, one(frame), other(frame))


def _applied(function: Callable[..., Any]) -> Callable[..., Closure]:
    def one_argument(one: Closure) -> Closure:
        return lambda frame: function(one(frame))

    def two_arguments(one: Closure, other: Closure) -> Closure:
        return lambda frame: function(one(frame), other(frame))

    return lambda *arguments: one_argument(*arguments) if len(arguments) == 1 else two_arguments(*arguments)


def _of_texts(name: str, function: Callable[[str, str], bool]) -> Callable[[Closure, Closure], Closure]:
    def made(one: Closure, other: Closure) -> Closure:
        def answer(frame: Frame) -> bool:
            text, part = one(frame), other(frame)
            if type(text) is not str or type(part) is not str:
                raise no_overload(name, text, part)
            return function(text, part)

        return answer

    return made


def _asked(function: str, number: int) -> Callable[..., Closure]:
    """Call the library for this function only: the code around it keeps its order and can be interrupted."""

    def make(*arguments: Closure) -> Closure:
        from lehr.cel.google import compile_text  # noqa: PLC0415

        names = "abc"[:number]
        answer = compile_text(f"{function}({', '.join(names)})", names).answer
        return lambda frame: answer({name: part(frame) for name, part in zip(names, arguments, strict=True)})

    return make


ASKED = {"matches": 2, "string": 1, "int": 1, "double": 1, "bool": 1}
"""Functions from plain data to plain data that the library evaluates, with their number of arguments."""

_FUNCTIONS: dict[tuple[str, int], Callable[..., Closure]] = {
    **{(function, number): _asked(function, number) for function, number in ASKED.items()},
    ("_&&_", 2): partial(_logical, "&&", False),
    ("_||_", 2): partial(_logical, "||", True),
    ("!_", 1): _not,
    ("@not_strictly_false", 1): _not_strictly_false,
    ("_?_:_", 3): _conditional,
    ("_==_", 2): _equal,
    ("_!=_", 2): _unequal,
    ("_<_", 2): _ordered("<", operator.lt),
    ("_<=_", 2): _ordered("<=", operator.le),
    ("_>_", 2): _ordered(">", operator.gt),
    ("_>=_", 2): _ordered(">=", operator.ge),
    ("@in", 2): _applied(operators.contains),
    ("_[_]", 2): _applied(operators.index),
    ("_+_", 2): _applied(operators.add),
    ("_-_", 2): _applied(operators.subtract),
    ("_*_", 2): _applied(operators.multiply),
    ("_/_", 2): _applied(operators.divide),
    ("_%_", 2): _applied(operators.modulo),
    ("-_", 1): _applied(operators.negate),
    ("dyn", 1): lambda one: one,
    ("size", 1): _applied(operators.size),
    ("contains", 2): _of_texts("contains", str.__contains__),
    ("startsWith", 2): _of_texts("startsWith", str.startswith),
    ("endsWith", 2): _of_texts("endsWith", str.endswith),
}
"""Makes the closure of a function from those of its arguments, by name and number of arguments."""

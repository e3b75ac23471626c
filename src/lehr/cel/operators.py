"""The operators of CEL on plain data: None, bool, int, float, str, list, dict.

Unlike Python, CEL distinguishes `true` from `1` and refuses `1 + 1.0`; its integers have 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_LEAST, _MOST = -(2**63), 2**63 - 1


class NoAnswerError(ValueError):
    """An expression has no answer for these values."""


def no_overload(operator: str, *values: Any) -> NoAnswerError:
    """The operator does not support values of these types."""
    return NoAnswerError(f"no matching overload for `{operator}` with {', '.join(map(type_name, values))}")


def type_name(value: Any) -> str:
    """CEL's name for the type of `value`."""
    return _TYPE_NAMES.get(type(value), "dyn")


_TYPE_NAMES = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    list: "list",
    dict: "map",
}


def equal(one: Any, other: Any) -> bool:
    """`==`: numbers by value, an int and a double as doubles; everything else also by type."""
    kind, other_kind = type(one), type(other)
    if kind is other_kind:
        if kind is list:
            return len(one) == len(other) and all(map(equal, one, other))
        if kind is dict:
            return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
        return bool(one == other)
    return kind in (int, float) and other_kind in (int, float) and float(one) == float(other)


def ordered(symbol: str, compare: Callable[[Any, Any], bool], one: Any, other: Any) -> bool:
    """`<` and similar: of two strings, two booleans, or two numbers (as doubles, if only one is)."""
    kind, other_kind = type(one), type(other)
    if kind is other_kind and kind in (int, str, float, bool):
        return compare(one, other)
    if kind in (int, float) and other_kind in (int, float):
        return compare(float(one), float(other))
    raise no_overload(symbol, one, other)


def contains(item: Any, among: Any) -> bool:
    """`item in among`."""
    kind = type(among)
    if kind is list:
        return any(equal(item, other) for other in among)
    if kind is not dict or type(item) not in (str, int, float, bool):
        raise no_overload("in", item, among)
    return type(item) is str and item in among


def index(among: Any, at: Any) -> Any:
    """`among[at]`."""
    kind, at_kind = type(among), type(at)
    if kind is dict:
        if at_kind is str and at in among:
            return among[at]
        raise NoAnswerError(f"no such key: {at}")
    if kind is not list or at_kind not in (int, float):
        raise no_overload("[]", among, at)
    if 0 <= at < len(among) and at == int(at):
        return among[int(at)]
    raise NoAnswerError(f"index out of bounds: {at}, of a list of {len(among)}")


_LONGEST = {str: 200_000, list: 10_000}
"""Maximum characters or items in the result of `+`: doubled thirty times, they would exhaust memory."""


def add(one: Any, other: Any) -> Any:
    """`one + other`."""
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return _bounded(one + other)
        if kind is float:
            return one + other
        if kind in (str, list):
            if len(one) + len(other) > _LONGEST[kind]:
                raise NoAnswerError(f"the result of + is a {type_name(one)} of more than {_LONGEST[kind]:,}")
            return one + other
    raise no_overload("+", one, other)


def subtract(one: Any, other: Any) -> Any:
    """`one - other`."""
    return _arithmetic("-", one, other, one - other if _same_numbers(one, other) else None)


def multiply(one: Any, other: Any) -> Any:
    """`one * other`."""
    return _arithmetic("*", one, other, one * other if _same_numbers(one, other) else None)


def divide(one: Any, other: Any) -> Any:
    """`one / other`: of integers, towards zero."""
    if not _same_numbers(one, other):
        raise no_overload("/", one, other)
    if type(one) is int:
        if other == 0:
            raise NoAnswerError("divide by zero")
        quotient = abs(one) // abs(other)
        return _bounded(quotient if (one < 0) == (other < 0) else -quotient)
    if other != 0:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def modulo(one: Any, other: Any) -> Any:
    """`one % other`: with the sign of `one`."""
    if type(one) is not int or type(other) is not int:
        raise no_overload("%", one, other)
    if other == 0:
        raise NoAnswerError("modulus by zero")
    if one == _LEAST and other == -1:  # as for the quotient, which does not fit in 64 bits
        raise NoAnswerError("integer overflow")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def negate(value: Any) -> Any:
    """`-value`."""
    if type(value) is int:
        return _bounded(-value)
    if type(value) is float:
        return -value
    raise no_overload("-", value)


def size(value: Any) -> int:
    """`size(value)`: code points of a string, items of a list or map."""
    if type(value) in (str, list, dict):
        return len(value)
    raise no_overload("size", value)


def _same_numbers(one: Any, other: Any) -> bool:
    return type(one) is type(other) and type(one) in (int, float)


def _arithmetic(operator: str, one: Any, other: Any, answer: Any) -> Any:
    if answer is None:
        raise no_overload(operator, one, other)
    return _bounded(answer) if type(answer) is int else answer


def _bounded(value: int) -> int:
    if _LEAST <= value <= _MOST:
        return value
    raise NoAnswerError("integer overflow")

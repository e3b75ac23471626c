"""The one order of sets, and types of values that have none declared."""

from __future__ import annotations

from collections.abc import Callable

from lehr.plugins.terraform.provider import UNKNOWN, Number, Typed, Value
from lehr.plugins.terraform.values.cty_types import DYNAMIC, CtyType

Encoder = Callable[[Value, CtyType], bytes]


def in_order(elements: list[Value], type_: CtyType, encode: Encoder) -> list[Value]:
    """Elements of a set: texts as they sort, others by their bytes, and equal ones once.

    Unknown elements stay as many as they are, since each may turn out to be another one.
    """
    if all(type(element) is str for element in elements):
        return sorted(set(elements))
    by_bytes = sorted(((encode(element, type_), element) for element in elements), key=lambda pair: pair[0])
    kept: list[tuple[bytes, Value]] = []
    for data, element in by_bytes:
        if not kept or kept[-1][0] != data or has_unknown(element):
            kept.append((data, element))
    return [element for _data, element in kept]


def type_of(value: Value) -> CtyType:
    """The type of plain data: lists are tuples, dicts are objects, and null may be anything."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float() | Number():
            return "number"
        case list():
            return ["tuple", [type_of(element) for element in value]]
        case dict():
            return ["object", {name: type_of(value[name]) for name in sorted(value)}]
        case Typed():
            return DYNAMIC
    return DYNAMIC


def has_unknown(value: Value) -> bool:
    """Whether something in `value` is unknown."""
    match value:
        case list():
            return any(map(has_unknown, value))
        case dict():
            return any(map(has_unknown, value.values()))
        case Typed():
            return has_unknown(value.value)
    return value is UNKNOWN

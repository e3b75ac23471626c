"""Values as MessagePack, as cty encodes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from lehr.plugins.terraform.provider import UNKNOWN, Number, Typed, Unknown, Value
from lehr.plugins.terraform.values import numbers
from lehr.plugins.terraform.values.canonical import in_order, type_of
from lehr.plugins.terraform.values.cty_types import DYNAMIC, CtyType

_UNKNOWN = msgspec.msgpack.Ext(0, b"\0")
_REFINED = 12
"""Extension of an unknown value with limits. Only a planner needs these."""

_INT64 = range(-(2**63), 2**63)


class DamagedValueError(ValueError):
    """Bytes that are not a value of the expected type. The message has no part of them."""


def encode(value: Value, type: CtyType) -> bytes:
    """`value` of `type`. Equal values have equal bytes.

    Raises:
        ValueError: `value` is not of `type`, as configurations and decoded values are.
    """
    return msgspec.msgpack.encode(_packed(value, type))


def decode(data: bytes, type: CtyType) -> Value:
    """The value of `type` in `data`.

    Raises:
        DamagedValueError: there is none.
    """
    try:
        return unpacked(msgspec.msgpack.decode(data, ext_hook=_extension), type)
    except DamagedValueError:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedValueError("not MessagePack of a value") from error


def _packed(value: Value, type_: CtyType) -> Any:
    if value is None and type_ != DYNAMIC:
        return None
    if value is UNKNOWN and type_ != DYNAMIC:
        return _UNKNOWN
    if isinstance(type_, str):
        return _packed_scalar(value, type_)
    match type_:
        case ["object", fields, *_]:
            if not isinstance(value, dict) or value.keys() != fields.keys():
                raise ValueError("an object with other attributes than its type has")
            return {name: _packed(value[name], fields[name]) for name in sorted(fields)}
        case ["map", element] if isinstance(value, dict):
            return {key: _packed(value[key], element) for key in sorted(value)}
        case ["set", element] if isinstance(value, list):
            return [_packed(one, element) for one in in_order(value, element, encode)]
        case ["list", element] if isinstance(value, list):
            return [_packed(one, element) for one in value]
        case ["tuple", elements] if isinstance(value, list) and len(value) == len(elements):
            return [_packed(one, element) for one, element in zip(value, elements, strict=True)]
    raise ValueError(f"not a {type_[0]}")


def _packed_scalar(value: Value, type_: str) -> Any:
    match type_, value:
        case "dynamic", _:
            inner = value.type if isinstance(value, Typed) else type_of(value)
            if inner == DYNAMIC:  # then it is null or unknown
                return None if value is None else _UNKNOWN
            plain = value.value if isinstance(value, Typed) else value
            return [msgspec.json.encode(inner), _packed(plain, inner)]
        case ("bool", bool()) | ("string", str()):
            return value
        case "number", int() | float() | Number() if not isinstance(value, bool):
            return _packed_number(value)
    raise ValueError(f"not a {type_}")


def _packed_number(value: float | Number) -> Any:
    if isinstance(value, float):
        value = numbers.normal(value)
    if isinstance(value, int):
        return value if value in _INT64 else str(value)
    if isinstance(value, float) and Decimal(value) == Decimal(repr(value)):
        return value
    return numbers.digits_of(value)


def unpacked(data: Any, type_: CtyType) -> Value:
    """Decoded MessagePack as a value of `type_`."""
    if data is None or isinstance(data, Unknown):
        return data
    if isinstance(type_, str):
        return _unpacked_scalar(data, type_)
    match type_:
        case ["object", fields, *_] if isinstance(data, dict) and data.keys() == fields.keys():
            return {name: unpacked(data[name], fields[name]) for name in fields}
        case ["map", element] if isinstance(data, dict) and all(type(key) is str for key in data):
            return {key: unpacked(one, element) for key, one in data.items()}
        case ["set", element] if isinstance(data, list):
            return in_order([unpacked(one, element) for one in data], element, encode)
        case ["list", element] if isinstance(data, list):
            return [unpacked(one, element) for one in data]
        case ["tuple", elements] if isinstance(data, list) and len(data) == len(elements):
            return [unpacked(one, element) for one, element in zip(data, elements, strict=True)]
    raise DamagedValueError(f"a {type_[0]} is expected")


def _unpacked_scalar(data: Any, type_: str) -> Value:
    match type_, data:
        case ("bool", bool()) | ("string", str()):
            return data
        case "number", str():
            return numbers.parsed(data)
        case "number", float():
            return numbers.normal(data)
        case "number", int() if not isinstance(data, bool):
            return data
        case "dynamic", [bytes() | str() as inner, value]:
            own = msgspec.json.decode(inner)
            plain = unpacked(value, own)
            return plain if type_of(plain) == own else Typed(own, plain)
    raise DamagedValueError(f"a {type_} is expected")


def _extension(code: int, _data: memoryview) -> Unknown:
    if code not in {_UNKNOWN.code, _REFINED}:
        raise DamagedValueError(f"extension {code} of MessagePack is not known")
    return UNKNOWN

"""Values as JSON, as cty encodes them: for states that are kept, and upgraded later."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.plugins.terraform.provider import Number, Typed, Value
from lehr.plugins.terraform.values import numbers
from lehr.plugins.terraform.values.canonical import in_order, type_of
from lehr.plugins.terraform.values.cty_types import DYNAMIC, CtyType
from lehr.plugins.terraform.values.msgpack_codec import DamagedValueError, encode

_decoder = msgspec.json.Decoder(float_hook=numbers.parsed)


def to_json(value: Value, type: CtyType) -> bytes:
    """`value` of `type`, which has nothing unknown, as JSON.

    Raises:
        ValueError: `value` is not of `type`, or something in it is unknown.
    """
    encode(value, type)  # checks the type
    return msgspec.json.encode(_plain(value, type))


def from_json(data: bytes, type: CtyType) -> Value:
    """The value of `type` in `data`.

    Raises:
        DamagedValueError: there is none.
    """
    try:
        value = _read(_decoder.decode(data), type)
        encode(value, type)
    except (
        msgspec.MsgspecError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
    ) as error:
        raise DamagedValueError("not JSON of a value of this type") from error
    return value


def _plain(value: Value, type_: CtyType) -> Any:
    if value is None:
        return None
    match type_:
        case "dynamic":
            inner = value.type if isinstance(value, Typed) else type_of(value)
            if inner == DYNAMIC:
                raise ValueError("an unknown value cannot be JSON")
            plain = value.value if isinstance(value, Typed) else value
            return {"value": _plain(plain, inner), "type": inner}
        case ["object", fields, *_]:
            return {name: _plain(value[name], fields[name]) for name in fields}
        case ["map", element]:
            return {key: _plain(one, element) for key, one in value.items()}
        case ["tuple", elements]:
            return [_plain(one, element) for one, element in zip(value, elements, strict=True)]
        case ["list" | "set", element]:
            return [_plain(one, element) for one in value]
    if isinstance(value, Number) or (isinstance(value, int) and not isinstance(value, bool)):
        return msgspec.Raw(numbers.digits_of(value).encode())
    if isinstance(value, str | bool | float):
        return value
    raise ValueError("an unknown value cannot be JSON")


def _read(data: Any, type_: CtyType) -> Value:
    if data is None:
        return None
    match type_:
        case "number":
            return numbers.parsed(data) if isinstance(data, str) else data
        case "dynamic":
            own = data["type"]
            plain = _read(data["value"], own)
            return plain if type_of(plain) == own else Typed(own, plain)
        case ["object", fields, *_]:
            if data.keys() - fields.keys():
                raise ValueError("attributes that the type does not have")
            return {name: _read(data.get(name), fields[name]) for name in fields}
        case ["map", element]:
            return {key: _read(one, element) for key, one in data.items()}
        case ["tuple", elements]:
            return [_read(one, element) for one, element in zip(data, elements, strict=True)]
        case ["list", element]:
            return [_read(one, element) for one in data]
        case ["set", element]:
            return in_order([_read(one, element) for one in data], element, encode)
    return data

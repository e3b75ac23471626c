"""Single values of protobuf's JSON form, each in its canonical stored form.

https://protobuf.dev/programming-guides/json defines the accepted forms.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
import struct
from collections.abc import Callable
from typing import Any

_INTEGER = re.compile(r"-?[0-9]{1,40}")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"(-?)([0-9]+)(?:\.([0-9]{1,9}))?s")
_LONGEST_DURATION = 315_576_000_000
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EXACT = 2**53
_NANOS = 9


class UnfitError(ValueError):
    """A value is of the wrong kind.

    Attributes:
        wanted: the expected kind (`a 64-bit integer`); why: why this value is not of that kind.
    """

    def __init__(self, wanted: str, why: str = "") -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.why = why


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any, bits: int, *, signed: bool) -> int:
    wanted = f"{'a' if signed else 'a non-negative'} {bits}-bit integer"
    text = isinstance(value, str) and _INTEGER.fullmatch(value)
    if not (text or _is_number(value)) or (isinstance(value, float) and not value.is_integer()):
        raise UnfitError(wanted)
    number = int(value)
    lowest = -(2 ** (bits - 1)) if signed else 0
    if not lowest <= number < lowest + 2**bits:
        raise UnfitError(wanted, f"it goes from {lowest:,} to {lowest + 2**bits - 1:,}")
    return number


def _double(value: Any) -> float | str:
    if isinstance(value, str) and value in _NOT_FINITE:
        return value
    if not (_is_number(value) or (isinstance(value, str) and _DECIMAL.fullmatch(value))):
        raise UnfitError("a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnfitError("a number", "it is too large")
    return number


def _float(value: Any) -> float | str:
    number = _double(value)
    if isinstance(number, str):
        return number
    try:
        stored = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError as error:
        raise UnfitError("a 32-bit number", "it is too large") from error
    # The shortest text that is read as the same 32 bits, so that 0.1 stays 0.1.
    for digits in range(6, 9):
        short = float(f"{stored:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", stored):
            return short
    return float(f"{stored:.9g}")


def _exactly(kind: type, wanted: str) -> Callable[[Any], Any]:
    """Takes values of one kind as they are."""

    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            raise UnfitError(wanted)
        return value

    return check


def _bytes(value: Any) -> str:
    if not isinstance(value, str):
        raise UnfitError("bytes in base64")
    text = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnfitError("bytes in base64") from error
    return base64.b64encode(content).decode()


def _timestamp(value: Any) -> str:
    wanted = "a time such as `2026-11-21T18:00:00Z`"
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise UnfitError(wanted)
    date, time, fraction, zone = found.groups()
    try:
        moment = datetime.datetime.fromisoformat(f"{date}T{time}{zone.upper().replace('Z', '+00:00')}")
        utc = moment.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise UnfitError(wanted, str(error)) from error
    return f"{utc.year:04}{utc:-%m-%dT%H:%M:%S}{_fraction(fraction)}Z"


def _duration(value: Any) -> str:
    wanted = "a number of seconds such as `1.5s`"
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise UnfitError(wanted)
    sign, seconds, fraction = found.groups()
    if int(seconds) + (int(fraction or 0) > 0) > _LONGEST_DURATION:
        raise UnfitError(wanted, "it is longer than 10,000 years")
    text = f"{int(seconds)}{_fraction(fraction)}"
    return f"{'' if text == '0' else sign}{text}s"


def _fraction(digits: str | None) -> str:
    """Fractions of a second with as many digits as needed: 0, 3, 6 or 9."""
    nanos = (digits or "").ljust(_NANOS, "0").rstrip("0")
    return f".{nanos.ljust(-(-len(nanos) // 3) * 3, '0')}" if nanos else ""


def _open(value: Any) -> Any:
    """Any JSON. Its numbers are doubles, so that 1 and 1.0 are equal."""
    if isinstance(value, dict):
        return {name: _open(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_open(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return float(value)
    return value


def _any(value: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get("@type"), str):
        raise UnfitError("a mapping with `@type`")
    return value


def _null(value: Any) -> None:
    if value not in (None, "NULL_VALUE", 0) or isinstance(value, bool):
        raise UnfitError("null")


_MAPPING, _LIST = _exactly(dict, "a mapping"), _exactly(list, "a list")
CANONICAL: dict[str, Callable[[Any], Any]] = {
    "any": _any,
    "bool": _exactly(bool, "`true` or `false`"),
    "bytes": _bytes,
    "double": _double,
    "duration": _duration,
    "float": _float,
    "int32": lambda value: _integer(value, 32, signed=True),
    "int64": lambda value: str(_integer(value, 64, signed=True)),
    "list": lambda value: _open(_LIST(value)),
    "null": _null,
    "string": _exactly(str, "a string"),
    "struct": lambda value: _open(_MAPPING(value)),
    "timestamp": _timestamp,
    "uint32": lambda value: _integer(value, 32, signed=False),
    "uint64": lambda value: str(_integer(value, 64, signed=False)),
    "value": _open,
}
"""By kind, the function that returns the stored form of a value, or raises `UnfitError`."""

"""Moments as people and other programs read them: RFC 3339, in UTC, to the microsecond.

Within the program a moment is a `float`, wall-clock seconds since the epoch. Fields that hold one are of type
`Moment`; so one function turns all of them to text where values leave the program, and one turns them back.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta, inspect

T = TypeVar("T")

_EPOCH = dt.datetime.fromtimestamp(0, tz=dt.UTC)
_FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC).timestamp()
_LAST = dt.datetime(9999, 12, 31, tzinfo=dt.UTC).timestamp()

_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}

_MARK = "lehr-moment"
_FORMAT = "date-time"

Moment = Annotated[
    float,
    Meta(
        extra={_MARK: True},
        extra_json_schema={"format": _FORMAT, "examples": ["2026-01-31T12:00:00.000000Z"]},
    ),
]
"""Wall-clock seconds since the epoch; in JSON, text in RFC 3339."""

_Change = Callable[[Any], Any]


def rfc3339(seconds: float) -> str:
    """A moment as text: `2026-01-31T12:00:00.000000Z`.

    A time before the year 1 or after 9999, or not a number, becomes the nearest that can be
    written.
    """
    kept = max(_FIRST, min(seconds, _LAST))
    moment = _EPOCH + dt.timedelta(microseconds=round(kept * 1e6))
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def seconds_of(text: str) -> float:
    """The moment that `text` is; without a zone, in UTC.

    Raises:
        ValueError: it is not a time in RFC 3339.
    """
    moment = dt.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


def span(seconds: float) -> str:
    """A duration in its two largest units: `45s`, `3m10s`, `5h`, `2d4h`."""
    seconds = max(0.0, seconds)
    if seconds < 1.0:
        return f"{seconds * 1000:.0f}ms" if seconds else "0s"
    whole = round(seconds)
    for (unit, size), (smaller, part) in itertools.pairwise(_UNITS.items()):
        if whole >= size:
            count, rest = whole // size, whole % size // part
            # After many hours, minutes do not matter.
            return f"{count}{unit}{rest}{smaller}" if rest and count < 10 else f"{count}{unit}"
    return f"{whole}s"


def plain(value: Any, kind: Any = None) -> Any:
    """`value` as plain data for JSON, its moments as text.

    Args:
        kind: its type; by default that of the value itself.
    """
    change = _changing(cast("Hashable", type(value) if kind is None else kind), rfc3339)
    built = msgspec.to_builtins(value)
    return built if change is None else change(built)


def encode(value: Any, kind: Any) -> bytes:
    """`value`, which is a `kind`, as JSON."""
    return msgspec.json.encode(value if _changing(kind, rfc3339) is None else plain(value, kind))


def decode(content: bytes, kind: type[T]) -> T:
    """Reverses `encode`.

    Raises:
        msgspec.DecodeError: it is something else.
    """
    change = _changing(cast("Hashable", kind), seconds_of)
    if change is None:
        return msgspec.json.decode(content, type=kind)
    try:
        return msgspec.convert(change(msgspec.json.decode(content)), kind)
    except (ValueError, TypeError, AttributeError) as error:
        raise msgspec.ValidationError(str(error)) from error


def described(schema: Any) -> Any:
    """A JSON schema that msgspec has made, with moments as the text that they are in JSON."""
    if isinstance(schema, (list, tuple)):
        return [described(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: described(item) for name, item in schema.items()}
    if found.get("format") == _FORMAT and found.get("type") == "number":
        found["type"] = "string"
    return found


@functools.lru_cache(maxsize=256)
def _changing(kind: Hashable, each: _Change) -> _Change | None:
    """A function that applies `each` to the moments within plain data of `kind`; None if it has none."""
    try:
        return _within(inspect.type_info(kind), each, {})
    except TypeError:  # a kind that JSON knows and msgspec does not describe
        return None


def _within(node: inspect.Type, each: _Change, known: dict[type, Any]) -> _Change | None:
    match node:
        case inspect.Metadata():
            return each if (node.extra or {}).get(_MARK) else _within(node.type, each, known)
        case inspect.StructType():
            return _of_struct(node, each, known)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return _of_each(_within(node.item_type, each, known))
        case inspect.DictType():
            return _of_values(_within(node.value_type, each, known))
        case inspect.UnionType():
            return _unless_none(_of_one(node.types, each, known))
    return None


def _of_one(types: Sequence[inspect.Type], each: _Change, known: dict[type, Any]) -> _Change | None:
    """For one of several types: structs are distinguished by their tags."""
    structs = [one for one in types if isinstance(one, inspect.StructType) and one.tag_field is not None]
    if len(structs) < 2:
        changes = (_within(one, each, known) for one in types)
        return next((change for change in changes if change is not None), None)
    field = structs[0].tag_field
    by_tag = {one.tag: change for one in structs if (change := _within(one, each, known)) is not None}

    def change_one(found: Any) -> Any:
        change = by_tag.get(found.get(field))
        return found if change is None else change(found)

    return change_one if by_tag else None


def _of_each(item: _Change | None) -> _Change | None:
    return None if item is None else lambda found: [item(value) for value in found]


def _of_values(item: _Change | None) -> _Change | None:
    return None if item is None else lambda found: {name: item(value) for name, value in found.items()}


def _unless_none(change: _Change | None) -> _Change | None:
    return None if change is None else lambda found: None if found is None else change(found)


def _of_struct(node: inspect.StructType, each: _Change, known: dict[type, Any]) -> _Change | None:
    if node.cls not in known:
        if not _holds(node, set()):
            return None
        changes: dict[str, _Change] = {}
        known[node.cls] = changes  # before its fields, because it may hold itself
        for field in node.fields:
            change = _within(field.type, each, known)
            if change is not None:
                changes[field.encode_name] = change
    found: dict[str, _Change] = known[node.cls]
    return lambda value: _applied(found, value)


def _holds(node: inspect.Type, seen: set[type]) -> bool:
    """Whether there is a moment anywhere within."""
    inner: Iterable[inspect.Type] = ()
    match node:
        case inspect.Metadata():
            if (node.extra or {}).get(_MARK):
                return True
            inner = (node.type,)
        case inspect.StructType() if node.cls not in seen:
            seen.add(node.cls)
            inner = [field.type for field in node.fields]
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            inner = (node.item_type,)
        case inspect.DictType():
            inner = (node.value_type,)
        case inspect.UnionType():
            inner = node.types
    return any(_holds(one, seen) for one in inner)


def _applied(changes: dict[str, _Change], value: Any) -> Any:
    return {name: changes[name](item) if name in changes else item for name, item in value.items()}

"""Finds the first difference between two outputs of the same input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.digest import canonical
from lehr.base.pointers import pointer
from lehr.generate.outcome.output import Addition, Output
from lehr.generate.typing.problems import quoted
from lehr.model.asset import Asset

_LONGEST = 60
_MISSING = object()

K = TypeVar("K")
V = TypeVar("V")


def difference(before: Output, after: Output) -> str | None:
    """The first difference, in words; None if they are equal. The order of yielded items does not count."""
    return next(_differences(before, after), None)


def _differences(before: Output, after: Output) -> Iterator[str]:
    failed = errors(after.diagnostics)
    if failed and not errors(before.diagnostics):
        yield f"it fails: {failed[0].what}; {failed[0].why}"
    for id, one, other in _pairs(_assets(before), _assets(after)):
        if one is None or other is None:
            yield f"it makes {quoted(id)} one time, and another time it does not"
        elif one.digest != other.digest:
            yield f"of {quoted(id)}, {_field(one.document(), other.document())}"
        elif one != other:
            yield f"{quoted(id)} comes from another line"
    for (id, addon), first, second in _pairs(_additions(before), _additions(after)):
        if first is None or second is None:
            yield f"it puts {addon} on {quoted(id)} one time, and another time it does not"
        elif _value(first) != _value(second):
            yield f"of {addon} on {quoted(id)}, {_field(_value(first), _value(second))}"
    if _problems(before) != _problems(after):
        yield "it finds other problems"


def _assets(output: Output) -> dict[str, Asset]:
    return {asset.id: asset for asset in output.assets}


def _additions(output: Output) -> dict[tuple[str, str], Addition]:
    return {(item.id, item.addon): item for item in output.additions}


def _problems(output: Output) -> list[Diagnostic]:
    return in_order(sorted(output.diagnostics, key=lambda item: item.what))


def _value(addition: Addition) -> Any:
    return msgspec.json.decode(canonical(addition.value))


def _pairs(one: Mapping[K, V], other: Mapping[K, V]) -> Iterable[tuple[K, V | None, V | None]]:
    both = dict.fromkeys((*one, *other))
    return ((key, one.get(key), other.get(key)) for key in both)


def _field(one: Any, other: Any) -> str:
    """The first field that differs, with both values. `one` and `other` are plain data, and differ."""
    path: list[str | int] = []
    while True:
        inner = _inner(one, other)
        if inner is None:
            return f"{pointer(path) or 'the value'} is {_shown(one)}, and another time {_shown(other)}"
        key, one, other = inner
        path.append(key)


def _inner(one: Any, other: Any) -> tuple[str | int, Any, Any] | None:
    pairs: Iterable[tuple[str | int, Any, Any]] = ()
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        pairs = ((key, one.get(key, _MISSING), other.get(key, _MISSING)) for key in keys)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = ((index, *both) for index, both in enumerate(zip(one, other, strict=True)))
    return next((pair for pair in pairs if pair[1] is not pair[2] and pair[1] != pair[2]), None)


def _shown(value: Any) -> str:
    text = "missing" if value is _MISSING else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

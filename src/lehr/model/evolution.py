"""How types change: converts data of a former version to a later one, one version at a time."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.errors import StalledError
from lehr.base.pointers import parts_of
from lehr.model.references import values_at

FIRST = 1
"""Version of a type that has never changed its form."""

Upgrade = Callable[[int, Any], Any]
"""Converts plain data of a version to the next version. It does not change its input."""

Pointer = Annotated[str, msgspec.Meta(pattern="^/")]
"""JSON pointer to a field, through mappings alone."""

_ABSENT = object()

_INTEGERS = range(-(2**63), 2**64)
_NO_NUMBER = "`{}` must be {} of 64 bits, and is not"  # without quoting it: it may be a secret


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text becomes several fields.

    Attributes:
        field: the text, which is removed.
        by: separator of its parts, of which there must be as many as fields in `into`.
    """

    field: Pointer
    by: Annotated[str, msgspec.Meta(min_length=1)]
    into: Annotated[tuple[Pointer, ...], msgspec.Meta(min_length=2)]


class Join(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several fields become one text.

    Attributes:
        fields: removed. If one of them is absent, nothing is done.
        by: separator between them.
    """

    fields: Annotated[tuple[Pointer, ...], msgspec.Meta(min_length=2)]
    by: str
    into: Pointer


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change of form. An absent field stays absent, except by `default`.

    Fields are given as JSON pointers, relative to `within`. If a step has several parts, they are applied
    in the order listed here.

    Attributes:
        within: what is changed: the payload itself, or, for a pattern like those of references, each
            mapping that it matches (`/members/*`).
        rename: from the old field to the new one.
        split: a text that becomes several fields.
        join: fields that become one text.
        retype: fields that get another kind of value.
        replace: for each field, values that become others; only text.
        default: values of fields that are absent.
        remove: fields to remove.
    """

    within: str = ""
    rename: dict[Pointer, Pointer] = {}
    split: Split | None = None
    join: Join | None = None
    retype: dict[Pointer, Literal["string", "integer", "number"]] = {}
    replace: dict[Pointer, dict[str, Any]] = {}
    default: dict[Pointer, Any] = {}
    remove: tuple[Pointer, ...] = ()


class Former(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version that a type once had.

    Attributes:
        steps: turn its data into data of the next version.
    """

    version: Annotated[int, msgspec.Meta(ge=FIRST)]
    steps: tuple[Step, ...] = ()


class Evolution(msgspec.Struct, frozen=True):
    """Which version a type has, and how data of former ones becomes data of this one.

    Attributes:
        version: counts from 1.
        upgrade: None if only fields with defaults were added.
    """

    version: int = FIRST
    upgrade: Upgrade | None = None

    def convert(self, value: Any, version: int, wanted: int) -> Any:
        """Plain data of `version` as data of the version that is `wanted`, at most the newest.

        Raises:
            StalledError: it is impossible: there is no way back to a former version, or the data
                does not fit.
        """
        if version > wanted:
            raise StalledError(
                f"it has version {version}, and its reader understands version {wanted}",
                code="MOD102",
                why="data of a later version cannot be converted to an earlier one",
                fix="update the reader, or go back to a form of version " + str(wanted),
            )
        if self.upgrade is None:
            return value
        for step in range(version, wanted):
            try:
                value = self.upgrade(step, value)
            except (ValueError, TypeError, LookupError, RecursionError) as error:
                raise StalledError(
                    f"data of version {step} cannot become data of version {step + 1}",
                    code="MOD103",
                    why=str(error),
                    fix="fix what the type declares about its former versions",
                ) from error
        return value


UNCHANGED = Evolution()
"""Of a type that has never changed its form."""


def evolution(version: int, formers: Iterable[Former]) -> Evolution:
    """That of a type whose former versions are declared."""
    steps = {former.version: former.steps for former in formers if former.steps}
    if version == FIRST and not steps:
        return UNCHANGED

    def upgrade(former: int, value: Any) -> Any:
        return stepped(value, steps.get(former, ()))

    return Evolution(version, upgrade if steps else None)


def stepped(value: Any, steps: Iterable[Step]) -> Any:
    """Plain data after all `steps`; `value` stays as it is.

    Raises:
        ValueError: it does not have the form that a step expects.
    """
    whole = copy.deepcopy(value)
    for step in steps:
        for _path, place in list(values_at(whole, step.within, "")):
            if isinstance(place, dict):
                _do(step, place)
    return whole


def _do(step: Step, place: dict[str, Any]) -> None:
    moved = {new: _take(place, old) for old, new in step.rename.items()}
    for new, value in moved.items():
        if value is not _ABSENT:
            _add(place, new, value)
    if step.split is not None:
        _split(step.split, place)
    if step.join is not None:
        _join(step.join, place)
    for pointer, kind in step.retype.items():
        _change(place, pointer, functools.partial(_retyped, pointer=pointer, kind=kind))
    for pointer, others in step.replace.items():
        _change(place, pointer, functools.partial(_replaced, others=others))
    for pointer, value in step.default.items():
        if _look(place, pointer) is _ABSENT:
            _put(place, pointer, copy.deepcopy(value))
    for pointer in step.remove:
        _take(place, pointer)


def _split(split: Split, place: dict[str, Any]) -> None:
    value = _look(place, split.field)
    if value is _ABSENT:
        return
    parts = value.split(split.by) if isinstance(value, str) else []
    if len(parts) != len(split.into):
        raise ValueError(
            f"`{split.field}` does not have {len(split.into)} parts with `{split.by}` between them"
        )
    _take(place, split.field)
    for pointer, part in zip(split.into, parts, strict=True):
        _add(place, pointer, part)


def _join(join: Join, place: dict[str, Any]) -> None:
    values = [_look(place, pointer) for pointer in join.fields]
    if any(value is _ABSENT for value in values):
        return
    for pointer in join.fields:
        _take(place, pointer)
    _add(place, join.into, join.by.join(map(_text, values)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _retyped(value: Any, pointer: str, kind: str) -> Any:
    if kind == "string":
        return _text(value)
    refused = ValueError(_NO_NUMBER.format(pointer, "an integer" if kind == "integer" else "a number"))
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise refused
    try:
        number = float(value) if kind == "number" else int(value)
    except (ValueError, OverflowError):
        raise refused from None
    rounded = not isinstance(value, str) and number != value
    if rounded or not (math.isfinite(number) if kind == "number" else number in _INTEGERS):
        raise refused
    return number


def _replaced(value: Any, others: Mapping[str, Any]) -> Any:
    return copy.deepcopy(others.get(value, value)) if isinstance(value, str) else value


def _change(place: dict[str, Any], pointer: str, change: Callable[[Any], Any]) -> None:
    value = _look(place, pointer)
    if value is not _ABSENT:
        _put(place, pointer, change(value))


def _look(place: dict[str, Any], pointer: str) -> Any:
    value: Any = place
    for part in parts_of(pointer):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _take(place: dict[str, Any], pointer: str) -> Any:
    *before, last = parts_of(pointer)
    for part in before:
        inner = place.get(part)
        if not isinstance(inner, dict):
            return _ABSENT
        place = inner
    return place.pop(last, _ABSENT)


def _add(place: dict[str, Any], pointer: str, value: Any) -> None:
    if _look(place, pointer) is not _ABSENT:
        raise ValueError(f"`{pointer}` exists already, and its value would be lost")
    _put(place, pointer, value)


def _put(place: dict[str, Any], pointer: str, value: Any) -> None:
    *before, last = parts_of(pointer)
    for part in before:
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ValueError(f"`{pointer}` would be inside a value that is not a mapping")
        place = inner
    place[last] = value

"""The screen of how one asset differs: intent, production, what was applied, and the origin of fields. Pure.

A plugin may describe a value instead of showing it, because it is long or may be a secret. Then the value is
not shown from intent either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.base.pointers import parts_of, pointer
from lehr.page.answers import attributes

MOST_ROWS = 200
_MOST_FOUND = 3
_ABSENT = object()

Parts = tuple[str, ...]


class Intended(NamedTuple):
    """An asset as resources have it, at two times; None where it is not known or intent does not have it.

    Attributes:
        now: with the content that was compared with production.
        applied: with the content that was applied last.
    """

    now: Any
    applied: Any


class Value(NamedTuple):
    """A value in a row.

    Attributes:
        known: False for one that is only described.
        text: the description.
    """

    value: Any
    known: bool = True
    text: str = ""


class Row(NamedTuple):
    """A field that differs.

    Attributes:
        kind: removed, added or changed in production by the push; or intent, where only intent has changed.
        pointer: JSON pointer into the asset; empty if the plugin's path is not one of its fields.
    """

    path: str
    kind: str
    intended: Value
    observed: Value
    applied: Value
    pointer: str


class Origin(NamedTuple):
    """A place that a value comes from.

    Attributes:
        how: the place's part in the value, such as `set at`.
        where: file and line.
        by: the generator or policy; empty for none.
        commit: the last that changed it; None if it is not known.
    """

    how: str
    where: str
    by: str
    commit: Any


def rows_of(diff: Any, intended: Intended) -> list[Row]:
    """The fields that differ from production, then those that intent has changed since it was applied."""
    rows = [] if diff is None else [_row(change, intended) for change in diff["changes"]]
    observed = _NOT_COMPARED if diff is None else _NO_DIFFERENCE
    shown = [parts_of(row.pointer) for row in rows if row.pointer]
    for parts in _changed(intended):
        if not any(parts[: len(other)] == other or other[: len(parts)] == parts for other in shown):
            now, applied = _value(intended.now, parts), _value(intended.applied, parts)
            rows.append(Row(_name(parts), "intent", now, observed, applied, pointer(parts)))
    return rows


_NO_DIFFERENCE = Value(None, False, "no difference reported")
_NOT_COMPARED = Value(None, False, "not compared")
_UNKNOWN = Value(None, False, "not known")
_NOT_THERE = Value(None, False, "absent")


def _row(change: Any, intended: Intended) -> Row:
    wanted, observed = change["intended"], change["observed"]
    kind = "removed" if wanted is None else "added" if observed is None else "changed"
    parts = _field(intended.now, change["path"])
    return Row(
        path=change["path"],
        kind=kind,
        intended=_NOT_THERE if wanted is None else Value(wanted),
        observed=_NOT_THERE if observed is None else Value(observed),
        applied=_UNKNOWN if parts is None else _applied(wanted, intended, parts),
        pointer="" if parts is None else pointer(parts),
    )


def _applied(wanted: Any, intended: Intended, parts: Parts) -> Value:
    """The value that was applied last. It is only compared if the plugin does not show it."""
    if intended.applied is None:
        return _UNKNOWN
    now, before = _at(intended.now, parts), _at(intended.applied, parts)
    if now == wanted:
        return _value(intended.applied, parts)
    return Value(None, False, "as intended" if now == before else "another value")


def _value(asset: Any, parts: Parts) -> Value:
    if asset is None:
        return _UNKNOWN
    found = _at(asset, parts)
    return _NOT_THERE if found is _ABSENT else Value(found)


# --- fields --------------------------------------------------------------------------------


def _field(asset: Any, path: str) -> Parts | None:
    """The field that a plugin's path names, or the object or list that it is in; None if it is neither."""
    given = [part for part in path.split("/") if part]
    if asset is None or not given:
        return None
    parts: Parts = () if given[0] in ("payload", "addons") else ("payload",)
    least = len(parts)
    for part in given:
        if _at(asset, (*parts, part)) is _ABSENT:
            return (
                parts if len(parts) > max(least, 1) and isinstance(_at(asset, parts), dict | list) else None
            )
        parts = (*parts, part)
    return parts


def _at(value: Any, parts: Parts) -> Any:
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _ABSENT
    return value


def _changed(intended: Intended) -> Iterator[Parts]:
    """Fields that differ between the two: the deepest that both could have."""
    if intended.now is None or intended.applied is None:
        return
    for root in ("payload", "addons"):
        yield from _different(intended.now[root], intended.applied[root], (root,))


def _different(now: Any, before: Any, parts: Parts) -> Iterator[Parts]:
    if isinstance(now, dict) and isinstance(before, dict):
        for key in sorted({*now, *before}):
            yield from _different(now.get(key, _ABSENT), before.get(key, _ABSENT), (*parts, key))
    elif now != before:
        yield parts


def _name(parts: Parts) -> str:
    return "/".join(parts[1:] if parts[0] == "payload" else parts)


# --- origins -------------------------------------------------------------------------------


def origins_of_field(answer: Any) -> tuple[Origin, ...]:
    """Where the value of a field comes from, by an answer of `blame` about it."""
    return tuple(_of_field(attributes(answer)))


def _of_field(found: Any) -> Iterator[Origin]:
    own, field = found.chain[0], found.field
    if field.written is not None:
        yield _origin("set at", field.written)
    elif own.declared is not None and own.declared.content and own.recorded and not field.makers:
        yield Origin("default of the type, not set in", own.declared.at.file, "", None)
    for index in field.makers:
        maker = own.makers[index]
        yield _origin("set by", maker.code, maker.by[0])
    for item in field.found[:_MOST_FOUND]:
        yield _origin("value found at", item.source)


def origins_of_asset(answer: Any) -> tuple[Origin, ...]:
    """Where an asset comes from, by an answer of `blame`."""
    return tuple(_of_asset(attributes(answer).chain[0]))


def _of_asset(own: Any) -> Iterator[Origin]:
    if own.declared is not None:
        yield _origin("declared at" if own.recorded else "made from", own.declared)
    for maker in own.makers:
        verb = "changed by" if maker.path else "annotated by" if maker.addon else "made by"
        yield _origin(verb, maker.code, maker.by[0])
        for file in maker.files[:_MOST_FOUND]:
            yield _origin("from", file)


def _origin(how: str, source: Any, by: str = "") -> Origin:
    at = source.at
    return Origin(how, f"{at.file}:{at.line}" if at.line else at.file, by, source.commit)


def pointers_of(rows: list[Row], most: int) -> tuple[str, ...]:
    """The fields whose origins to look up, at most so many."""
    return tuple(dict.fromkeys(row.pointer for row in rows if row.pointer))[:most]

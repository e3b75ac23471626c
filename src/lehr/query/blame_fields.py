"""Fields of an asset by name, and other places that contain a field's value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.base import documents
from lehr.base.diagnostics import Position
from lehr.base.digest import canonical
from lehr.base.errors import LehrError
from lehr.base.pointers import parts_of, pointer

_ROOTS = ("payload", "addons")
_INDEX = re.compile(r"\[(\d+)\]")
_MOST_NAMED = 12


class Field(msgspec.Struct, frozen=True):
    """A field of an asset's document, and its value."""

    parts: tuple[str, ...]
    value: Any

    @property
    def pointer(self) -> str:
        """As a JSON pointer (RFC 6901)."""
        return pointer(self.parts)

    @property
    def name(self) -> str:
        """The last name on its path that is not an index of a list; empty if there is none."""
        return next((part for part in reversed(self.parts) if not part.isdecimal()), "")


def field_of(document: dict[str, Any], text: str) -> Field:
    """The field that `text` names: a JSON pointer, or a dotted path with or without `payload.`.

    Keys may hold dots (`addons.lehr.Owner.team`); an index may be in brackets (`ports[0]`).

    Raises:
        LehrError: the asset has no such field.
    """
    if text.startswith("/"):
        found = value_at(document, parts_of(text))
    else:
        path = _INDEX.sub(r".\1", text).replace('"', "")  # as accepted by `lehr set`: ports[0], "lehr.Owner"
        found = by_path(document, path) or by_path(document["payload"], path, ("payload",))
    if found is not None:
        return found
    known = [".".join(field.parts) for root in _ROOTS for field in _leaves(document[root], (root,))]
    shown = ", ".join(known[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "")
    raise LehrError(
        f"asset {document['id']} has no field {text}",
        code="QRY102",
        why=f"it has {shown}" if known else "its payload is empty, and it has no addons",
        fix="use one of these, or a JSON pointer such as /payload/command/0",
    )


def value_at(value: Any, parts: tuple[str, ...]) -> Field | None:
    """The field of plain data at exactly these parts; None if it is not there."""
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return Field(parts, value)


def by_path(value: Any, text: str, before: tuple[str, ...] = ()) -> Field | None:
    """The field of plain data at a dotted path, with `before` as its first parts; None if it is not there."""
    if not text:
        return Field(before, value)
    words = text.split(".")
    for count in range(len(words), 0, -1):  # the longest key first: keys may hold dots
        key = ".".join(words[:count])
        step = value_at(value, (key,))
        if step is not None:
            found = by_path(step.value, ".".join(words[count:]), (*before, key))
            if found is not None:
                return found
    return None


def _leaves(value: Any, parts: tuple[str, ...]) -> Iterator[Field]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from _leaves(value[key], (*parts, key))
    elif len(parts) > 1:
        yield Field(parts, value)


class Occurrence(msgspec.Struct, frozen=True):
    """A place of the value that is searched.

    Attributes:
        same_name: True if it has the same name as in the asset.
    """

    at: Position
    same_name: bool


def occurrences(file: str, content: bytes, field: Field) -> Iterator[Occurrence]:
    """Places in `file` with the value of `field`: entries of its documents, constants of its code.

    Values that any file may contain by chance (true, empty) only count under the same name.
    """
    if file.endswith(".py"):
        yield from _in_code(file, content, field)
    elif file.endswith(tuple(documents.SUFFIXES)):
        for document in documents.load(file, content).documents:
            for entry in entries_like(document.value, field):
                yield Occurrence(document.position(entry.pointer), entry.name == field.name)


def entries_like(value: Any, field: Field) -> Iterator[Field]:
    """Entries of plain data, at any depth, with the value of `field`."""
    common = field.value is None or isinstance(field.value, bool) or field.value in ("", [], {})
    for entry in _entries(value, ()):
        if _same(entry.value, field.value) and (not common or entry.name == field.name):
            yield entry


def _entries(value: Any, parts: tuple[str, ...]) -> Iterator[Field]:
    yield Field(parts, value)
    inner: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    for key, item in inner:
        yield from _entries(item, (*parts, str(key)))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return type(one) is type(other) and canonical(one) == canonical(other)
    return bool(one == other)


def _in_code(file: str, content: bytes, field: Field) -> Iterator[Occurrence]:
    if not isinstance(field.value, str | int | float) or isinstance(field.value, bool) or field.value == "":
        return
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it must have been valid when the asset was generated, but cannot be parsed now
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and _same(node.value, field.value):
            yield Occurrence(Position(file, node.lineno, node.col_offset + 1), same_name=False)

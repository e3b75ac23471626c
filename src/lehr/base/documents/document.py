"""Loaded documents, and the way from a value back to its line and column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.pointers import parts_of


class Place(msgspec.Struct):
    """Position of a value, and of the values in it.

    The position of an entry of a mapping is that of its key, of an item of a list where it starts.

    Attributes:
        line, column: count from 1.
        inner: places of entries by key, of list items by index in decimal.
        opens_tables: True for a TOML array of tables, which later headers add to.
    """

    line: int
    column: int
    inner: dict[str, Place] = {}
    opens_tables: bool = False

    def at(self, file: str) -> Position:
        """This place in `file`."""
        return Position(file, self.line, self.column)


class Lines:
    """Turns offsets into a text into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        start = text.find("\n")
        while start >= 0:
            self._starts.append(start + 1)
            start = text.find("\n", start + 1)

    def place(self, offset: int) -> Place:
        """The place of the character at `offset`."""
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


def end_of(text: str) -> Place:
    """The place behind the last character."""
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))


class Places:
    """The places of a file's documents, found when first asked for."""

    def __init__(self, file: str, find: Callable[[], Sequence[Place]]) -> None:
        self._file = file
        self._find = find
        self._found: Sequence[Place] | None = None

    def position(self, ordinal: int, pointer: str) -> Position:
        """Where `pointer` leads to in document number `ordinal` (from 0)."""
        if self._found is None:
            self._found = self._find()
        if ordinal >= len(self._found):
            return Position(self._file)
        place = self._found[ordinal]
        for part in parts_of(pointer):
            inner = place.inner.get(part)
            if inner is None:
                break
            place = inner
        return place.at(self._file)


class Document:
    """One document of a file.

    Attributes:
        value: plain data. Values that YAML aliases name are shared: read, never change.
    """

    __slots__ = ("_ordinal", "_places", "value")

    def __init__(self, value: Any, places: Places, ordinal: int = 0) -> None:
        self.value = value
        self._places = places
        self._ordinal = ordinal

    def position(self, pointer: str = "") -> Position:
        """Position of the value at `pointer` (a JSON pointer, RFC 6901).

        The position of an entry of a mapping is that of its key. When nothing is at `pointer` (a
        missing field), or its position is not known, this is the position of what would hold it.
        """
        return self._places.position(self._ordinal, pointer)


class Documents(msgspec.Struct, frozen=True):
    """The content of a file.

    Attributes:
        documents: those without a problem, in order. A YAML file may have any number, the
            others have one.
        diagnostics: every problem found (`DOC001` and on). With an error among them, some
            document is missing from `documents`.
    """

    documents: tuple[Document, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

"""Loaded documents, and the way from a value back to its line and column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.documents.nodes import Node
from lehr.base.pointers import parts_of


class Lines:
    """Turns offsets into the text of a file into positions."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._starts = [0]
        start = text.find("\n")
        while start >= 0:
            self._starts.append(start + 1)
            start = text.find("\n", start + 1)

    def at(self, offset: int) -> Position:
        """The position of the character at `offset`."""
        line = bisect_right(self._starts, offset)
        return Position(self._file, line, offset - self._starts[line - 1] + 1)


def end_of(file: str, text: str) -> Position:
    """The position behind the last character."""
    return Position(file, text.count("\n") + 1, len(text) - text.rfind("\n"))


class Places:
    """The places of the values in a file, found when first asked for.

    Args:
        find: the node of each document of the text.
    """

    def __init__(self, file: str, text: str, find: Callable[[str], Sequence[Node]]) -> None:
        self._file = file
        self._text = text
        self._find = find
        self._found: tuple[Sequence[Node], Lines] | None = None

    def position(self, ordinal: int, pointer: str) -> Position:
        """Where `pointer` leads to in document number `ordinal` (from 0)."""
        if self._found is None:
            self._found = self._find(self._text), Lines(self._file, self._text)
        nodes, lines = self._found
        if ordinal >= len(nodes):
            return Position(self._file)
        node = nodes[ordinal]
        offset = node.start
        for part in parts_of(pointer):
            number = (node.target or node).entry(part)
            if number is None:
                break
            entry = (node.target or node).entries[number]
            offset, node = entry.at, entry.value
        return lines.at(min(offset, len(self._text)))  # libyaml may end the last line itself


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

"""The parts of a file's text that hold its values, for each format the same."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["scalar", "mapping", "list", "documents", "alias"]
"""The syntactic form of a value."""

_NONE: Any = ()  # the garbage collector would follow a list, and most values have no entries


class Entry(msgspec.Struct):
    """A key and its value, or an item of a list.

    Attributes:
        key: the key; for an item its number.
        start: offset of the key, or of an item's beginning: its dash, or its value.
        key_end: offset after the key, or after the dash; for an item without a dash, `start`.
        at: offset that messages point to: of the last part of a dotted key, or of an item's value.
    """

    key: str
    start: int
    key_end: int
    value: Node
    at: int


class Node(msgspec.Struct):
    """A value, and its place in the text. Offsets count characters.

    Attributes:
        start, end: start and end of the value; with `inline`, everything between them is the value.
        inline: a scalar in one place, or a list or mapping in brackets.
        style: the first character of a scalar (`|`, `>`, a quote), or nothing.
        tied: why the value cannot be replaced: other places depend on it, or it on them.
        entries: those of a list or mapping, in order.
        numbers: the number of each entry by its key; of the first, where a key occurs twice.
        after: where a line added to a TOML table goes; None if entries determine it.
        target: the value that an alias refers to.
    """

    kind: Kind
    start: int
    end: int
    inline: bool
    style: str = ""
    tied: str = ""
    entries: list[Entry] = _NONE
    numbers: dict[str, int] = _NONE
    after: int | None = None
    target: Node | None = None

    @classmethod
    def holder(cls, kind: Kind, start: int, end: int, inline: bool, after: int | None = None) -> Node:
        """A list or mapping to add entries to."""
        return cls(kind, start, end, inline, entries=[], numbers={}, after=after)

    def add(self, key: str, start: int, key_end: int, value: Node, at: int | None = None) -> None:
        """Add an entry of a mapping. By default, messages point to its start."""
        self.numbers.setdefault(key, len(self.entries))
        self.entries.append(Entry(key, start, key_end, value, start if at is None else at))

    def add_item(self, value: Node, dash: int | None = None, at: int | None = None) -> None:
        """Add an item of a list, which begins with a dash or with its value."""
        start, end = (value.start, value.start) if dash is None else (dash, dash + 1)
        self.add(str(len(self.entries)), start, end, value, value.start if at is None else at)

    def entry(self, key: str) -> int | None:
        """The number of the entry with `key`; None if there is none."""
        return self.numbers.get(key) if self.numbers else None


def line_start(text: str, offset: int) -> int:
    """Start of the line with `offset`."""
    return text.rfind("\n", 0, offset) + 1


def line_end(text: str, offset: int) -> int:
    """Start of the line after the one with `offset`; the end of the text if there is none.

    A block scalar ends at the start of the next line, and is not part of that line.
    """
    if offset and text[offset - 1] == "\n":
        return offset
    found = text.find("\n", offset)
    return len(text) if found < 0 else found + 1

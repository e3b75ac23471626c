"""The parts of a file's text that hold its values."""

from __future__ import annotations

import enum

import msgspec


class Kind(enum.Enum):
    """The syntactic form of a value."""

    SCALAR = enum.auto()
    MAPPING = enum.auto()
    LIST = enum.auto()
    DOCUMENTS = enum.auto()
    ALIAS = enum.auto()


class Entry(msgspec.Struct):
    """A key and its value, or an item of a list.

    Attributes:
        key: the key; for an item its number.
        start: offset of the key, or of an item's beginning: its dash, or its value.
        key_end: offset after the key, or after the dash; for an item without a dash, `start`.
    """

    key: str
    start: int
    key_end: int
    value: Node


class Node(msgspec.Struct):
    """A value, and its place in the text. Offsets count characters.

    Attributes:
        start, end: start and end of the value; with `inline`, everything between them is the value.
        inline: a scalar in one place, or a list or mapping in brackets.
        style: the first character of a scalar (`|`, `>`, a quote), or nothing.
        tied: why the value cannot be replaced: other places depend on it, or it on them.
        after: where a line added to a TOML table goes; None if entries determine it.
    """

    kind: Kind
    start: int
    end: int
    inline: bool
    style: str = ""
    tied: str = ""
    entries: list[Entry] = []
    after: int | None = None

    def entry(self, key: str) -> int | None:
        """The number of the entry with `key`; None if there is none."""
        return next((number for number, entry in enumerate(self.entries) if entry.key == key), None)


class Splice(msgspec.Struct, frozen=True, order=True):
    """Replace the text from `start` to `end`."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: list[Splice]) -> str:
    """`text` with all `splices`, which do not overlap."""
    for splice in sorted(splices, reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


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


def column(text: str, offset: int) -> int:
    """Number of characters before `offset` in its line."""
    return offset - line_start(text, offset)


def begins_line(text: str, offset: int) -> bool:
    """Whether only blanks precede `offset` in its line."""
    return not text[line_start(text, offset) : offset].strip()


def newline_of(text: str) -> str:
    """The line ending of `text`."""
    found = text.find("\n")
    return "\r\n" if found > 0 and text[found - 1] == "\r" else "\n"

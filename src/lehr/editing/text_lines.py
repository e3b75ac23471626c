"""The lines of a text, and replacing parts of it."""

from __future__ import annotations

import msgspec

from lehr.base.documents.nodes import line_start


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

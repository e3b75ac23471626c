"""Unified diffs of texts. Only a line feed ends a line, so a change of line endings is a change."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

NO_LINE_FEED = "\\ No newline at end of file"

MOST_COMPARED = 20_000
"""Lines of both texts, from the first to the last that differ, which are compared line by line. Of more, all
count as replaced: the time that comparing takes can grow with the square of their number."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")

Opcode = tuple[str, int, int, int, int]
"""A kind of change and the lines that it affects, as `difflib` returns it."""


def unified_diff(before: str, after: str, *, context: int = 3) -> Iterator[str]:
    """Lines of a unified diff, without file names and without the line feed that ends each of them."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    for group in _hunks(_opcodes(old, new), context):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@"
        for kind, i, j, k, m in group:
            if kind == "equal":
                yield from _marked(" ", old[i:j])
            else:
                yield from chain(_marked("-", old[i:j]), _marked("+", new[k:m]))


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """How `old` becomes `new`. Equal lines at both ends are found first, which is quick."""
    start, shorter = 0, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_end, new_end = len(old) - end, len(new) - end
    head = [("equal", 0, start, 0, start)] if start else []
    tail = [("equal", old_end, len(old), new_end, len(new))] if end else []
    if old_end + new_end - 2 * start > MOST_COMPARED:
        middle = [("replace", start, old_end, start, new_end)]
    else:
        found = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end]).get_opcodes()
        middle = [(kind, i + start, j + start, k + start, m + start) for kind, i, j, k, m in found]
    return [*head, *middle, *tail]


def _hunks(opcodes: Iterable[Opcode], context: int) -> Iterator[list[Opcode]]:
    """Groups of changes with up to `context` equal lines around each."""
    hunk: list[Opcode] = []
    for opcode in opcodes:
        kind, i, j, k, m = opcode
        if kind != "equal" or (hunk and j - i <= 2 * context):
            hunk.append(opcode)
            continue
        if hunk:
            yield [*hunk, _first(opcode, context)]
        begin = max(i, j - context)
        hunk = [(kind, begin, j, k + begin - i, m)]
    if any(opcode[0] != "equal" for opcode in hunk):
        *most, last = hunk
        yield [*most, _first(last, context) if last[0] == "equal" else last]


def _first(equal: Opcode, context: int) -> Opcode:
    kind, i, j, k, m = equal
    return kind, i, min(j, i + context), k, min(m, k + context)


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield NO_LINE_FEED

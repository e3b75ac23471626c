"""Unified diffs, applied to text that may have drifted from the original."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from lehr.base.errors import LehrError

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MOST_FUZZ = 2
_NO_FILE = "/dev/null"


class PatchError(LehrError):
    """A patch cannot be understood, or does not fit."""


class Hunk(msgspec.Struct, frozen=True):
    """Adjacent lines.

    Attributes:
        place: number of the first line in the old text, from 1.
        lines: each with its mark: ` `, `-` or `+`.
    """

    place: int
    lines: tuple[tuple[str, str], ...]

    def old(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "+"]

    def new(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "-"]

    def without_context(self, fuzz: int) -> Hunk:
        """This hunk without up to `fuzz` unchanged lines at either end."""
        first = min(fuzz, _unchanged(self.lines))
        last = min(fuzz, _unchanged(self.lines[::-1]))
        return Hunk(self.place + first, self.lines[first : len(self.lines) - last])


def _unchanged(lines: Sequence[tuple[str, str]]) -> int:
    """Number of lines before the first that changes."""
    return next(number for number, (mark, _text) in enumerate(lines) if mark != " ")


class FilePatch(msgspec.Struct, frozen=True):
    """The changes in one file."""

    path: str
    hunks: tuple[Hunk, ...]

    def applied(self, text: str) -> str:
        """`text` with every hunk applied, in its place or as near by as it fits.

        Raises:
            PatchError: a hunk fits nowhere.
        """
        lines = text.splitlines()
        moved = 0
        for number, hunk in enumerate(self.hunks, 1):
            found = _found(lines, hunk, moved)
            if found is None:
                raise PatchError(
                    f"hunk {number} of {self.path} does not fit",
                    why=f"the lines that it changes, near line {hunk.place}, are not there",
                    fix="make the patch anew from the code as it is",
                )
            place, fitting = found
            lines[place : place + len(fitting.old())] = fitting.new()
            moved = place + 1 - fitting.place + len(fitting.new()) - len(fitting.old())
        return "\n".join(lines) + "\n"


def _found(lines: Sequence[str], hunk: Hunk, moved: int) -> tuple[int, Hunk] | None:
    """Where the hunk fits, counted from 0, and how much of its context does."""
    for fuzz in range(_MOST_FUZZ + 1):
        fitting = hunk.without_context(fuzz)
        old = fitting.old()
        if not old:
            return None  # it would fit everywhere
        expected = fitting.place - 1 + moved
        places = [place for place in range(len(lines)) if lines[place : place + len(old)] == old]
        if places:
            return min(places, key=lambda place: abs(place - expected)), fitting
    return None


def read(text: str) -> tuple[FilePatch, ...]:
    """The changes of a unified diff, by file. Anything between them is skipped.

    Raises:
        PatchError: it is not a unified diff, or makes or deletes a file.
    """
    lines = text.splitlines()
    files: list[FilePatch] = []
    number = 0
    while number < len(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if lines[number].startswith("--- ") and following.startswith("+++ "):
            path = _path(lines[number], following)
            hunks, number = _hunks(lines, number + 2, path)
            files.append(FilePatch(path, hunks))
        else:
            number += 1
    if not files:
        raise PatchError("this is no patch", why="it has no lines `--- FILE` and `+++ FILE`", fix="git diff")
    return tuple(files)


def _path(old: str, new: str) -> str:
    before, after = (line[4:].split("\t")[0].strip() for line in (old, new))
    if _NO_FILE in (before, after):
        raise PatchError("a mutation changes files; it makes and deletes none", why=f"{before} to {after}")
    # As git writes it, from the top of the repository, or as `diff` does in `src`.
    return re.sub(r"^(?:[ab]/)?(?:\./)?(?:src/)?", "", after)


def _hunks(lines: Sequence[str], number: int, path: str) -> tuple[tuple[Hunk, ...], int]:
    hunks: list[Hunk] = []
    while number < len(lines) and (head := _HUNK.match(lines[number])):
        length = [int(head[group] or 1) for group in (2, 4)]
        body = tuple(_body(lines[number + 1 :], length, path))
        if all(mark == " " for mark, _text in body):
            raise PatchError(f"a hunk of {path} changes nothing")
        hunks.append(Hunk(int(head[1]), body))
        number += 1 + len(body)
        if number < len(lines) and lines[number].startswith("\\"):
            number += 1  # No newline at end of file
    if not hunks:
        raise PatchError(f"there is no hunk for {path}", fix="git diff")
    return tuple(hunks), number


def _body(lines: Sequence[str], length: Sequence[int], path: str) -> Iterator[tuple[str, str]]:
    """The lines of a hunk that has so many old and new ones."""
    old, new = length
    for line in lines:
        if old <= 0 and new <= 0:
            return
        mark, text = (line[0], line[1:]) if line else (" ", "")
        if mark not in " -+":
            break
        old -= mark != "+"
        new -= mark != "-"
        yield mark, text
    if old > 0 or new > 0:
        raise PatchError(f"a hunk of {path} is cut short", why="it has fewer lines than its head says")

"""Positions of the values of a TOML file, and how deep they are nested.

A tokenizer that knows strings, keys and brackets; the grammar proper is tomllib's work. It
is bounded in depth, which tomllib is not: it recurses over brackets, and takes time that is
quadratic and worse in the number of parts of a dotted key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from lehr.base.documents.document import Lines, Place
from lehr.base.documents.text import MAX_DEPTH

_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5}|\\?\Z)'  # without an end, it is the rest: never look again
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'
    r"|'[^'\n]*+'?"
    r"|[\[\]{}=,.\n]"
    r"|#[^\n]*+"
    r"|[^\s\[\]{}=,.#\"']++",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?[0-9_]+")
_MOST_DIGITS = 80
_PUNCTUATION = frozenset("[]{}=,.\n")


def first_too_deep(text: str) -> Place | None:
    """Where a bracket or a dotted key goes deeper than `MAX_DEPTH`; None if none does."""
    if text.count("[") + text.count("{") + text.count(".") <= MAX_DEPTH:
        return None
    depth = parts = 0
    for token in _TOKEN.finditer(text):
        character = token.group()
        if character in {"[", "{"}:
            depth += 1
        elif character in {"]", "}"}:
            depth -= 1
        elif character == ".":
            parts += 1
        elif character in _PUNCTUATION:
            parts = 0
        if max(depth, parts) >= MAX_DEPTH:
            return Lines(text).place(token.start())
    return None


def first_too_long(text: str) -> tuple[str, Place] | None:
    """The first number with more digits than 64 bits have in any base, and its place."""
    for token in _TOKEN.finditer(text):
        if len(token.group()) > _MOST_DIGITS and _NUMBER.fullmatch(token.group()):
            return token.group(), Lines(text).place(token.start())
    return None


def toml_places(text: str) -> Place:
    """The place of the document, and of everything in it. `text` is known to be valid."""
    return _Walk(text).document()


class _Walk:
    """Goes through valid TOML token by token. Recursion is bounded by `first_too_deep`."""

    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        self._tokens: Iterator[re.Match[str]] = (
            token for token in _TOKEN.finditer(text) if not token.group().startswith("#")
        )
        self._next = next(self._tokens, None)

    def document(self) -> Place:
        """Read statement by statement."""
        root = table = Place(1, 1)
        while (text := self._peek()) is not None:
            if text == "\n":
                self._take()
            elif text == "[":
                table = self._header(root)
            else:
                self._entry(table)
        return root

    def _peek(self) -> str | None:
        return None if self._next is None else self._next.group()

    def _take(self) -> tuple[str, Place]:
        token = self._next
        if token is None:
            return "", Place(1, 1)
        self._next = next(self._tokens, None)
        return token.group(), self._lines.place(token.start())

    def _skip_lines(self) -> None:
        while self._peek() == "\n":
            self._take()

    def _in_word(self) -> bool:
        """Whether a part of a key, a number or a date is next."""
        text = self._peek()
        return text is not None and (text == "." or text not in _PUNCTUATION)

    def _key(self) -> list[tuple[str, Place]]:
        """The parts of a dotted key, and what follows them is next."""
        parts = []
        while self._in_word():
            text, place = self._take()
            if text != ".":
                parts.append((_unquoted(text), place))
        return parts

    def _header(self, root: Place) -> Place:
        self._take()
        several = self._peek() == "["
        if several:
            self._take()
        parts = self._key()
        while self._peek() == "]":
            self._take()
        table = root
        for name, place in parts[:-1]:
            table = _table(table, name, place)
        if not parts:
            return table
        name, place = parts[-1]
        if not several:
            return _table(table, name, place)
        tables = table.inner.setdefault(name, Place(place.line, place.column, opens_tables=True))
        table = Place(place.line, place.column)
        tables.inner[str(len(tables.inner))] = table
        return table

    def _entry(self, table: Place) -> None:
        parts = self._key()
        for name, place in parts[:-1]:
            table = _table(table, name, place)
        if self._peek() == "=":
            self._take()
            value = self._value()
            if parts:
                name, place = parts[-1]
                table.inner[name] = Place(place.line, place.column, value.inner)
        elif not parts:
            self._take()  # nothing that valid text has: never stay where we are

    def _value(self) -> Place:
        text, place = self._take()
        if text == "[":
            while True:
                self._skip_lines()
                if self._peek() in {"]", None}:
                    break
                if self._peek() == ",":
                    self._take()
                else:
                    place.inner[str(len(place.inner))] = self._value()
            self._take()
        elif text == "{":
            while True:
                self._skip_lines()
                if self._peek() in {"}", None}:
                    break
                if self._peek() == ",":
                    self._take()
                else:
                    self._entry(place)
            self._take()
        else:
            while self._in_word():
                self._take()  # the rest of a number or a date
        return place


def _table(table: Place, name: str, place: Place) -> Place:
    """The table `name` inside `table`; of an array of tables the newest."""
    inner = table.inner.setdefault(name, place)
    if inner.opens_tables:
        return inner.inner[str(len(inner.inner) - 1)]
    return inner


def _unquoted(token: str) -> str:
    if token[0] == '"':
        return str(tomllib.loads(f"key = {token}")["key"])
    return token.strip("'")

"""JSON: the standard library's parser, and a second look at what it lets through.

The parser drops keys that occur twice, and takes NaN and numbers of any size. Hooks notice
that while it parses; only then is the text read again, token by token, for all the places.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from lehr.base.diagnostics import Diagnostic
from lehr.base.documents.document import Document, Documents, Lines, Place, Places
from lehr.base.documents.text import (
    MAX_DEPTH,
    MAX_PROBLEMS,
    bad_number,
    bounded,
    duplicate_key,
    integer,
    number_problem,
    syntax_error,
    too_deep,
)

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_WORDS = frozenset({"true", "false", "null"})


class _OddError(Exception):
    """The parser would let something through that we refuse."""


class _EnoughError(Exception):
    """There are more problems than are reported."""


def load_json(file: str, content: bytes) -> Documents:
    """Load a JSON file that is known to be text."""
    text = content.decode()
    deep = _depth_problem(file, text)
    if deep is not None:
        return Documents((), (deep,))
    try:
        value = _parse(text)
        odd = _SURROGATE.search(text) is not None
    except json.JSONDecodeError as err:
        at = Place(err.lineno, err.colno).at(file)
        return Documents((), (syntax_error(file, "JSON", err.msg, at),))
    except _OddError:
        value, odd = None, True
    if odd:
        diagnostics = _second_look(file, text)
        if diagnostics:
            return Documents((), bounded(file, diagnostics))
    places = Places(file, lambda: [_Walk(file, text).place()])
    return Documents((Document(value, places),))


def _parse(text: str) -> Any:
    return json.loads(
        text, object_pairs_hook=_mapping, parse_int=_integer, parse_float=_float, parse_constant=_constant
    )


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _OddError
    return value


def _integer(text: str) -> int:
    number = integer(text)
    if number is None:
        raise _OddError
    return number


def _float(text: str) -> float:
    number = float(text)
    if number_problem(number) is not None:
        raise _OddError
    return number


def _constant(text: str) -> float:
    raise _OddError


def _depth_problem(file: str, text: str) -> Diagnostic | None:
    """Found before parsing, because the parser recurses."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return None
    depth = 0
    for token in _BRACKET.finditer(text):
        character = text[token.start()]
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            return too_deep(file, Lines(text).place(token.start()).at(file))
    return None


def _second_look(file: str, text: str) -> list[Diagnostic]:
    """All problems of a text that holds something the parser would let through."""
    ignore: Callable[[Any], None] = lambda _: None  # noqa: E731 -- a value of four hooks
    try:
        json.loads(
            text, object_pairs_hook=ignore, parse_int=ignore, parse_float=ignore, parse_constant=ignore
        )
    except json.JSONDecodeError as err:
        return [syntax_error(file, "JSON", err.msg, Place(err.lineno, err.colno).at(file))]
    walk = _Walk(file, text)
    with contextlib.suppress(_EnoughError):
        walk.place()
    return walk.diagnostics


class _Walk:
    """Goes through a text that the parser has accepted, token by token."""

    def __init__(self, file: str, text: str) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._file = file
        self._lines = Lines(text)
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(text)

    def place(self) -> Place:
        """The place of the document, and of everything in it. Depth is known to be bounded."""
        return self._value(next(self._tokens))

    def _value(self, token: re.Match[str]) -> Place:
        place = self._lines.place(token.start())
        text = token.group()
        if text == "{":
            self._entries(place)
        elif text == "[":
            self._items(place)
        elif text[0] == '"':
            self._string(text, place)
        elif text not in _WORDS:
            self._number(text, place)
        return place

    def _entries(self, place: Place) -> None:
        for token in self._tokens:
            if token.group() == "}":
                return
            if token.group() == ",":
                continue
            here = self._lines.place(token.start())
            key = self._string(token.group(), here)
            next(self._tokens)  # the colon
            value = self._value(next(self._tokens))
            if key in place.inner:
                first = place.inner[key].line
                self._report(duplicate_key(self._file, key, first, here.at(self._file)))
            else:
                place.inner[key] = Place(here.line, here.column, value.inner)

    def _items(self, place: Place) -> None:
        for token in self._tokens:
            if token.group() == "]":
                return
            if token.group() != ",":
                place.inner[str(len(place.inner))] = self._value(token)

    def _string(self, token: str, place: Place) -> str:
        value = str(json.loads(token))
        if _has_surrogate(value):
            at = place.at(self._file)
            why = "a string holds half of a surrogate pair, which is no character"
            self._report(syntax_error(self._file, "JSON", "not Unicode", at, why=why))
        return value

    def _number(self, text: str, place: Place) -> None:
        try:
            _parse(text)
        except _OddError:
            self._report(bad_number(self._file, text, place.at(self._file)))

    def _report(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        if len(self.diagnostics) > MAX_PROBLEMS:
            raise _EnoughError


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False

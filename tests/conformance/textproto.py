"""Reads the text form of protobuf messages, without their types: as much as test data needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"""
    \s+ | \#[^\n]*
    | (?P<text> '(?:[^'\\\n]|\\.)*' | "(?:[^"\\\n]|\\.)*" )
    | (?P<word> [\w.+-]+ )
    | (?P<type> \[[^\]\n]+/[^\]\n]+\] )
    | (?P<mark> [{}\[\]:,;<>] )
    """,
    re.VERBOSE,
)


def read(text: str) -> dict[str, list[Any]]:
    """The fields of a message, each with all its values: dicts, text as bytes, and words."""
    return _fields(_Tokens(text), "")


class _Tokens:
    def __init__(self, text: str) -> None:
        self._found = _scanned(text)
        self.next = next(self._found, "")

    def take(self) -> str:
        token, self.next = self.next, next(self._found, "")
        return token


def _scanned(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"cannot be read: {text[place : place + 40]!r}")
        place = match.end()
        if match.lastgroup is not None:
            yield match.group()


def _fields(tokens: _Tokens, end: str) -> dict[str, list[Any]]:
    fields: dict[str, list[Any]] = {}
    while tokens.next != end:
        name = tokens.take()
        if tokens.next == ":":
            tokens.take()
        fields.setdefault(name, []).extend(_values(tokens))
        while tokens.next in (",", ";") and tokens.next:
            tokens.take()
    return fields


def _values(tokens: _Tokens) -> list[Any]:
    if tokens.next != "[":
        return [_value(tokens)]
    tokens.take()
    values = []
    while tokens.next != "]":
        values.append(_value(tokens))
        if tokens.next == ",":
            tokens.take()
    tokens.take()
    return values


def _value(tokens: _Tokens) -> Any:
    token = tokens.take()
    if token == "{":
        fields = _fields(tokens, "}")
        tokens.take()
        return fields
    if token[0] not in "'\"":
        return token
    parts = [token]
    while tokens.next[:1] in ("'", '"') and tokens.next:
        parts.append(tokens.take())
    return b"".join(map(_bytes, parts))


_ESCAPE = re.compile(
    rb"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_LETTERS = dict(zip(b"abfnrtv", b"\a\b\f\n\r\t\v", strict=True))


def _bytes(quoted: str) -> bytes:
    return _ESCAPE.sub(_unescaped, quoted[1:-1].encode())


def _unescaped(match: re.Match[bytes]) -> bytes:
    for group, base in ((1, 16), (2, 8)):
        if match[group] is not None:
            return bytes([int(match[group], base)])
    digits = match[3] or match[4]
    if digits is not None:
        return chr(int(digits, 16)).encode("utf-8", "surrogatepass")
    return bytes([_LETTERS.get(match[5][0], match[5][0])])

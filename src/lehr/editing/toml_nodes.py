"""Positions of the values in a TOML text."""

from __future__ import annotations

import re
import tomllib

from lehr.editing.nodes import Entry, Kind, Node, line_end

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'[^'\n]*+'"
    r"|[\[\]{}=,.\n]"
    r"|#[^\n]*+"
    r"|[^\s\[\]{}=,.#\"']++",
    re.DOTALL,
)
_PUNCTUATION = frozenset("[]{}=,\n")


def toml_nodes(text: str) -> list[Node]:
    """The node of the one document. `text` is known to be valid, and its depth bounded."""
    return [_Reading(text).document()]


class _Reading:
    """Scans valid TOML, token by token; comments are skipped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [token for token in _TOKEN.finditer(text) if not token.group().startswith("#")]
        self._at = 0

    def document(self) -> Node:
        """Read statement by statement."""
        root = table = Node(Kind.MAPPING, 0, 0, False, after=0)
        while self._at < len(self._tokens):
            if self._peek() == "\n":
                self._at += 1
            elif self._peek() == "[":
                table = self._header(root)
            else:
                end = self._entry(table)
                table.after = line_end(self._text, end)
        return root

    def _peek(self) -> str:
        return self._tokens[self._at].group() if self._at < len(self._tokens) else ""

    def _take(self) -> re.Match[str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _key(self) -> tuple[list[str], int, int]:
        """The parts of a dotted key, and its start and end."""
        parts, start, end = [], self._tokens[self._at].start(), 0
        while self._peek() not in _PUNCTUATION:
            token = self._take()
            end = token.end()
            if token.group() != ".":
                parts.append(_unquoted(token.group()))
        return parts, start, end

    def _header(self, root: Node) -> Node:
        self._at += 1
        several = self._peek() == "["
        self._at += several
        parts, start, end = self._key()
        while self._peek() == "]":
            end = self._take().end()
        table = root
        for name in parts[:-1]:
            table = _inner(table, name, start, end)
        if several:
            tables = _inner(table, parts[-1], start, end, newest=False)
            tables.kind = Kind.LIST
            inner = Node(Kind.MAPPING, start, end, False)
            tables.entries.append(Entry(str(len(tables.entries)), start, end, inner))
        else:
            inner = _inner(table, parts[-1], start, end)
        inner.after = line_end(self._text, end)
        return inner

    def _entry(self, table: Node) -> int:
        """Read a key and its value into `table`; returns the end of the value."""
        parts, start, end = self._key()
        for name in parts[:-1]:
            table = _inner(table, name, start, end)
        self._at += 1  # the equals sign
        value = self._value()
        table.entries.append(Entry(parts[-1], start, end, value))
        return value.end

    def _value(self) -> Node:
        token = self._take()
        start, end = token.span()
        if token.group() not in {"[", "{"}:
            while self._peek() not in _PUNCTUATION and self._peek():
                end = self._take().end()  # the rest of a number
            return Node(Kind.SCALAR, start, end, True, style=token.group()[0])
        node = Node(Kind.LIST if token.group() == "[" else Kind.MAPPING, start, end, True, entries=[])
        while self._peek() not in {"]", "}"}:
            if self._peek() in {",", "\n"}:
                self._at += 1
            elif node.kind is Kind.MAPPING:
                self._entry(node)
            else:
                value = self._value()
                node.entries.append(Entry(str(len(node.entries)), value.start, value.start, value))
        node.end = self._take().end()
        return node


def _inner(table: Node, name: str, start: int, end: int, *, newest: bool = True) -> Node:
    """The table `name` in `table`, created if missing; for an array of tables, the newest."""
    number = table.entry(name)
    if number is None:
        table.entries.append(Entry(name, start, end, Node(Kind.MAPPING, start, end, False)))
        return table.entries[-1].value
    inner = table.entries[number].value
    return inner.entries[-1].value if newest and inner.kind is Kind.LIST else inner


def _unquoted(token: str) -> str:
    if token[0] == '"':
        return str(tomllib.loads(f"key = {token}")["key"])
    return token.strip("'")

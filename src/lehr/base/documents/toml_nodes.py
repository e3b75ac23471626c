"""Where the values of a TOML text are, and how deep they are nested.

A tokenizer that knows strings, keys and brackets; the grammar proper is tomllib's work. It
is bounded in depth, which tomllib is not: it recurses over brackets, and takes time that is
quadratic and worse in the number of parts of a dotted key.
"""

from __future__ import annotations

import re
import tomllib

from lehr.base.documents.nodes import Node, line_end
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
_PUNCTUATION = frozenset("[]{}=,\n")


def first_too_deep(text: str) -> int | None:
    """Offset at which a bracket or a dotted key goes deeper than `MAX_DEPTH`; None if none does."""
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
            return token.start()
    return None


def first_too_long(text: str) -> re.Match[str] | None:
    """The first number with more digits than 64 bits have in any base."""
    tokens = (token for token in _TOKEN.finditer(text) if len(token.group()) > _MOST_DIGITS)
    return next((token for token in tokens if _NUMBER.fullmatch(token.group())), None)


def toml_nodes(text: str) -> list[Node]:
    """The node of the one document. `text` is known to be valid, and its depth bounded."""
    return [_Scanner(text).document()]


class _Scanner:
    """Scans valid TOML, token by token; comments are skipped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = (token for token in _TOKEN.finditer(text) if not token.group().startswith("#"))
        self._next = next(self._tokens, None)

    def document(self) -> Node:
        """Read statement by statement."""
        root = table = Node.holder("mapping", 0, 0, False, after=0)
        while self._next is not None:
            if self._peek() == "\n":
                self._take()
            elif self._peek() == "[":
                table = self._header(root)
            else:
                table.after = line_end(self._text, self._entry(table))
        return root

    def _peek(self) -> str:
        return "" if self._next is None else self._next.group()

    def _take(self) -> re.Match[str]:
        token = self._next
        assert token is not None
        self._next = next(self._tokens, None)
        return token

    def _key(self) -> list[re.Match[str]]:
        """The parts of a dotted key."""
        parts = []
        while self._peek() not in _PUNCTUATION:
            token = self._take()
            if token.group() != ".":
                parts.append(token)
        return parts

    def _header(self, root: Node) -> Node:
        self._take()
        several = self._peek() == "["
        if several:
            self._take()
        parts = self._key()
        start, end = parts[0].start(), parts[-1].end()
        while self._peek() == "]":
            end = self._take().end()
        table = root
        for part in parts[:-1]:
            table = _inner(table, part, start, end)
        if several:
            tables = _inner(table, parts[-1], start, end, newest=False)
            tables.kind = "list"
            inner = Node.holder("mapping", start, end, False)
            tables.add(str(len(tables.entries)), start, end, inner, parts[-1].start())
        else:
            inner = _inner(table, parts[-1], start, end)
        inner.after = line_end(self._text, end)
        return inner

    def _entry(self, table: Node) -> int:
        """Read a key and its value into `table`; returns the end of the value."""
        *outer, last = self._key()
        start, end = outer[0].start() if outer else last.start(), last.end()
        for part in outer:
            table = _inner(table, part, start, end)
        self._take()  # the equals sign
        value = self._value()
        table.add(_unquoted(last.group()), start, end, value, last.start())
        return value.end

    def _value(self) -> Node:
        token = self._take()
        start, end = token.span()
        if token.group() not in {"[", "{"}:
            while self._peek() not in _PUNCTUATION and self._peek():
                end = self._take().end()  # the rest of a number
            return Node("scalar", start, end, True, style=token.group()[0])
        node = Node.holder("list" if token.group() == "[" else "mapping", start, end, True)
        while self._peek() not in {"]", "}"}:
            if self._peek() in {",", "\n"}:
                self._take()
            elif node.kind == "mapping":
                self._entry(node)
            else:
                node.add_item(self._value())
        node.end = self._take().end()
        return node


def _inner(table: Node, part: re.Match[str], start: int, end: int, *, newest: bool = True) -> Node:
    """The table that `part` of a key names in `table`, created if missing; of an array, the newest."""
    name = _unquoted(part.group())
    number = table.entry(name)
    if number is None:
        table.add(name, start, end, Node.holder("mapping", start, end, False), part.start())
        return table.entries[-1].value
    inner = table.entries[number].value
    return inner.entries[-1].value if newest and inner.kind == "list" else inner


def _unquoted(token: str) -> str:
    if token[0] == '"':
        return str(tomllib.loads(f"key = {token}")["key"])
    return token.strip("'")

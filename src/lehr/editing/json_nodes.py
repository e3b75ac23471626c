"""Positions of the values in a JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from lehr.editing.nodes import Entry, Kind, Node

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)


def json_nodes(text: str) -> list[Node]:
    """The node of the one document. `text` is known to be valid, and its depth bounded."""
    tokens = _TOKEN.finditer(text)
    return [_node(next(tokens), tokens)]


def _node(token: re.Match[str], tokens: Iterator[re.Match[str]]) -> Node:
    if token.group() not in {"{", "["}:
        return Node(Kind.SCALAR, token.start(), token.end(), True)
    kind = Kind.MAPPING if token.group() == "{" else Kind.LIST
    entries: list[Entry] = []
    for inner in tokens:
        if inner.group() in {"}", "]"}:
            return Node(kind, token.start(), inner.end(), True, entries=entries)
        if inner.group() == ",":
            continue
        start, end = inner.span()
        if kind is Kind.MAPPING:
            next(tokens)  # the colon
            entries.append(Entry(json.loads(inner.group()), start, end, _node(next(tokens), tokens)))
        else:
            entries.append(Entry(str(len(entries)), start, start, _node(inner, tokens)))
    raise AssertionError("the text is good, and every bracket is closed")

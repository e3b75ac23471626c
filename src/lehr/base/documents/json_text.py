"""JSON: the standard library's parser, and a second look at what it lets through.

The parser drops keys that occur twice, and takes NaN and numbers of any size. Hooks notice
that while it parses; only then is the text read again, token by token, for all the places.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.documents.document import Document, Documents, Lines, Places
from lehr.base.documents.nodes import Node
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

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_WORDS = frozenset({"true", "false", "null"})


class _OddError(Exception):
    """The parser would let something through that we refuse."""


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
        return Documents((), (_syntax(file, err),))
    except _OddError:
        value, odd = None, True
    if odd:
        diagnostics = _second_look(file, text)
        if diagnostics:
            return Documents((), bounded(file, diagnostics))
    return Documents((Document(value, Places(file, text, json_nodes)),))


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
            return too_deep(Lines(file, text).at(token.start()))
    return None


def _second_look(file: str, text: str) -> list[Diagnostic]:
    """All problems of a text that holds something the parser would let through."""
    ignore: Callable[[Any], None] = lambda _: None  # noqa: E731 -- a value of four hooks
    try:
        json.loads(
            text, object_pairs_hook=ignore, parse_int=ignore, parse_float=ignore, parse_constant=ignore
        )
    except json.JSONDecodeError as err:
        return [_syntax(file, err)]
    found = _problems(json_nodes(text)[0], text, Lines(file, text))
    return list(itertools.islice(found, MAX_PROBLEMS + 1))


def _problems(node: Node, text: str, lines: Lines) -> Iterator[Diagnostic]:
    """Defects that the parser accepts in a value, in the order of the text. Depth is known to be bounded."""
    if node.kind == "scalar":
        yield from _scalar_problems(text[node.start : node.end], lines.at(node.start))
    for number, entry in enumerate(node.entries):
        if node.kind == "mapping":
            yield from _scalar_problems(text[entry.start : entry.key_end], lines.at(entry.start))
        yield from _problems(entry.value, text, lines)
        first = node.numbers[entry.key]
        if first != number:
            yield duplicate_key(entry.key, lines.at(node.entries[first].start).line, lines.at(entry.start))


def _scalar_problems(text: str, at: Position) -> Iterator[Diagnostic]:
    if text[0] == '"':
        if _has_surrogate(json.loads(text)):
            why = "a string holds half of a surrogate pair, which is not a character"
            yield syntax_error("JSON", "not Unicode", at, why=why)
    elif text not in _WORDS:
        try:
            _parse(text)
        except _OddError:
            yield bad_number(text, at)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _syntax(file: str, err: json.JSONDecodeError) -> Diagnostic:
    return syntax_error("JSON", err.msg, Position(file, err.lineno, err.colno))


def json_nodes(text: str) -> list[Node]:
    """The node of the one document. `text` is known to be valid, and its depth bounded."""
    tokens = _TOKEN.finditer(text)
    return [_node(next(tokens), tokens)]


def _node(token: re.Match[str], tokens: Iterator[re.Match[str]]) -> Node:
    if token.group() not in {"{", "["}:
        return Node("scalar", token.start(), token.end(), True)
    node = Node.holder("mapping" if token.group() == "{" else "list", token.start(), 0, True)
    for inner in tokens:
        if inner.group() in {"}", "]"}:
            node.end = inner.end()
            break
        if inner.group() == ",":
            continue
        if node.kind == "mapping":
            next(tokens)  # the colon
            node.add(json.loads(inner.group()), *inner.span(), _node(next(tokens), tokens))
        else:
            node.add_item(_node(inner, tokens))
    return node

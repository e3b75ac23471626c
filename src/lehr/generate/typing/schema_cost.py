"""Estimates the work that a JSON schema requires, without a value.

Subschemas that refer to each other can double the work at every step, as aliases of YAML can double text:
thirty lines that would take forever. So this counts beforehand how often one place of a value would be
checked. The same is done for patterns: a match takes time in proportion to the text and to the pattern's
program, so the patterns that one place is matched against bound the work for each byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from lehr.base.documents import MAX_DEPTH
from lehr.base.pointers import parts_of

MOST_LOOKS = 10_000
"""Maximum number of subschemas that one place of a value is checked against."""

MOST_BYTES = 1 << 40
"""More than any value could be matched against in time."""

_HERE = ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas")
_REFERENCES = ("$ref", "$dynamicRef")
_BELOW = (
    # In a mapping; in a list. Of the first keywords, one subschema applies to a place; of the others, all
    # may.
    (("properties", "additionalProperties", "unevaluatedProperties"), ("patternProperties", "propertyNames")),
    (("prefixItems", "items", "unevaluatedItems"), ("contains",)),
)
_NAMED = ("dependentSchemas", "patternProperties", "properties")  # mappings of subschemas

Node = Mapping[str, Any]


def looks(document: Node) -> int:
    """How often one place of a value would be checked; `MOST_LOOKS + 1` means more.

    A schema that refers to itself at the same place counts once.

    Raises:
        RecursionError: hundreds of nested subschemas apply to the same place.
    """
    return _most(document, lambda _: 1, MOST_LOOKS)


def pattern_bytes(document: Node, size: Callable[[str], int]) -> int:
    """Maximum pattern bytes that one place of a value is matched against; `MOST_BYTES + 1` means more.

    Args:
        size: returns the size of a pattern's compiled program.
    """

    def weight(node: Node) -> int:
        patterns = node.get("patternProperties")
        own = [node.get("pattern"), *(patterns if isinstance(patterns, Mapping) else ())]
        return sum(size(pattern) for pattern in own if isinstance(pattern, str))

    return _most(document, weight, MOST_BYTES)


def _most(document: Node, weight: Callable[[Node], int], limit: int) -> int:
    graph = _Graph(document, weight, limit)
    most = 0
    counts: Mapping[int, int] = {}
    for level in range(MAX_DEPTH + 1):
        counts = graph.counts(level, counts)
        most = max(most, counts[id(document)])
        if most > limit or (level and not any(counts.values())):
            break
    return most


class _Graph:
    """Subschemas, and which of them lead to which."""

    def __init__(self, document: Node, weight: Callable[[Node], int], limit: int) -> None:
        self._document = document
        self._limit = limit
        self._weights: dict[int, int] = {}
        self._roots: dict[str, Node] = {"": document}
        self._anchors: dict[str, Node] = {}
        for item in _mappings_in(document):
            for key, index in (("$id", self._roots), ("$anchor", self._anchors)):
                if isinstance(item.get(key), str):
                    index.setdefault(item[key], item)
        self._here: dict[int, list[Node]] = {}
        self._below: dict[int, list[_Within]] = {}
        rest = [document]
        while rest:
            node = rest.pop()
            if id(node) not in self._here:
                self._weights[id(node)] = weight(node)
                here = self._here[id(node)] = list(self._for_the_same_place(node))
                below = self._below[id(node)] = [_Within(node, *keywords) for keywords in _BELOW]
                rest += here
                rest += [item for within in below for item in (*within.one, *within.all)]

    def counts(self, level: int, above: Mapping[int, int]) -> dict[int, int]:
        """By subschema, how often a place `level` levels inside its value is checked.

        Args:
            above: the same counts for one level less.
        """
        counts: dict[int, int] = {}

        def count(node: int) -> int:
            if node not in counts:
                counts[node] = 0  # until it is known: a recursive reference adds nothing
                found = sum(count(id(item)) for item in self._here[node])
                if level == 0:
                    found += self._weights[node]
                else:
                    found += max(within.count(above) for within in self._below[node])
                counts[node] = min(found, self._limit + 1)
            return counts[node]

        for node in self._here:
            count(node)
        return counts

    def _for_the_same_place(self, node: Node) -> Iterator[Node]:
        for name in _HERE:
            yield from _subschemas(node, name)
        for name in _REFERENCES:
            target = self._target(node.get(name))
            if isinstance(target, Mapping):
                yield target

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str):
            return None
        root, _, fragment = reference.partition("#")
        target: Any = self._roots.get(root)
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        for part in parts_of(unquote(fragment)):
            if isinstance(target, list) and part.isdecimal() and int(part) < len(target):
                target = target[int(part)]
            else:
                target = target.get(part) if isinstance(target, Mapping) else None
        return target


class _Within:
    """Subschemas for the content of a mapping or list: of `one`, at most one for each place."""

    def __init__(self, node: Node, one: Iterable[str], every: Iterable[str]) -> None:
        self.one = [item for name in one for item in _subschemas(node, name)]
        self.all = [item for name in every for item in _subschemas(node, name)]

    def count(self, counts: Mapping[int, int]) -> int:
        one = max((counts[id(item)] for item in self.one), default=0)
        return one + sum(counts[id(item)] for item in self.all)


def _subschemas(node: Node, keyword: str) -> Iterator[Node]:
    value = node.get(keyword)
    items: Iterable[Any] = value if isinstance(value, list) else (value,)
    if keyword in _NAMED:
        items = value.values() if isinstance(value, Mapping) else ()
    yield from (item for item in items if isinstance(item, Mapping))


def _mappings_in(value: Any) -> Iterator[Node]:
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, Mapping):
            yield item
            rest += item.values()
        elif isinstance(item, list):
            rest += item

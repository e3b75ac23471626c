"""Positions of the values in a YAML text: libyaml's events, kept as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from lehr.editing.nodes import Entry, Kind, Node, line_start

_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_ENDS = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


def yaml_nodes(text: str) -> list[Node]:
    """The node of each document. `text` is known to be valid, and its depth bounded."""
    return _Reading(text).documents


class _Reading:
    """Builds nodes, event by event."""

    def __init__(self, text: str) -> None:
        self.documents: list[Node] = []
        self._text = text
        self._events: Iterator[Any] = iter(yaml.parse(text.encode(), Loader=yaml.CBaseLoader))
        self._named: dict[str, Node] = {}
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._named = {}
                self.documents.append(self._node(next(self._events)))

    def _node(self, event: Any) -> Node:
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.AliasEvent):
            named = self._named[str(event.anchor)]
            named.tied = f"the alias *{event.anchor} stands for it elsewhere, which would change, too"
            return Node(Kind.ALIAS, start, end, True, tied=f"it is the alias *{event.anchor}")
        if isinstance(event, yaml.MappingStartEvent):
            node = Node(Kind.MAPPING, start, end, bool(event.flow_style))
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Node(Kind.LIST, start, end, bool(event.flow_style))
        else:
            node = Node(Kind.SCALAR, start, end, event.style not in {"|", ">"}, event.style)
        if event.anchor is not None:
            self._named[event.anchor] = node
        self._fill(node)
        if _in_one_piece(node) and not node.tied and (event.anchor is not None or event.tag is not None):
            node.tied = f"it is written with {self._text[start:end].split(maxsplit=1)[0]}"
        return node

    def _fill(self, node: Node) -> None:
        """Read the content of a list or mapping, up to its end."""
        if node.kind is Kind.SCALAR:
            return
        node.entries = []
        for event in self._events:
            if type(event) in _ENDS:
                node.end = event.end_mark.index
                if not node.inline and node.entries:
                    node.end = node.entries[-1].value.end  # the event's is after any following comments
                return
            node.entries.append(self._entry(event) if node.kind is Kind.MAPPING else self._item(event, node))

    def _entry(self, event: Any) -> Entry:
        start, end = event.start_mark.index, event.end_mark.index
        key = event.value if isinstance(event, yaml.ScalarEvent) else self._text[start:end]
        return Entry(key, start, end, self._node(next(self._events)))

    def _item(self, event: Any, node: Node) -> Entry:
        value = self._node(event)
        start = value.start if node.inline else self._dash(value)
        return Entry(str(len(node.entries)), start, start if node.inline else start + 1, value)

    def _dash(self, value: Node) -> int:
        """Position of the dash before a block item: in its line or above. The event does not have it."""
        text, end = self._text, value.start
        start = line_start(text, end)
        head = text[start:end].rstrip()
        while not head.endswith("-"):
            if start == 0:
                return value.start
            end = start - 1
            start = line_start(text, end)
            head = _COMMENT.sub("", text[start:end]).rstrip()
        return start + len(head) - 1


def _in_one_piece(node: Node) -> bool:
    return node.inline or node.kind is Kind.SCALAR

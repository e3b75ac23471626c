"""Where the values of a YAML text are: libyaml's events, kept as a tree."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import yaml

from lehr.base.documents.nodes import Kind, Node, line_start
from lehr.base.documents.text import MAX_DEPTH

_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_BLOCKS = ("|", ">")
_ENDS = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


class Mark(Protocol):
    """A place in a YAML file; both count from 0."""

    line: int
    column: int


class Event(Protocol):
    """The parts of libyaml's events for values that we use: each kind has those that it needs."""

    start_mark: Mark
    anchor: Any
    tag: str | None
    value: str
    implicit: tuple[bool, bool]
    style: str


class _TooDeepError(Exception):
    """Values are nested deeper than any that is loaded."""


class _Anchored(NamedTuple):
    node: Node
    text: str


def events(content: bytes) -> Iterator[Any]:
    """The events of libyaml for `content`.

    Raises:
        yaml.YAMLError: a syntax error, after the events before it.
    """
    return iter(yaml.parse(content, Loader=yaml.CBaseLoader))


def yaml_nodes(text: str) -> list[Node]:
    """The node of each document, up to the first that ends in a syntax error or is nested too deeply."""
    builder = _TreeBuilder(text)
    with contextlib.suppress(yaml.YAMLError, _TooDeepError):  # `load_yaml` reports them
        builder.build()
    return builder.documents


class _TreeBuilder:
    """Builds nodes, event by event."""

    def __init__(self, text: str) -> None:
        self.documents: list[Node] = []
        self._text = text
        self._events = events(text.encode())
        self._named: dict[str, _Anchored] = {}
        self._depth = 0

    def build(self) -> None:
        """Read document by document."""
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._named = {}
                self.documents.append(self._node(next(self._events)))

    def _node(self, event: Any) -> Node:
        start, end, kind = event.start_mark.index, event.end_mark.index, type(event)
        if kind is yaml.ScalarEvent:
            node = Node("scalar", start, end, event.style not in _BLOCKS, event.style)
        elif kind is yaml.AliasEvent:
            return self._alias(event.anchor, start, end)
        else:
            holds: Kind = "mapping" if kind is yaml.MappingStartEvent else "list"
            node = Node.holder(holds, start, end, bool(event.flow_style))
        if event.anchor is not None:
            self._named[event.anchor] = _Anchored(node, getattr(event, "value", ""))
        if node.kind != "scalar":
            self._fill(node)
        if (event.anchor is not None or event.tag is not None) and _in_one_piece(node) and not node.tied:
            node.tied = f"it is written with {self._text[start:end].split(maxsplit=1)[0]}"
        return node

    def _alias(self, anchor: str, start: int, end: int) -> Node:
        alias = Node("alias", start, end, True, tied=f"it is the alias *{anchor}")
        if anchor in self._named:
            alias.target = self._named[anchor].node
            alias.target.tied = f"the alias *{anchor} refers to it elsewhere and would also change"
        return alias

    def _fill(self, node: Node) -> None:
        """Read the content of a list or mapping, up to its end."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeepError
        for event in self._events:
            if type(event) in _ENDS:
                node.end = event.end_mark.index
                if not node.inline and node.entries:
                    node.end = node.entries[-1].value.end  # the event's is after any following comments
                break
            if node.kind == "mapping":
                self._entry(node, event)
            else:
                self._item(node, event)
        self._depth -= 1

    def _entry(self, node: Node, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if type(event) is yaml.ScalarEvent and event.anchor is None:
            key = event.value
        else:  # few keys have an anchor, or are a list, a mapping or an alias
            end = self._node(event).end
            key = self._named[event.anchor].text if event.anchor in self._named else self._text[start:end]
        node.add(key, start, end, self._node(next(self._events)))

    def _item(self, node: Node, event: Any) -> None:
        value = self._node(event)
        # The target of an alias is where an item can be fixed.
        at = value.start if value.target is None else value.target.start
        node.add_item(value, None if node.inline else self._dash(value), at)

    def _dash(self, value: Node) -> int:
        """Position of the dash before a block item: in its line or above. The event does not have it."""
        text, end = self._text, value.start
        if text[end - 2 : end] == "- ":  # as nearly always
            return end - 2
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
    return node.inline or node.kind == "scalar"

"""Positions of the values of a YAML file; read only when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
import yaml

from lehr.base.documents.document import Place, end_of


class Mark(Protocol):
    """A place in a YAML file; both count from 0."""

    line: int
    column: int


class Node(Protocol):
    """The parts of libyaml's events for values that we use: each kind has those that it needs."""

    start_mark: Mark
    anchor: Any
    tag: str | None
    value: str
    implicit: tuple[bool, bool]
    style: str


def events(content: bytes) -> Iterator[Any]:
    """The events of libyaml for `content`.

    Raises:
        yaml.YAMLError: a syntax error, after the events before it.
    """
    return iter(yaml.parse(content, Loader=yaml.CBaseLoader))


def placing(content: bytes) -> Callable[[Mark], Place]:
    """From marks to places inside the file: libyaml ends the last line itself where the file does not."""
    last = content.count(b"\n")

    def place(mark: Mark) -> Place:
        return Place(mark.line + 1, mark.column + 1) if mark.line <= last else end_of(content.decode())

    return place


class _Frame(msgspec.Struct):
    """A list or mapping whose end has not come yet; `key` is that of the entry under way."""

    place: Place
    mapping: bool
    key: tuple[str, Place] | None = None


class _Anchored(msgspec.Struct):
    place: Place
    text: str


def yaml_places(content: bytes) -> list[Place]:
    """The place of each document of a file, up to the first syntax error.

    An alias's target has the position of its anchor, because that is where it can be fixed.
    """
    survey = _Survey(placing(content))
    try:
        for event in events(content):
            survey.take(event)
    except yaml.YAMLError:
        pass  # `load_yaml` has reported it
    return survey.places


class _Survey:
    """Builds positions from events that `load_yaml` has found good, or skipped."""

    def __init__(self, place: Callable[[Mark], Place]) -> None:
        self._place = place
        self.places: list[Place] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}

    def take(self, event: Any) -> None:
        """Go on by one event."""
        if isinstance(event, yaml.CollectionEndEvent):
            self._frames.pop()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}
        elif isinstance(event, yaml.NodeEvent):
            self._node(event)

    def _node(self, event: Any) -> None:
        here = self._place(event.start_mark)
        text = event.value if isinstance(event, yaml.ScalarEvent) else ""
        inner = here
        if isinstance(event, yaml.AliasEvent):
            anchored = self._anchors.get(event.anchor or "")
            if anchored is not None:
                inner, text = anchored.place, anchored.text
        elif event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(here, text)
        placed = self._put(here, inner, text)
        if isinstance(event, yaml.CollectionStartEvent):
            self._frames.append(_Frame(placed, isinstance(event, yaml.MappingStartEvent)))

    def _put(self, here: Place, inner: Place, text: str) -> Place:
        """Enter a value into what holds it; returns the place that its own values belong to."""
        if not self._frames:
            self.places.append(here)
            return here
        frame = self._frames[-1]
        if not frame.mapping:
            frame.place.inner[str(len(frame.place.inner))] = inner
            return inner
        if frame.key is None:
            frame.key = (text, here)
            return here
        key, place = frame.key
        entry = Place(place.line, place.column, inner.inner)
        frame.place.inner.setdefault(key, entry)
        frame.key = None
        return entry

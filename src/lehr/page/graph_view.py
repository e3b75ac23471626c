"""The screen of the assets around one: where each is drawn, the lines between them, and all as text. Pure.

Assets are drawn in layers from left to right: one is a layer to the left of those that refer to it, so that
waits lead to the left, except along cycles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lehr.model.reason import Reason
from lehr.page.answers import attributes

NODE_WIDTH, NODE_HEIGHT = 204, 42
MOST_ROWS = 14
"""Assets below each other; a layer with more has several columns."""
MOST_LINES = 400
MOST_LISTED = 10
"""References of an asset that the table names."""

_COLUMN, _ROW = NODE_WIDTH + 64, NODE_HEIGHT + 14
_MARGIN = 16
_BEND = 34
_APART = 8
"""Between two lines that connect the same assets in both directions."""
_LONGEST, _HEAD = 25, 10
"""Characters of an id in the picture, and how many of these are from its beginning."""
_LONGEST_STATE = 27

_MOST_PATHS = 3

Pair = tuple[str, str]
"""A source and its target."""


class Place(NamedTuple):
    """The upper left corner of an asset."""

    x: int
    y: int


class Layout(NamedTuple):
    """Where assets are, by id, and how large the picture is."""

    places: dict[str, Place]
    width: int
    height: int


class Node(NamedTuple):
    """An asset in the picture.

    Attributes:
        label: its id, shortened.
        state: its status, with the reason if both fit.
        words: its id, status and type.
        known: whether intent has or had it, so that it has a screen.
    """

    id: str
    label: str
    state: str
    words: str
    status: str
    reason: str
    known: bool
    centre: bool
    place: Place


class Line(NamedTuple):
    """A reference in the picture.

    Attributes:
        path: `d` of an SVG path.
        words: what refers to what, and where.
        goes_first: whether the target is pushed first.
    """

    path: str
    words: str
    goes_first: bool


class Row(NamedTuple):
    """An asset in the table.

    Attributes:
        refers_to, referred_by: ids among the assets of the picture.
    """

    node: Any
    known: bool
    refers_to: tuple[str, ...]
    referred_by: tuple[str, ...]


class GraphView(NamedTuple):
    """The screen.

    Attributes:
        others: number of assets besides the one in the middle.
        undrawn: number of references that are left out of the picture.
        cut: whether more assets are within this distance.
    """

    around: str
    hops: int
    others: int
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    rows: tuple[Row, ...]
    width: int
    height: int
    undrawn: int
    cut: bool


def graph_view(answer: Any) -> GraphView:
    """The screen of an answer of `graph`."""
    found = attributes(answer)
    hops = {node.id: node.hops for node in found.nodes}
    pairs = [(edge.source, edge.target) for edge in found.edges]
    drawn = layout(hops, pairs)
    nodes = tuple(_node(node, node.id == found.around, drawn.places[node.id]) for node in found.nodes)
    nearest = sorted(found.edges, key=lambda edge: hops[edge.source] + hops[edge.target])
    lines = tuple(_line(edge, drawn.places) for edge in nearest[:MOST_LINES])
    return GraphView(
        around=found.around,
        hops=found.hops,
        others=len(nodes) - 1,
        nodes=nodes,
        lines=lines,
        rows=tuple(_rows(found.nodes, pairs)),
        width=drawn.width,
        height=drawn.height,
        undrawn=len(found.edges) - len(lines),
        cut=found.cut,
    )


def shortened(id: str) -> str:
    """An id that fits into the picture: its beginning and its end."""
    if len(id) <= _LONGEST:
        return id
    return f"{id[:_HEAD]}…{id[_HEAD + 1 - _LONGEST :]}"


# --- places --------------------------------------------------------------------------------


def layout(hops: Mapping[str, int], pairs: Iterable[Pair]) -> Layout:
    """Where to draw assets. The same for the same input, and no two overlap.

    Args:
        hops: the distance of each asset; the nearest first.
        pairs: references between them.
    """
    links = _Links(pairs)
    layers: dict[int, list[str]] = defaultdict(list)
    for id, layer in _layers(hops, links).items():
        layers[layer].append(id)
    heights: dict[str, float] = {}
    columns: dict[int, list[list[str]]] = {}
    for layer in sorted(layers, key=lambda layer: (abs(layer), layer)):
        columns[layer] = _columns(_in_order(layers[layer], hops, links, heights))
        for column in columns[layer]:
            heights.update((id, row - (len(column) - 1) / 2) for row, id in enumerate(column))
    in_order = [column for layer in sorted(columns) for column in columns[layer]]
    most = max(map(len, in_order))
    places = {
        id: Place(
            _MARGIN + number * _COLUMN,
            _MARGIN + row * _ROW + (most - len(column)) * _ROW // 2,
        )
        for number, column in enumerate(in_order)
        for row, id in enumerate(column)
    }
    width = (len(in_order) - 1) * _COLUMN + NODE_WIDTH + 2 * _MARGIN + _BEND
    return Layout(places, width, (most - 1) * _ROW + NODE_HEIGHT + 2 * _MARGIN)


class _Links:
    """References in both directions."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.targets: dict[str, set[str]] = defaultdict(set)
        self.sources: dict[str, set[str]] = defaultdict(set)
        for source, target in pairs:
            self.targets[source].add(target)
            self.sources[target].add(source)

    def of(self, id: str) -> set[str]:
        return self.targets[id] | self.sources[id]


def _layers(hops: Mapping[str, int], links: _Links) -> dict[str, int]:
    """The layer of each asset: one further than the first nearer asset that it is connected with."""
    layers: dict[str, int] = {}
    for id, distance in hops.items():
        near = links.of(id)
        parent = next((other for other in layers if other in near and hops[other] == distance - 1), None)
        if parent is None:
            layers[id] = distance  # the one in the middle; or its references are unknown
        else:
            layers[id] = layers[parent] + (-1 if id in links.targets[parent] else 1)
    return layers


def _in_order(
    ids: Iterable[str], hops: Mapping[str, int], links: _Links, heights: Mapping[str, float]
) -> list[str]:
    """The assets of a layer from top to bottom: each at the height of those that it is connected with."""

    def height(id: str) -> float:
        known = [heights[other] for other in sorted(links.of(id)) if other in heights]
        return sum(known) / len(known) if known else 0.0

    return sorted(ids, key=lambda id: (hops[id] > 0, height(id), id))


def _columns(ids: Sequence[str]) -> list[list[str]]:
    count = -(-len(ids) // MOST_ROWS)
    return [list(ids[number::count]) for number in range(count)]


# --- lines ---------------------------------------------------------------------------------


def _node(node: Any, centre: bool, place: Place) -> Node:
    status = node.status or "not in intent"
    both = f"{status} {node.reason}".strip()
    state = status if len(both) > _LONGEST_STATE or node.reason in (status, Reason.AS_INTENDED) else both
    words = ", ".join(filter(None, (node.id, both, node.type)))
    label, known = shortened(node.id), bool(node.type)
    return Node(node.id, label, state, words, status, node.reason, known, centre, place)


def _line(edge: Any, places: Mapping[str, Place]) -> Line:
    verb = "depends on" if edge.goes_first else "refers to"
    paths = ", ".join(edge.path[:_MOST_PATHS]) + (", …" if len(edge.path) > _MOST_PATHS else "")
    words = f"{edge.source} {verb} {edge.target}" + (f" ({paths})" if paths else "")
    return Line(_curve(places[edge.source], places[edge.target]), words, edge.goes_first)


def _curve(source: Place, target: Place) -> str:
    """From the side of the source that faces the target; within a column, around the right."""
    begin, end = source.y + NODE_HEIGHT // 2, target.y + NODE_HEIGHT // 2
    if source.x > target.x:
        return _cubic(source.x, begin, -_BEND, target.x + NODE_WIDTH, end, _BEND)
    if source.x < target.x:
        return _cubic(source.x + NODE_WIDTH, begin + _APART, _BEND, target.x, end + _APART, -_BEND)
    if source.y == target.y:
        begin, end = begin + _APART, end - _APART
    right = source.x + NODE_WIDTH
    return _cubic(right, begin, _BEND, right, end, _BEND)


def _cubic(x: int, y: int, out: int, to_x: int, to_y: int, back: int) -> str:
    return f"M {x} {y} C {x + out} {y} {to_x + back} {to_y} {to_x} {to_y}"


# --- the table -----------------------------------------------------------------------------


def _rows(nodes: Iterable[Any], pairs: Sequence[Pair]) -> Iterator[Row]:
    links = _Links(pairs)
    for node in nodes:
        yield Row(
            node,
            bool(node.type),
            tuple(sorted(links.targets[node.id])),
            tuple(sorted(links.sources[node.id])),
        )

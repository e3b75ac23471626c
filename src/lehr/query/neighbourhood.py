"""The assets around one: those that it refers to, those that refer to it, and theirs, up to some distance."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.types import Registry
from lehr.query.asset_rows import known_asset, row_of
from lehr.query.graph import Edge, edges_of
from lehr.query.partition_view import Reading

MOST_NODES = 100
MOST_HOPS = 5


class Neighbour(msgspec.Struct, frozen=True):
    """One asset.

    Attributes:
        type: empty if there is no such asset.
        status: as in `lehr get assets`; empty if there is no such asset.
        hops: its distance.
    """

    id: AssetId
    type: str
    status: str
    reason: str
    message: str
    hops: int


class Neighbourhood(msgspec.Struct, frozen=True):
    """Assets around one, nearest first.

    Attributes:
        edges: references between the nodes, by source, then target.
        cut: True if there are more assets within this distance.
    """

    around: AssetId
    hops: int
    nodes: tuple[Neighbour, ...]
    edges: tuple[Edge, ...]
    cut: bool


def neighbourhood(
    reading: Reading, registry: Registry, around: str, hops: int, most: int = MOST_NODES
) -> Neighbourhood:
    """The assets within `hops` references of an asset, at most `most` of them.

    Args:
        registry: types of the newest incarnation.

    Raises:
        LehrError: there never was an asset `around`.
    """
    start, _came_with = known_asset(reading, around)
    assets: dict[AssetId, Asset | None] = {start.id: start}
    distance = {start.id: 0}
    cut = False
    for id in (ahead := [start.id]):
        if distance[id] == hops:
            break
        for other in _next_to(reading, registry, assets[id], id):
            if other in distance:
                continue
            if len(distance) == most:
                cut = True
                break
            distance[other] = distance[id] + 1
            assets[other] = _newest(reading, other)
            ahead.append(other)
    edges = (
        edge
        for asset in assets.values()
        if asset is not None
        for edge in edges_of(asset, registry)
        if edge.target in distance
    )
    nodes = tuple(_node(reading, id, assets[id], distance[id]) for id in ahead)
    in_order = sorted(edges, key=lambda edge: (edge.source, edge.target, edge.goes_first))
    return Neighbourhood(start.id, hops, nodes, tuple(in_order), cut)


def _next_to(reading: Reading, registry: Registry, asset: Asset | None, id: AssetId) -> Iterator[AssetId]:
    """Its dependencies, then what else it refers to, then its referrers."""
    if asset is not None:
        edges = sorted(edges_of(asset, registry), key=lambda edge: (not edge.goes_first, edge.target))
        yield from (edge.target for edge in edges)
    behind = reading.intent.mentioned_by(AssetKey(reading.partition, id))
    yield from sorted({source for source, _path in behind})


def _newest(reading: Reading, id: AssetId) -> Asset | None:
    newest = reading.newest()
    key = AssetKey(reading.partition, id)
    return None if newest is None else reading.intent.asset(key, newest.sequence)


def _node(reading: Reading, id: AssetId, asset: Asset | None, hops: int) -> Neighbour:
    if asset is None:
        return Neighbour(id, "", "", "", "intent does not have it", hops)
    row = row_of(reading, asset)
    return Neighbour(id, asset.type, row.status, row.reason, row.message, hops)

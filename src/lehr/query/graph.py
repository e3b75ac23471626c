"""Inputs and outputs of generators, and references between assets, as values for callers that draw them."""

from __future__ import annotations

import graphlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from lehr.base.cycles import shortest_cycle
from lehr.model.asset import Asset, AssetId
from lehr.model.provenance import DeclaredGenerator, Derivation, Reads
from lehr.model.selector import selector_of
from lehr.model.types import Registry

_MOST_CYCLES = 20


class GeneratorNode(msgspec.Struct, frozen=True):
    """A generator and its results.

    Attributes:
        line: of the module: its definition or, if that is not known, its first yield.
        of: the pattern of the files that it reads; or the type of the assets, or their selector.
        inputs: number of files or assets with a result; None if it reads all of them together.
        makes: number of assets by type.
        annotates: number of assets by addon; of a policy, by the JSON pointer that it sets.
        after: generators that make what it reads.
    """

    name: str
    line: int
    reads: Reads
    of: str
    inputs: int | None
    makes: dict[str, int]
    annotates: dict[str, int]
    after: tuple[str, ...] = ()


class GeneratorGraph(msgspec.Struct, frozen=True):
    """The origin of all assets.

    Attributes:
        files: number of asset files that declare any.
        declares: number of assets in these, by type.
        generators: in an order in which they can run.
    """

    files: int
    declares: dict[str, int]
    generators: tuple[GeneratorNode, ...]


class _Tally:
    """Counts of a generator while assets are counted."""

    def __init__(self, line: int, reads: Reads, of: str, makes: Iterable[str] = ()) -> None:
        self.line = line
        self.reads = reads
        self.of = of
        self.items: set[str] = set()
        self.makes: Counter[str] = Counter(dict.fromkeys(makes, 0))
        self.annotates: Counter[str] = Counter()


def generator_graph(assets: Iterable[Asset], declared: Iterable[DeclaredGenerator] = ()) -> GeneratorGraph:
    """The generators that `assets` come from, and those of `declared` that made nothing."""
    found = {item.name: _Tally(item.line, item.reads, item.of, item.makes) for item in declared}
    known = frozenset(found)
    files: set[str] = set()
    declares: Counter[str] = Counter()

    def tally(by: Derivation) -> _Tally:
        one = found.setdefault(by.generator, _Tally(by.line, by.reads, by.of))
        one.items.add(by.item)
        if by.generator not in known:
            one.line = min(one.line, by.line)
        return one

    for asset in assets:
        if asset.made_by is not None:
            tally(asset.made_by).makes[asset.type] += 1
        elif asset.origin is not None:
            files.add(asset.origin.file)
            declares[asset.type] += 1
        for item in asset.annotated_by:
            tally(item.by).annotates[item.what] += 1
    return GeneratorGraph(len(files), _counts(declares), _in_order(found))


def _in_order(found: Mapping[str, _Tally]) -> tuple[GeneratorNode, ...]:
    """Those over files first, then each after those that make what it reads."""
    nodes: dict[str, GeneratorNode] = {}
    for name in sorted(found, key=lambda name: (not found[name].reads.startswith("file"), name)):
        one = found[name]
        after = [other for other in sorted(found) if _reads_of(one, found[other])]
        inputs = None if one.reads in ("files", "assets") else len(one.items)
        nodes[name] = GeneratorNode(
            name,
            one.line,
            one.reads,
            one.of,
            inputs,
            _counts(one.makes),
            _counts(one.annotates),
            tuple(after),
        )
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for name, node in nodes.items():
        sorter.add(name, *(other for other in node.after if other != name))
    return tuple(nodes[name] for name in sorter.static_order())


def _reads_of(one: _Tally, other: _Tally) -> bool:
    if not one.reads.startswith("asset"):
        return False
    return any(map(selector_of(one.of).may_match, other.makes))


def _counts(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


# --- assets ----------------------------------------------------------------------------


class Edge(msgspec.Struct, frozen=True):
    """One asset refers to another.

    Attributes:
        path: JSON pointers into the document of `source`, where it does.
        goes_first: True if `target` is pushed first: `source` depends on it.
    """

    source: AssetId
    target: AssetId
    path: tuple[str, ...]
    goes_first: bool


class ReferenceGraph(msgspec.Struct, frozen=True):
    """How assets refer to each other.

    Attributes:
        assets: type by id: those that are selected, and those that they refer to; "" for one that is
            referred to and does not exist.
        edges: by source, then target.
        cycles: ids along each cycle, the first also last: of dependencies, then of other references.
    """

    assets: dict[AssetId, str]
    edges: tuple[Edge, ...]
    cycles: tuple[tuple[AssetId, ...], ...] = ()


def reference_graph(
    selected: Iterable[Asset], look_up: Callable[[AssetId], Asset | None], registry: Registry
) -> ReferenceGraph:
    """The references of the `selected` assets; their targets are looked up."""
    shown: dict[AssetId, str] = {}
    edges: list[Edge] = []
    for asset in selected:
        shown[asset.id] = asset.type
        edges += edges_of(asset, registry)
    edges.sort(key=lambda edge: (edge.source, edge.target, edge.goes_first))
    for target in {edge.target for edge in edges}.difference(shown):
        other = look_up(target)
        shown[target] = "" if other is None else other.type
    found = cycles([edge for edge in edges if edge.goes_first])
    found += [cycle for cycle in cycles(edges) if set(cycle) not in map(set, found)]
    return ReferenceGraph(dict(sorted(shown.items())), tuple(edges), tuple(found))


def edges_of(asset: Asset, registry: Registry) -> list[Edge]:
    """The references of one asset."""
    paths: dict[tuple[AssetId, bool], list[str]] = {}
    for mention in registry.mentions(asset):
        paths.setdefault((mention.target, mention.goes_first), []).append(mention.path)
    return [Edge(asset.id, target, tuple(where), first) for (target, first), where in paths.items()]


def cycles(edges: Iterable[Edge]) -> list[tuple[AssetId, ...]]:
    """A shortest cycle through each asset that is on one but not on an earlier one; the first of them."""
    ahead: dict[AssetId, list[AssetId]] = {}
    for edge in edges:
        ahead.setdefault(edge.source, []).append(edge.target)
    _drop_loose_ends(ahead)
    found: list[tuple[AssetId, ...]] = []
    met: set[AssetId] = set()
    for start in sorted(ahead):
        cycle = () if start in met else shortest_cycle(start, lambda id: ahead.get(id, ()))
        met.update(cycle)
        if cycle and len(found) < _MOST_CYCLES:
            found.append(cycle)
    return found


def _drop_loose_ends(ahead: dict[AssetId, list[AssetId]]) -> None:
    """Repeatedly drop nodes without successors, so that the rest leads into cycles."""
    behind: dict[AssetId, list[AssetId]] = {}
    for source, targets in ahead.items():
        for target in targets:
            behind.setdefault(target, []).append(source)
    left = {source: len(targets) for source, targets in ahead.items()}
    loose = [target for target in behind if target not in ahead]
    while loose:
        for source in behind.get(loose.pop(), ()):
            left[source] -= 1
            if not left[source]:
                del ahead[source]
                loose.append(source)

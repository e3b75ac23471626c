"""Graphs of generators and of assets, as text, as drawings for `dot` and Mermaid, and as plain data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.cli import terminal, words
from lehr.query.graph import GeneratorGraph, GeneratorNode, ReferenceGraph

_FILES = "asset files"


class Arrow(NamedTuple):
    """An arrow of a drawing, from one node to another; a dashed one means less."""

    source: str
    target: str
    label: str = ""
    dashed: bool = False


Nodes = Mapping[str, str]
"""Label by name."""


def drawn(form: str, nodes: Nodes, arrows: Iterable[Arrow]) -> Iterator[str]:
    """The lines of a drawing, for Graphviz (`dot`) or for Mermaid."""
    yield from (_dot if form == "dot" else _mermaid)(nodes, arrows)


def _dot(nodes: Nodes, arrows: Iterable[Arrow]) -> Iterator[str]:
    yield "digraph lehr {"
    yield "  rankdir=LR; node [shape=box];"
    for name, label in nodes.items():
        yield f"  {_quoted(name)} [label={_quoted(label)}];"
    for arrow in arrows:
        style = ", style=dashed" if arrow.dashed else ""
        yield f"  {_quoted(arrow.source)} -> {_quoted(arrow.target)} [label={_quoted(arrow.label)}{style}];"
    yield "}"


def _quoted(text: str) -> str:
    lines = (terminal.printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'


def _mermaid(nodes: Nodes, arrows: Iterable[Arrow]) -> Iterator[str]:
    keys = {name: f"n{number}" for number, name in enumerate(nodes)}
    yield "flowchart LR"
    for name, label in nodes.items():
        yield f'  {keys[name]}["{_entities(label)}"]'
    for arrow in arrows:
        line = "-.->" if arrow.dashed else "-->"
        label = f'|"{_entities(arrow.label)}"|' if arrow.label else ""
        yield f"  {keys[arrow.source]} {line}{label} {keys[arrow.target]}"


def _entities(text: str) -> str:
    lines = (
        terminal.printable(line).replace("#", "#35;").replace('"', "#quot;") for line in text.split("\n")
    )
    return "<br/>".join(lines)


# --- generators ------------------------------------------------------------------------


def generators_text(found: GeneratorGraph) -> Iterator[str]:
    """A table, in the order in which they run."""
    rows = [(_FILES, words.counted(found.files, "file"), _counted(found.declares), "")]
    for node in found.generators:
        made = _counted(node.makes)
        added = _counted(node.annotates, "+")
        says = ", ".join(part for part in (made, added) if part) or "nothing"
        rows.append((f"{node.name}:{node.line}", _reads(node), says, ", ".join(node.after)))
    yield from terminal.table(["made by", "reads", "makes", "after"], rows, terminal.width())


def generators_document(found: GeneratorGraph) -> dict[str, Any]:
    """As plain data."""
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document


def generators_drawing(found: GeneratorGraph) -> tuple[Nodes, list[Arrow]]:
    """Inputs, generators, and the types of their outputs."""
    nodes: dict[str, str] = {}
    arrows: list[Arrow] = []
    if found.files:
        nodes[_FILES] = f"{_FILES}\n{words.counted(found.files, 'file')}"
        for kind, count in found.declares.items():
            nodes.setdefault(kind, kind)
            arrows.append(Arrow(_FILES, kind, f"{count:,}"))
    for node in found.generators:
        nodes[node.name] = node.name
        nodes.setdefault(node.of, node.of)
        arrows.append(Arrow(node.of, node.name, "all" if node.inputs is None else f"{node.inputs:,}"))
        for kind, count in node.makes.items():
            nodes.setdefault(kind, kind)
            arrows.append(Arrow(node.name, kind, f"{count:,}"))
        for addon, count in node.annotates.items():
            nodes.setdefault(addon, addon)
            arrows.append(Arrow(node.name, addon, f"{count:,}", dashed=True))
    return nodes, arrows


def _reads(node: GeneratorNode) -> str:
    if node.inputs is None:
        return f"all {node.of}"
    return f"each {node.of} ({node.inputs:,})"


def _counted(counts: Mapping[str, int], sign: str = "") -> str:
    return ", ".join(f"{sign}{name} ({count:,})" for name, count in counts.items())


# --- assets ----------------------------------------------------------------------------


def references_text(found: ReferenceGraph) -> Iterator[str]:
    """Each asset with its references, and the circles."""
    of = {id: list(edges) for id, edges in itertools.groupby(found.edges, lambda edge: edge.source)}
    for id, kind in found.assets.items():
        yield terminal.printable(f"{id} ({kind or 'there is no such asset'})")
        for edge in of.get(id, ()):
            verb = "depends on" if edge.goes_first else "refers to"
            missing = "" if found.assets[edge.target] else ", which there is not"
            where = f"{edge.target}  ({', '.join(edge.path)}){missing}"
            yield f"  {verb:<10}  {terminal.printable(where)}"
    yield from circles_told(found)


def circles_told(found: ReferenceGraph) -> Iterator[str]:
    """A line for each circle."""
    waits = {(edge.source, edge.target) for edge in found.edges if edge.goes_first}
    for circle in found.circles:
        steps = itertools.pairwise(circle)
        what = "dependencies" if all(step in waits for step in steps) else "references"
        yield terminal.style(f"circle of {what}: {terminal.printable(' -> '.join(circle))}", "yellow")


def references_document(found: ReferenceGraph) -> dict[str, Any]:
    """As plain data."""
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document


def references_drawing(found: ReferenceGraph) -> tuple[Nodes, list[Arrow]]:
    """Assets, and arrows to their dependencies; dashed ones to mere references."""
    nodes = {str(id): f"{id}\n{kind or 'missing'}" for id, kind in found.assets.items()}
    return nodes, [
        Arrow(edge.source, edge.target, "" if edge.goes_first else "refers to", dashed=not edge.goes_first)
        for edge in found.edges
    ]

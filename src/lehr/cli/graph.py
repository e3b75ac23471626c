"""`lehr graph`: inputs and outputs of generators, or references between assets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from lehr.base.errors import LehrError
from lehr.cli import formatting, terminal
from lehr.cli.command import command
from lehr.cli.complete import complete_selector
from lehr.cli.named_server import named_server
from lehr.cli.output import print_lines, show_text
from lehr.cli.stored import incarnation_option, open_reading, reading_options
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.selector import Selector, parse_selector
from lehr.model.types import Registry
from lehr.query.graph import GeneratorGraph, GeneratorNode, ReferenceGraph, generator_graph, reference_graph
from lehr.wiring import registry_of

if TYPE_CHECKING:
    from lehr.cli.working_tree import WorkingTree
    from lehr.model.provenance import DeclaredGenerator


@command()
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@incarnation_option(
    "Use an incarnation of the state instead of DIR: 3, hello@3, latest, previous, or a time."
)
@click.option(
    "--assets",
    "selector",
    metavar="SELECTOR",
    shell_complete=complete_selector,
    help="Show the references and dependencies of these assets.",
)
@reading_options("text", "dot", "mermaid", "json")
def graph(directory: Path | None, incarnation: str | None, selector: str | None, form: str) -> None:
    """Show the generators of the workspace in DIR in the order in which they run, and what they make.

    With --assets, show the references of the selected assets instead, including cycles. With
    --incarnation, show either as of an incarnation, which does not list generators that made nothing.

    Examples:
        lehr graph
        lehr graph ../intent -o dot | dot -Tsvg > generators.svg
        lehr graph --incarnation latest
        lehr graph --assets 'web/*'
        lehr graph --assets type=lehr.Process -o mermaid
    """
    wanted = None if selector is None else parse_selector(selector)
    if incarnation is None:
        if named_server() is not None and directory is None:
            raise click.UsageError("A server has no workspace: name --incarnation or DIR.")
        tree = _workspace(directory or Path())
        if wanted is None:
            _show_generators(form, tree.assets.values(), tree.generators)
        else:
            _show_references(form, wanted, tree.assets.values(), tree.assets.get, tree.registry)
        return
    if directory is not None:
        raise click.UsageError("DIR and --incarnation cannot be combined.")
    with open_reading() as reading:
        name, sequence = reading.partition, reading.incarnation(incarnation).sequence
        stored = reading.intent.assets(name, sequence)
        if wanted is None:
            _show_generators(form, stored, ())
            return

        def look_up(id: AssetId) -> Asset | None:
            return reading.intent.asset(AssetKey(name, id), sequence)

        _show_references(form, wanted, stored, look_up, registry_of(reading.store, name, sequence))


def _workspace(directory: Path) -> WorkingTree:
    import asyncio

    from lehr.cli.validate import require_valid
    from lehr.cli.working_tree import look_at

    tree = asyncio.run(look_at(directory, None))
    if not tree.assets:
        require_valid(tree)
    elif not tree.valid:  # a graph may show the problem, for example a cycle
        click.echo("warning: this workspace has errors; see `lehr validate`", err=True)
    return tree


def _show_references(
    form: str,
    selector: Selector,
    assets: Iterable[Asset],
    look_up: Callable[[AssetId], Asset | None],
    known: Registry,
) -> None:
    found = reference_graph(filter(selector.matches, assets), look_up, known)
    if not found.assets:
        raise LehrError(
            f"no asset is selected by {selector}",
            code="CLI113",
            fix="`lehr graph --assets all` lists all assets",
        )
    if form in DRAWINGS:
        print_lines(DRAWINGS[form](*references_drawing(found)))
        for line in cycle_lines(found):
            click.echo(line, err=True)
    else:
        show_text(form, references_text(found), lambda: found)


def _show_generators(form: str, assets: Iterable[Asset], declared: tuple[DeclaredGenerator, ...]) -> None:
    found = generator_graph(assets, declared)
    if form in DRAWINGS:
        print_lines(DRAWINGS[form](*generators_drawing(found)))
    else:
        show_text(form, generators_text(found), lambda: found)


# --- as text, as drawings for `dot` and Mermaid, and as plain data ---------------

_FILES = "asset files"


class Arrow(NamedTuple):
    """An edge of a drawing; dashed if it is a weaker relation."""

    source: str
    target: str
    label: str = ""
    dashed: bool = False


Nodes = Mapping[str, str]
"""Label by name."""


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


DRAWINGS = {"dot": _dot, "mermaid": _mermaid}
"""The lines of a drawing, for Graphviz and for Mermaid."""


# --- generators ------------------------------------------------------------------------


def generators_text(found: GeneratorGraph) -> Iterator[str]:
    """A table, in the order in which they run."""
    rows = [(_FILES, formatting.counted(found.files, "file"), _counted(found.declares), "")]
    for node in found.generators:
        made = _counted(node.makes)
        added = _counted(node.annotates, "+")
        says = ", ".join(part for part in (made, added) if part) or "nothing"
        rows.append((f"{node.name}:{node.line}", _reads(node), says, ", ".join(node.after)))
    yield from terminal.table(["made by", "reads", "makes", "after"], rows, terminal.width())


def generators_drawing(found: GeneratorGraph) -> tuple[Nodes, list[Arrow]]:
    """Inputs, generators, and the types of their outputs."""
    nodes: dict[str, str] = {}
    arrows: list[Arrow] = []
    if found.files:
        nodes[_FILES] = f"{_FILES}\n{formatting.counted(found.files, 'file')}"
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
    """Each asset with its references, and the cycles."""
    of = {id: list(edges) for id, edges in itertools.groupby(found.edges, lambda edge: edge.source)}
    for id, kind in found.assets.items():
        yield terminal.printable(f"{id} ({kind or 'no such asset'})")
        for edge in of.get(id, ()):
            verb = "depends on" if edge.goes_first else "refers to"
            missing = "" if found.assets[edge.target] else " (missing)"
            where = f"{edge.target}  ({', '.join(edge.path)}){missing}"
            yield f"  {verb:<10}  {terminal.printable(where)}"
    yield from cycle_lines(found)


def cycle_lines(found: ReferenceGraph) -> Iterator[str]:
    """A line for each cycle."""
    waits = {(edge.source, edge.target) for edge in found.edges if edge.goes_first}
    for cycle in found.cycles:
        steps = itertools.pairwise(cycle)
        what = "dependencies" if all(step in waits for step in steps) else "references"
        yield terminal.style(f"cycle of {what}: {terminal.printable(' -> '.join(cycle))}", "yellow")


def references_drawing(found: ReferenceGraph) -> tuple[Nodes, list[Arrow]]:
    """Assets with edges to their dependencies; dashed edges are plain references."""
    nodes = {str(id): f"{id}\n{kind or 'missing'}" for id, kind in found.assets.items()}
    return nodes, [
        Arrow(edge.source, edge.target, "" if edge.goes_first else "refers to", dashed=not edge.goes_first)
        for edge in found.edges
    ]

"""`lehr graph`: what generators read and make, or how assets refer to each other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.named_server import named_server
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.stored import (
    open_reading,
    partition_option,
    registry,
    registry_of,
    state_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lehr.cli.working_tree import WorkingTree
    from lehr.model.asset import Asset, AssetId
    from lehr.model.provenance import DeclaredGenerator
    from lehr.model.selector import Selector
    from lehr.model.types import Registry


@click.command(
    epilog="""
    \b
    Examples:
      lehr graph
      lehr graph ../intent -o dot | dot -Tsvg > generators.svg
      lehr graph --incarnation latest
      lehr graph --assets 'web/*'
      lehr graph --assets type=lehr.Process -o mermaid
    """
)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--incarnation",
    metavar="INCARNATION",
    help="Of the state instead of DIR: 3, hello@3, latest, previous, or a time.",
)
@click.option("--assets", "selector", metavar="SELECTOR", help="What these assets refer to and depend on.")
@output_option("text", "dot", "mermaid", "json")
@state_option
@partition_option
def graph(
    directory: Path | None,
    incarnation: str | None,
    selector: str | None,
    form: str,
    state: Path | None,
    partition: str | None,
) -> None:
    """Show the generators of the workspace in DIR, in the order in which they run, and what they make.

    With --assets, the references that the selected assets make instead; circles are named. With
    --incarnation, either as of an incarnation: there, generators that made nothing are not known.
    """
    from lehr.model.asset import AssetKey
    from lehr.model.selector import parse_selector

    wanted = None if selector is None else parse_selector(selector)
    if incarnation is None:
        if named_server() is not None and directory is None:
            raise click.UsageError(
                "A server has incarnations and no workspace: name --incarnation, or the DIR that is meant."
            )
        tree = _workspace(directory or Path())
        if wanted is None:
            _show_generators(form, tree.assets.values(), tree.generators)
        else:
            _show_references(form, wanted, tree.assets.values(), tree.assets.get, tree.registry)
        return
    if directory is not None:
        raise click.UsageError("Name either DIR or --incarnation.")
    with open_reading(state, partition) as reading:
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

    tree = asyncio.run(look_at(directory, None, registry()))
    if not tree.assets:
        require_valid(tree)
    elif not tree.valid:  # a graph may show what is wrong: a circle, for example
        click.echo("This workspace has errors: see `lehr validate`.", err=True)
    return tree


def _show_references(
    form: str,
    selector: Selector,
    assets: Iterable[Asset],
    look_up: Callable[[AssetId], Asset | None],
    known: Registry,
) -> None:
    from lehr.cli import graphs
    from lehr.query.graph import reference_graph

    found = reference_graph(filter(selector.matches, assets), look_up, known)
    if not found.assets:
        raise LehrError(
            f"no asset is selected by {selector}",
            code="CLI113",
            fix="see `lehr graph --assets all` for what there is",
        )
    if form == "json":
        show_document(form, graphs.references_document(found))
    elif form == "text":
        print_lines(graphs.references_text(found))
    else:
        print_lines(graphs.drawn(form, *graphs.references_drawing(found)))
        for line in graphs.circles_told(found):
            click.echo(line, err=True)


def _show_generators(form: str, assets: Iterable[Asset], declared: tuple[DeclaredGenerator, ...]) -> None:
    from lehr.cli import graphs
    from lehr.query.graph import generator_graph

    found = generator_graph(assets, declared)
    if form == "json":
        show_document(form, graphs.generators_document(found))
    elif form == "text":
        print_lines(graphs.generators_text(found))
    else:
        print_lines(graphs.drawn(form, *graphs.generators_drawing(found)))

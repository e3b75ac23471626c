"""`lehr graph`: what generators read and make, or how assets refer to each other."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.stored import open_reading, partition_option, registry, registry_of, state_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lehr.model.asset import Asset, AssetId
    from lehr.model.provenance import DeclaredGenerator
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
    help="Of the state instead of DIR: 3, hello@3, latest or previous.",
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
    if incarnation is None:
        _show(form, selector, *_of_workspace(directory or Path()))
        return
    if directory is not None:
        raise click.UsageError("Name either DIR or --incarnation.")
    with open_reading(state, partition) as reading:
        sequence = reading.incarnation(incarnation).sequence
        stored = reading.intent.assets(reading.partition, sequence)
        if selector is None:
            _show_generators(form, stored, ())
        else:
            by_id = {asset.id: asset for asset in stored}
            _show(form, selector, by_id, (), registry_of(reading.store, reading.partition))


def _of_workspace(
    directory: Path,
) -> tuple[Mapping[AssetId, Asset], tuple[DeclaredGenerator, ...], Registry]:
    import asyncio

    from lehr.cli.validate import require_valid
    from lehr.cli.working_tree import look_at

    tree = asyncio.run(look_at(directory, None, registry()))
    if not tree.assets:
        require_valid(tree)
    elif not tree.valid:  # a graph may show what is wrong: a circle, say
        click.echo("This workspace has errors: see `lehr validate`.", err=True)
    return tree.assets, tree.generators, tree.registry


def _show(
    form: str,
    selector: str | None,
    assets: Mapping[AssetId, Asset],
    declared: tuple[DeclaredGenerator, ...],
    known: Registry,
) -> None:
    from lehr.model.selector import parse_selector
    from lehr.query.graph import reference_graph

    if selector is None:
        _show_generators(form, assets.values(), declared)
        return
    from lehr.cli import graphs

    found = reference_graph(assets, known, parse_selector(selector))
    if not found.assets:
        raise LehrError(
            f"no asset is selected by {selector}", fix="see `lehr graph --assets all` for what there is"
        )
    if form == "json":
        show_document(form, graphs.references_document(found))
    elif form == "text":
        print_lines(graphs.references_text(found))
    else:
        print_lines(graphs.drawn(form, *graphs.references_drawing(found)))
    for line in graphs.circles_told(found) if form != "text" else ():
        print(line, file=sys.stderr)


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

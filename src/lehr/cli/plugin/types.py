"""`lehr plugin types`: declarations of a plugin's types, for workspaces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lehr.base.errors import LehrError, StalledError, raised_as
from lehr.cli.command import command
from lehr.cli.output import yaml_text
from lehr.cli.plugin.test import program_of
from lehr.cli.run_log import configure_logs

if TYPE_CHECKING:
    from lehr.testing.plugin_fixtures import DescribedType


@command()
@click.argument("arguments", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def types(arguments: tuple[str, ...]) -> None:
    """Start the plugin COMMAND, and print declarations of its types for the folder `types` of a workspace.

    Examples:
        lehr plugin types ./routes > types/routes.yaml
        lehr plugin types node plugin.js

    A type that the plugin describes without a schema is not printed: it is declared elsewhere. Checks and
    validators of the plugin are named on standard error.
    """
    from lehr.testing.plugin_fixtures import description_of

    configure_logs()
    description = asyncio.run(description_of(program_of(arguments)))
    if description.checks:
        click.echo(f"The plugin also answers the checks {', '.join(description.checks)}.", err=True)
    if description.validators:
        click.echo(f"The plugin also answers the validators {', '.join(description.validators)}.", err=True)
    declared = [_declaration(item) for item in description.types if item.schema]
    if not declared:
        raise LehrError(
            f"the plugin {description.name} declares no type",
            code="CLI193",
            why="it describes its types without schemas",
            fix="declare them by hand: see `lehr help declare-a-type`",
        )
    print("---\n".join(map(yaml_text, declared)), end="")


def _declaration(item: DescribedType) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": item.name}
    if item.description:
        declared["description"] = item.description
    if item.version > 1:
        declared["version"] = item.version
    declared |= {"enforced": True, "schema": _decoded(item, item.schema)}
    if item.references:
        declared["references"] = _decoded(item, item.references)
    if item.secrets:
        declared["secrets"] = list(item.secrets)
    return declared


def _decoded(item: DescribedType, content: bytes) -> Any:
    what = f"the plugin describes {item.name} by something other than JSON"
    with raised_as(StalledError, what, code="CLI194", fix="fix the plugin", on=msgspec.DecodeError):
        return msgspec.json.decode(content)

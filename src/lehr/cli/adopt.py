"""`lehr adopt`: drafts of intent from what production has."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.complete import complete_type
from lehr.cli.output import output_option, show_document, yaml_text
from lehr.cli.stored import own_state_option
from lehr.model.declared_sources import WORKSPACE_FILE
from lehr.wiring import known_types

if TYPE_CHECKING:
    from lehr.dry_run.drafts import Draft
    from lehr.generate.engine.workspace import Workspace
    from lehr.model.asset import Asset
    from lehr.model.types import Registry
    from lehr.sdk.plugin import AssetPlugin

_NAMED = 3
_OF_TFSTATE = "lehr.TerraformResource"


@command()
@click.argument("type_name", metavar="TYPE", shell_complete=complete_type)
@click.argument("query", metavar="WHAT...", nargs=-1)
@click.option(
    "--from-tfstate",
    "tfstate",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draft a lehr.TerraformResource for each resource of a Terraform state file (version 4). The only "
    "argument is then the file with the lehr.TerraformProvider.",
)
@click.option(
    "--provider",
    metavar="ID",
    help="Look with the configuration of this lehr.Provider of the workspace. The drafts then name it.",
)
@click.option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the drafts to a new file in DIR instead of printing them. Never overwrites a file.",
)
@click.option(
    "--name", help="Name of that file and of the lehr.ObserveOnly asset. Defaults to a name based on TYPE."
)
@click.option(
    "--workspace",
    metavar="DIR",
    default=".",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The workspace. Relative paths are relative to it.",
)
@own_state_option()
@output_option("yaml", "json")
def adopt(
    type_name: str,
    query: tuple[str, ...],
    tfstate: Path | None,
    provider: str | None,
    folder: Path | None,
    name: str | None,
    workspace: Path,
    state: Path | None,
    form: str,
) -> None:
    """Draft assets of TYPE from what exists in production. Production is only read.

    The form of WHAT depends on the type: paths and patterns of files; the connection of a database and
    patterns of tables; the URL of a collection and options; ids of programs that Lehr runs, ports, or
    names of programs; the file of a Terraform provider, then a resource type and ids or `tag:NAME=VALUE`.

    A draft that would change production, or that contains what looks like a secret, is commented out with
    the reason. The others match production exactly. The first asset is a `lehr.ObserveOnly`: until you
    delete it, Lehr observes the adopted assets and pushes nothing.

    Examples:
        lehr adopt lehr.File '/etc/nginx/**'
        lehr adopt lehr.File motd.txt --write assets/adopted
        lehr adopt lehr.DatabaseSchema sqlite:data/shop.sqlite
        lehr adopt lehr.DatabaseSchema postgresql://me@/shop 'sales.*' --write assets
        lehr adopt lehr.HttpResource https://api.example.org/things match=/name fields=name,size
        lehr adopt lehr.TerraformResource assets/aws.yaml aws_vpc tag:team=shop
        lehr adopt --from-tfstate terraform.tfstate assets/aws.yaml --write assets
        lehr adopt lehr.TerraformWorkspace /srv/infra workspace=production
        lehr adopt lehr.Process 8080
        lehr adopt lehr.Process 'shop/*' -o json
        lehr adopt example.Bucket 'logs-*' --provider accounts/production
    """
    import asyncio

    from lehr.model.asset import id_problem

    type_name, query = _asked(type_name, query, tfstate)
    name = name or f"adopted-{type_name.rpartition('.')[2].lower()}"
    if problem := id_problem(f"observe/{name}"):
        raise click.UsageError(f"--name {name!r} is not valid in an asset id: {problem}.")
    read = _workspace(workspace)
    drafts = asyncio.run(_drafts(type_name, query, workspace, state, read, provider))
    if form == "json":
        show_document(form, drafts)
        return
    options = ["--provider", provider] if provider is not None else []
    text = _file(drafts, name, shlex.join(["lehr", "adopt", type_name, *query, *options]))
    if folder is None:
        print(text, end="")
    else:
        path = folder / f"{name}.yaml"
        _write(path, text)
        click.echo(f"{path} written.", err=True)
        _warn_if_not_included(path, workspace, read)
    _print_next_steps(drafts)


def _asked(type_name: str, query: tuple[str, ...], tfstate: Path | None) -> tuple[str, tuple[str, ...]]:
    """The type and the query of the plugin."""
    if tfstate is not None:
        words = tuple(word for word in (type_name, *query) if word != _OF_TFSTATE)
        if len(words) != 1:
            raise click.UsageError("With --from-tfstate, name only the file of the lehr.TerraformProvider.")
        return _OF_TFSTATE, (*words, f"state={tfstate.resolve()}")
    if not query:
        raise click.UsageError("Missing argument 'WHAT...'.")
    return type_name, query


def _workspace(folder: Path) -> Workspace:
    from lehr.cli.diagnostics import refuse
    from lehr.generate.engine.workspace import read_workspace

    what = f"{folder / WORKSPACE_FILE} cannot be read"
    fix = "change to a workspace, name one with --workspace, or create one with `lehr init`"
    with raised_as(LehrError, what, code="CLI101", fix=fix):
        found, problems = read_workspace((folder / WORKSPACE_FILE).read_bytes())
    if found is None:
        refuse(problems)
    return found


async def _drafts(
    type_name: str,
    query: Sequence[str],
    folder: Path,
    state: Path | None,
    read: Workspace,
    provider: str | None,
) -> list[Draft]:
    from lehr import wiring
    from lehr.base.clock import SystemClock
    from lehr.cli.deployment import deployment_of
    from lehr.cli.run_log import configure_logs
    from lehr.dry_run.drafts import drafts_of

    configure_logs()
    types, asset = known_types(), None
    if provider is not None:
        types, asset = await _provider(folder, provider)
    plugins = wiring.plugins(deployment_of(str(folder), state, kind="directory"))
    try:
        plugin = _serving(type_name, plugins)
        return await drafts_of(plugin, query, read.partition, types, SystemClock(), asset)
    finally:
        for plugin in plugins:
            await plugin.close()


async def _provider(folder: Path, id: str) -> tuple[Registry, Asset]:
    """The provider of this id in a workspace, and the workspace's types."""
    from lehr.cli.diagnostics import refuse
    from lehr.cli.working_tree import look_at
    from lehr.model.asset import AssetId
    from lehr.model.provider import PROVIDER

    tree = await look_at(folder, None)
    if not tree.valid:
        refuse(tree.diagnostics)
    asset = tree.assets.get(AssetId(id))
    if asset is None or asset.type != PROVIDER:
        known = [name for name, item in tree.assets.items() if item.type == PROVIDER]
        raise LehrError(
            f"the workspace has no provider {id}",
            code="CLI205",
            why="it does not exist" if asset is None else f"it is a {asset.type}",
            fix=f"choose from: {', '.join(sorted(known))}" if known else f"declare a {PROVIDER}",
        )
    return tree.registry, asset


def _serving(type_name: str, plugins: Sequence[AssetPlugin]) -> AssetPlugin:
    by_type = {name: plugin for plugin in plugins for name in plugin.types}
    if type_name not in by_type:
        raise click.UsageError(
            f"No plugin serves type {type_name}; known types: {', '.join(sorted(by_type))}."
        )
    return by_type[type_name]


def _file(drafts: Sequence[Draft], name: str, call: str) -> str:
    """The whole file: adopted assets as documents, and everything else as comments after them."""
    adopted = [draft for draft in drafts if not draft.obstacle]
    documents = [_observed([draft.id for draft in adopted], name)] if adopted else []
    documents += [_document(draft) for draft in adopted]
    parts = [_commented([f"Drafted by `{call}` from production."])]
    parts.append("\n---\n".join(documents))
    for draft in drafts:
        if draft.obstacle:
            why = [f"Not adopted: {draft.obstacle}.", *draft.notes]
            parts.append(_commented([*why, *_yaml(_plain(draft)).splitlines()]))
    return "\n\n".join(filter(None, parts)) + "\n"


def _observed(ids: Sequence[str], name: str) -> str:
    why = [
        "Keeps Lehr from pushing the assets below. When `lehr plan` shows no changes for them, delete",
        "this asset; Lehr then keeps production as declared.",
    ]
    payload = {"select": {"ids": ids}, "reason": "adopted, not yet reviewed"}
    document = {"id": f"observe/{name}", "type": "lehr.ObserveOnly", "payload": payload}
    return f"{_commented(why)}\n{_yaml(document)}"


def _document(draft: Draft) -> str:
    return "\n".join(filter(None, (_commented(draft.notes), _yaml(_plain(draft)))))


def _plain(draft: Draft) -> dict[str, object]:
    document: dict[str, object] = {"id": draft.id, "type": draft.type, "payload": draft.payload}
    return {**document, "addons": draft.addons} if draft.addons else document


def _yaml(document: object) -> str:
    return yaml_text(document).rstrip("\n")


def _commented(lines: Sequence[str]) -> str:
    printable = ("".join(c if c.isprintable() else "?" for c in line) for line in lines)
    return "\n".join(f"# {line}".rstrip() for line in printable)


def _write(path: Path, text: str) -> None:
    """Write `text` to a new file, completely or not at all: half of a file would be different intent."""
    making = path.with_name(f".{path.name}.new")
    with raised_as(LehrError, f"{path} cannot be written", code="CLI103"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            making.write_text(text)
            os.link(making, path)
        except FileExistsError as error:
            raise LehrError(
                f"{path} already exists",
                code="CLI102",
                why="`lehr adopt` never overwrites a file",
                fix="choose another --name",
            ) from error
        finally:
            making.unlink(missing_ok=True)


def _warn_if_not_included(path: Path, workspace: Path, read: Workspace) -> None:
    from lehr.generate.outcome.globs import matcher

    place, top = path.resolve(), workspace.resolve()
    relative = str(place.relative_to(top)) if place.is_relative_to(top) else None
    if relative is None or not any(matcher(pattern)(relative) for pattern in read.assets):
        patterns = ", ".join(read.assets)
        click.echo(f"  {WORKSPACE_FILE} does not include it: `assets` lists {patterns}", err=True)


def _left_out(drafts: Sequence[Draft]) -> Iterator[str]:
    """The number left out for each reason, with some examples."""
    ids: dict[str, list[str]] = {}
    for draft in drafts:
        if draft.obstacle:
            ids.setdefault(draft.obstacle, []).append(draft.id)
    for reason, found in sorted(ids.items(), key=lambda item: -len(item[1])):
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        yield f"{len(found)}: {reason} ({', '.join(found[:_NAMED])}{more})"


def _print_next_steps(drafts: Sequence[Draft]) -> None:
    total = formatting.counted(len(drafts), "draft")
    left = sum(bool(draft.obstacle) for draft in drafts)
    click.echo(f"{total}, {left} commented out:" if left else total, err=True)
    for line in _left_out(drafts):
        click.echo(f"  {line}", err=True)
    if left < len(drafts):
        click.echo("Review and commit them; nothing is pushed yet. Then run:", err=True)
        click.echo("  lehr plan             to check that nothing would change", err=True)
        click.echo("  lehr run --once       to adopt them; then delete the lehr.ObserveOnly asset", err=True)

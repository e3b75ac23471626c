"""`lehr plugin new`: a plugin that works, to start from."""

from __future__ import annotations

from pathlib import Path

import click

from lehr.cli.command import command
from lehr.templates.plugin_template import LANGUAGES, language_of, type_of, write_plugin


@command()
@click.argument("name")
@click.option(
    "--language", type=click.Choice(list(LANGUAGES)), required=True, help="Language to write the plugin in."
)
@click.option(
    "--type", "type_name", metavar="TYPE", help="Type of its assets. Defaults to `example.` and the name."
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to create. Defaults to the name.",
)
def new(name: str, language: str, type_name: str | None, directory: Path | None) -> None:
    """Create a small plugin that works, and passes `lehr plugin test`, to start from.

    It keeps one line of text in a file. With it come the declaration of its type for a workspace, and what
    `lehr plugin test` needs. Existing files are never overwritten.

    Examples:
        lehr plugin new short-link --language node
        lehr plugin new queue --language python --type shop.Queue --directory plugins/queue
    """
    folder = directory or Path(name)
    kind = type_of(name) if type_name is None else type_name
    written = write_plugin(language, name, kind, folder)
    click.echo(f"Created the plugin {name} for assets of type {kind}: {len(written)} files in {folder}.")
    _print_next_steps(name, language, folder)


def _print_next_steps(name: str, language: str, folder: Path) -> None:
    how = language_of(language, name)
    steps = [
        (f"cd {folder}", ""),
        (how.prepare, "prepare it"),
        (f"lehr plugin test {how.run} --fixtures fixtures", "test it against the rules of plugins"),
        (f"edit {how.file} and types/{name}.json", "make it yours, and describe its production in fixtures"),
    ]
    shown = [(call, purpose) for call, purpose in steps if call]
    width = max(len(call) for call, _purpose in shown)
    click.echo("Next steps:")
    for call, purpose in shown:
        click.echo(f"  {call.ljust(width)}  {purpose}".rstrip())

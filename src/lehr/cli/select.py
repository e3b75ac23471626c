"""`lehr select`: which units a rollout would update now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.command import command
from lehr.cli.output import output_option, show_document

if TYPE_CHECKING:
    from lehr.rollouts import Selection


@command("select")
@click.argument("question", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@output_option("text", "json")
def select(question: Path, form: str) -> None:
    """Show which units a rollout would update now, and why not the others.

    FILE, or - for stdin, holds a target selection (its waves, order and limits) and the units as they are.
    The answer depends on nothing else, and nothing is changed: try a selection before you use it, or let
    another program do the updating.

    Examples:
        lehr select question.yaml
        lehr select question.yaml -o json
        my-inventory | lehr select - -o json

    Exits with 2 if the file cannot be used.
    """
    from lehr.base.clock import SystemClock
    from lehr.cli.diagnostics import refuse_file
    from lehr.cli.selection_file import read_question
    from lehr.rollouts import select as selected

    name, content = _content(question)
    asked, problems = read_question(name, content)
    if asked is None:
        refuse_file(problems, form)
    now = SystemClock().now() if asked.now is None else asked.now
    found = selected(asked.selection, asked.units, now)
    if form == "json":
        import msgspec

        show_document(form, msgspec.to_builtins(found))
    else:
        click.echo("\n".join(_lines(found, now)))


def _content(question: Path) -> tuple[str, bytes]:
    if str(question) == "-":
        return "stdin.yaml", sys.stdin.buffer.read()  # JSON is YAML
    try:
        return str(question), question.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{question} cannot be read: {error.strerror}") from error


def _lines(found: Selection, now: float) -> list[str]:
    from lehr.cli.formatting import span

    lines = ["All waves are over." if not found.wave else f"Wave {found.wave} of {found.waves}"]
    if found.hold:
        lines.append(f"On hold: {found.hold}.")
    lines += [f"Note: {note}." for note in found.notes]
    if found.update:
        lines += ["Update now:", *(f"  {id}" for id in found.update)]
    if found.others:
        width = max(map(len, found.others))
        lines += ["Not now:", *(f"  {id:{width}}  {why}" for id, why in found.others.items())]
    if found.ask_again_at is not None:
        lines.append(f"Time alone changes this in {span(found.ask_again_at - now)}.")
    return lines

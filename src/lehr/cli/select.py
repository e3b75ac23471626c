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
    from lehr.sdk.target_selection import SelectionService


@command("select")
@click.argument("question", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--service",
    metavar="URL|NAME",
    help="Ask the program at this URL, or the selection of this name in an installed package.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the token that the program at URL asks for.",
)
@output_option("text", "json")
def select(question: Path, service: str | None, token_file: Path | None, form: str) -> None:
    """Show which units a rollout would update now, and why not the others.

    FILE, or - for stdin, holds a target selection (its waves, order and limits) and the units as they are.
    The answer depends on nothing else, and nothing is changed: try a selection before you use it, or let
    another program do the updating.

    Examples:
        lehr select question.yaml
        lehr select question.yaml -o json
        my-inventory | lehr select - -o json
        lehr select question.yaml --service http://127.0.0.1:9000/select

    With --service, your own selection answers: `at_most` and `new` of the selection in FILE are limits that
    its answer must keep, and all other fields are for it to interpret.

    Exits with 2 if the file cannot be used, and with 1 if the answer of a service is refused.
    """
    from lehr.base.clock import SystemClock
    from lehr.wiring.selection_services import selection_service

    now = SystemClock().now()
    name, content = _content(question)
    if token_file is not None and (service is None or "://" not in service):
        raise click.UsageError("--token-file requires --service URL.")
    if service is None:
        found, now = _selected(name, content, now, form)
    else:
        found, now = _asked(selection_service(service, token=token_file), name, content, now, form)
    if form == "json":
        import msgspec

        show_document(form, msgspec.to_builtins(found))
    else:
        click.echo("\n".join(_lines(found, now)))


def _selected(name: str, content: bytes, now: float, form: str) -> tuple[Selection, float]:
    from lehr.cli.diagnostics import refuse_file
    from lehr.cli.selection_file import read_question
    from lehr.rollouts import select as selected

    question, problems = read_question(name, content)
    if question is None:
        refuse_file(problems, form)
    now = now if question.now is None else question.now
    return selected(question.selection, question.units, now), now


def _asked(
    service: SelectionService, name: str, content: bytes, now: float, form: str
) -> tuple[Selection, float]:
    import asyncio

    from lehr.cli.diagnostics import refuse_file
    from lehr.cli.selection_file import read_service_question
    from lehr.rollouts.services import ask, question_of

    given, problems = read_service_question(name, content)
    if given is None:
        refuse_file(problems, form)
    now = now if given.now is None else given.now
    limits = given.limits
    question = question_of(given.units, now, at_most=limits.at_most, new=limits.new, settings=given.settings)
    asked = asyncio.run(ask(service, question))
    if asked.refused is not None:
        raise asked.refused
    return asked.selection, now


def _content(question: Path) -> tuple[str, bytes]:
    if str(question) == "-":
        return "stdin.yaml", sys.stdin.buffer.read()  # JSON is YAML
    try:
        return str(question), question.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{question} cannot be read: {error.strerror}") from error


def _lines(found: Selection, now: float) -> list[str]:
    from lehr.cli.formatting import span

    lines = []
    if found.waves or found.done:
        lines.append(f"Wave {found.wave} of {found.waves}" if found.wave else "All waves are over.")
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

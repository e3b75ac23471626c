"""`lehr describe`: everything that is known about an asset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from lehr.base.clock import iso
from lehr.cli import formatting, terminal
from lehr.cli.active_run import run_state
from lehr.cli.awaited_release import awaited_release, release_lines
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.explanation_text import explanation_lines
from lehr.cli.output import print_lines, show_document, yaml_text
from lehr.cli.stored import open_reading, reading_options
from lehr.model.operation import Operation
from lehr.query.describe import Description
from lehr.query.describe import describe as look
from lehr.query.explanation import explanation_document
from lehr.wiring import registry_of


@command()
@click.argument("asset", shell_complete=complete_asset)
@reading_options("text", "json", "yaml")
def describe(asset: str, form: str) -> None:
    """Show the intent of ASSET, where it is declared, its status in production, and its history.

    Examples:
        lehr describe web/process
        lehr describe web/process -o yaml
    """
    with open_reading() as reading:
        found = look(reading, registry_of(reading.store, reading.partition), asset)
        if form != "text":
            show_document(form, _document(found))
            return
        print_lines(_intent(found))
        print()
        attempt = reading.records.attempt(reading.partition)
        awaited = awaited_release(reading, found.explanation)
        release = () if awaited is None else release_lines(awaited, reading, of=found.explanation.row.id)
        alive = run_state().active
        print_lines(explanation_lines(found.explanation, attempt, reading.now, alive=alive, release=release))
        print_lines(_history(found, reading.now))


def _intent(found: Description) -> Iterator[str]:
    yield f"id          {found.document['id']}"
    yield f"type        {found.document['type']}"
    came_with = f"last changed in incarnation {found.explanation.came_with}"
    yield f"declared    {found.origin or 'by a generator'}, {came_with}"
    yield f"digest      {found.digest}"
    for title in ("payload", "addons"):
        if found.document[title]:
            yield title
            lines = yaml_text(found.document[title]).splitlines()
            yield from (f"  {terminal.printable(line)}" for line in lines)
    if found.refers_to:
        yield "refers to"
        yield from (f"  {item.target}  ({item.path})" for item in found.refers_to)
    if found.referred_by:
        yield "referred to by"
        yield from (f"  {id}  ({path})" for id, path in found.referred_by)


def _history(found: Description, now: float) -> Iterator[str]:
    entry = found.explanation.ledger
    if entry is not None:
        how = "adopted" if entry.operation is None else f"by {entry.operation}"
        yield f"  ledger     {entry.goal}, content of incarnation {entry.content}, {how}, {iso(entry.at)}"
    if found.handle:
        yield f"  handle     {terminal.printable(found.handle)}"
    if found.outputs is not None:
        yield f"  outputs    since {formatting.ago(found.outputs.at, now)}"
        lines = yaml_text(found.outputs.values).splitlines()
        yield from (f"    {terminal.printable(line)}" for line in lines)
    if found.operations:
        yield "  pushes, newest first"
        rows = [_push(operation, now) for operation in found.operations]
        yield from terminal.table([""] * len(rows[0]), rows, terminal.width())[1:]


def _push(operation: Operation, now: float) -> tuple[str, ...]:
    took = formatting.span((operation.ended_at or now) - operation.started_at)
    return (
        f"    {operation.id}",
        formatting.ago(operation.started_at, now),
        f"@{operation.content}",
        str(operation.purpose),
        str(operation.result or "under way"),
        took,
        operation.message,
    )


def _document(found: Description) -> dict[str, Any]:
    from lehr.base.moments import plain

    return {
        "asset": found.document,
        "declared_at": found.origin,
        "digest": found.digest,
        "refers_to": [{"id": item.target, "path": item.path} for item in found.refers_to],
        "referred_by": [{"id": id, "path": path} for id, path in found.referred_by],
        "handle": found.handle or None,
        "outputs": None if found.outputs is None else found.outputs.values,
        "operations": [plain(item) for item in found.operations],
        "why": plain(explanation_document(found.explanation)),
    }

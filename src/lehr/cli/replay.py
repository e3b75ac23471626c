"""`lehr replay`: decides a recorded decision again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lehr.cli import formatting, terminal
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.output import show_text
from lehr.cli.stored import open_reading, reading_options, remote_store

if TYPE_CHECKING:
    from lehr.enforce.replay import Replay
    from lehr.model.decision import Condition
    from lehr.query.partition_view import Reading


@command()
@click.argument("decision", shell_complete=complete_asset)
@reading_options("text", "json", "yaml")
def replay(decision: str, form: str) -> None:
    """Decide DECISION again from the inputs that were recorded with it, and compare.

    DECISION is a number, as `lehr get decisions` and `lehr why` print it, or an asset: its newest decision.
    Nothing is observed or pushed: only the code that decides is run again.

    Exits with 0 if the decision is the same in every field, and with 1 if it is not.

    Examples:
        lehr replay 4711
        lehr replay web/process             the newest decision about it
        lehr replay 4711 -o json
    """
    from lehr.base.moments import plain

    with open_reading() as reading:
        number, remote = _number(reading, decision), remote_store(reading)
        found = _replay(reading, number) if remote is None else remote.replay(reading.partition, number)
        show_text(form, _lines(found, reading.now), lambda: plain(found))
    if not found.same:
        raise click.exceptions.Exit(1)


def _replay(reading: Reading, number: int) -> Replay:
    from lehr.enforce.replay import replay  # slow to import, and not needed with a server

    return replay(reading, number)


def _number(reading: Reading, text: str) -> int:
    """The number of a decision, as written; or that of the newest decision about an asset.

    Raises:
        LehrError: there is no such asset, or no decision about it.
    """
    from lehr.base.errors import LehrError
    from lehr.query.asset_rows import known_asset

    digits = text.removeprefix("#")
    if digits.isascii() and digits.isdecimal() and len(digits) < _DIGITS:
        return int(digits)
    id = known_asset(reading, text)[0].id
    decisions = reading.records.decisions(reading.partition, id, 1)
    if not decisions:
        raise LehrError(
            f"there is no decision about {id}",
            code="CLI188",
            why="it has had no turn yet, or its decisions were pruned",
            fix=f"see `lehr why {id}`",
        )
    return decisions[0][0]


_DIGITS = 16
"""A number of the store has fewer digits."""


def _lines(found: Replay, now: float) -> Iterator[str]:
    of = f"decision #{found.number} on {found.asset}, made {formatting.ago(found.at, now)}"
    if found.same:
        yield f"{terminal.style('same', 'green')}       {of}"
        yield f"  decided    {_condition(found.recorded)}"
        return
    yield f"{terminal.style('different', 'red')}  {of}"
    yield f"  recorded   {_condition(found.recorded)}"
    yield f"  again      {'no decision' if found.again is None else _condition(found.again)}"
    if found.differences:
        yield f"  differs in {', '.join(item.field for item in found.differences)}; see -o json"


def _condition(condition: Condition) -> str:
    message = f": {condition.message}" if condition.message else ""
    return terminal.printable(f"{condition.status} ({condition.reason}){message}")

"""`lehr events`: what happened, and what happens; `lehr audit`: what people commanded."""

from __future__ import annotations

import asyncio
import json

import click
import msgspec

from lehr.base.clock import SystemClock, iso
from lehr.base.moments import plain
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.logs import since_option
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.stored import list_options, open_reading, partition_option, state_option
from lehr.cli.terminal import printable
from lehr.model.asset import AssetId
from lehr.model.control import AuditEntry
from lehr.query.asset_rows import known_asset
from lehr.query.events import Event, position_before
from lehr.query.events import events as found_events
from lehr.query.partition_view import Reading
from lehr.sdk.watch import FeedGoneError

_LOOK_SECONDS = 0.5
_ENTRIES = 100
_DEFAULT_SECONDS = 3600.0


@command()
@click.argument("asset", required=False, shell_complete=complete_asset)
@click.option("-f", "--follow", is_flag=True, help="Continue with new events until interrupted.")
@since_option
@output_option("text", "json")
@state_option
@partition_option
def events(asset: str | None, follow: bool, since: float | None, form: str) -> None:
    """Show what happened, oldest first: incarnations, decisions, pushes, controls and releases.

    Examples:
        lehr events                      of the last hour
        lehr events web/process --since 1d
        lehr events -f -o json           one JSON object on each line, as it happens

    Events refer to records, and show them as they are now. `lehr audit` shows commands, also refused ones.
    """
    with open_reading() as reading:
        known = None if asset is None else known_asset(reading, asset)[0].id
        first = reading.now - _DEFAULT_SECONDS if since is None else since
        after = _show(reading, position_before(reading, first), known, form)
        if follow:
            asyncio.run(_follow(reading, after, known, form))


async def _follow(reading: Reading, after: int, asset: AssetId | None, form: str) -> None:
    clock = SystemClock()
    while True:
        await clock.sleep(_LOOK_SECONDS)
        now = Reading(reading.store, reading.partition, clock.now(), reading.inert)
        try:
            after = _show(now, after, asset, form)
        except FeedGoneError as error:
            after = now.records.position(now.partition)
            click.echo(f"some events are missing: {error.why}", err=True)


def _show(reading: Reading, after: int, asset: AssetId | None, form: str) -> int:
    """Write all events after a position. Returns the position of the last one."""
    while entries := reading.records.feed(reading.partition, after, _ENTRIES):
        for event in found_events(reading, entries, asset):
            print(_line(event) if form == "text" else json.dumps(plain(event)), flush=True)
        after = entries[-1].position
    return after


def _line(event: Event) -> str:
    return printable(f"{iso(event.at)}  {event.kind:<17}  {event.asset or '-':<20}  {event.message}").rstrip()


@command()
@list_options(50)
def audit(limit: int, form: str) -> None:
    """List the commands that people gave, newest first, with who gave them and the result.

    Examples:
        lehr audit
        lehr audit --limit 5 -o json
    """
    with open_reading() as reading:
        now = reading.now
        columns: list[Column[AuditEntry]] = [
            Column("age", lambda item: formatting.age(item.at, now), narrow=True),
            Column("at", lambda item: iso(item.at), wide=True),
            Column("actor", lambda item: item.actor),
            Column("command", lambda item: item.command),
            Column("arguments", _arguments),
            Column("result", lambda item: item.result),
        ]
        found = reading.records.audit(reading.partition, limit)
        show(form, found, Shape(columns, plain, lambda item: item.command), nothing="no commands")


def _arguments(entry: AuditEntry) -> str:
    given = {name: value for name, value in entry.arguments.items() if value not in (None, "", [], {})}
    return " ".join(f"{name}={_value(value)}" for name, value in given.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()

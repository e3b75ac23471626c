"""`lehr events`: what happened, and what happens; `lehr audit`: what people commanded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import msgspec

from lehr.base.clock import iso
from lehr.base.moments import plain
from lehr.cli import formatting, live
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.logs import since_option
from lehr.cli.named_server import server_option
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.stored import list_options, open_reading, partition_option, state_option
from lehr.cli.terminal import printable
from lehr.model.asset import AssetId
from lehr.query.asset_rows import known_asset
from lehr.query.events import Event, position_before
from lehr.query.events import events as found_events
from lehr.query.explanation import NumberedAuditEntry, audit_entry
from lehr.query.partition_view import Reading
from lehr.sdk.watch import FeedGoneError

_ENTRIES = 100
_DEFAULT_SECONDS = 3600.0


@command()
@click.argument("asset", required=False, shell_complete=complete_asset)
@click.option("-f", "--follow", is_flag=True, help="Continue with new events until interrupted.")
@since_option
@output_option("text", "json")
@server_option
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
        after = position_before(reading, first)
        for position in _show(reading, after, known, form):
            after = position
        if follow:
            live.follow(reading, _LiveEvents(after, known, form))


class _LiveEvents(live.Lines, live.Live):
    """Events after a position."""

    def __init__(self, after: int, asset: AssetId | None, form: str) -> None:
        self._after = after
        self._asset = asset
        self._form = form

    def show(self, reading: Reading, entries: live.Entries) -> None:
        if entries is not None and not entries:
            return
        try:
            for position in _show(reading, self._after, self._asset, self._form):
                self._after = position
        except FeedGoneError as error:
            self._after = reading.records.position(reading.partition)
            click.echo(f"some events are missing: {error.why}", err=True)


def _show(reading: Reading, after: int, asset: AssetId | None, form: str) -> Iterator[int]:
    """Write all events after a position; yields that of the last one that was written, again and again."""
    while entries := reading.records.feed(reading.partition, after, _ENTRIES):
        for event in found_events(reading, entries, asset):
            print(_line(event) if form == "text" else json.dumps(plain(event)), flush=True)
        after = entries[-1].position
        yield after


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
        columns: list[Column[NumberedAuditEntry]] = [
            Column("age", lambda item: formatting.age(item.at, now), narrow=True),
            Column("at", lambda item: iso(item.at), wide=True),
            Column("actor", lambda item: item.actor),
            Column("command", lambda item: item.given),
            Column("arguments", _arguments),
            Column("result", lambda item: item.result),
        ]
        found = [audit_entry(*item) for item in reading.records.audit(reading.partition, limit)]
        show(form, found, Shape(columns, plain, lambda item: item.command), nothing="no commands")


def _arguments(entry: NumberedAuditEntry) -> str:
    given = {name: value for name, value in entry.arguments.items() if value not in (None, "", [], {})}
    return " ".join(f"{name}={_value(value)}" for name, value in given.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()

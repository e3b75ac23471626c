"""`lehr get`: lists."""

from __future__ import annotations

from typing import Any

import click

from lehr.base.moments import plain
from lehr.cli import formatting
from lehr.cli.asset_query import AssetQuery, check, matching, query_options, show_intent, show_plan
from lehr.cli.command import Group
from lehr.cli.complete import complete_asset, complete_selector, complete_status
from lehr.cli.documents import of_decision
from lehr.cli.global_options import global_options
from lehr.cli.incarnation_list import incarnations
from lehr.cli.live import follow, watch_option
from lehr.cli.output import Column, Shape, bounded, show
from lehr.cli.referrers import referrers
from lehr.cli.stored import incarnation_option, list_options, open_reading
from lehr.cli.watched_lists import WatchedAssets, WatchedDecisions
from lehr.model.decision import Decision
from lehr.model.operation import Operation
from lehr.model.selector import Selector, parse_selector
from lehr.query.asset_rows import Row, known_asset, parse_status, rows
from lehr.query.asset_rows import orphans as find
from lehr.query.partition_view import Reading


class PrefixGroup(Group):
    """Commands that can be called by any unambiguous prefix of their names (`lehr get asset`)."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = [name for name in self.list_commands(ctx) if name.startswith(cmd_name)]
        return super().get_command(ctx, found[0]) if len(found) == 1 else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        _name, command, rest = super().resolve_command(ctx, args)
        return None if command is None else command.name, command, rest


@click.group(cls=PrefixGroup)
@global_options
def get(**_passed_on: str | None) -> None:
    """List resources. Names may be shortened: `lehr get asset`, `lehr get inc`.

    Examples:
        lehr get assets                    the status of every asset
        lehr get assets --status Waiting
        lehr get asset 'web-*' -o json
        lehr get decisions web/process     the decisions about one asset
        lehr get incarnations --limit 5
    """


@get.command()
@click.argument("selector", required=False, shell_complete=complete_selector)
@click.option(
    "--status",
    shell_complete=complete_status,
    help="Only assets with this status, such as Waiting. Case does not matter.",
)
@incarnation_option(
    "As declared in 3, hello@3, latest, previous, imported:hello@3, or at a time; without status."
)
@query_options
@watch_option
@list_options(None)
def assets(
    selector: str | None,
    status: str | None,
    incarnation: str | None,
    expression: str | None,
    explain_query: bool,
    fields: str | None,
    cursor: str | None,
    watch: bool,
    limit: int | None,
    form: str,
) -> None:
    """List assets and their status. SELECTOR is an id, a pattern, type=T or label:K=V, joined by commas.

    Examples:
        lehr get assets
        lehr get assets 'web-*,type=lehr.File'
        lehr get assets label:team=web --status Stalled -o wide
        lehr get assets --incarnation hello@3        as declared then
        lehr get assets --incarnation 2026-01-31T12:00Z
        lehr get assets --filter "payload.replicas == 3"
        lehr get assets --fields payload.path,addons --limit 100
        lehr get assets 'web/*' --watch              a row for each change of a status
        lehr get assets --watch -o json              a JSON object on each line

    With --watch, an asset that leaves the list has a last row: with its new status, or with the status Gone.
    """
    asked = AssetQuery(selector, expression, fields, incarnation, cursor, explain_query)
    check(asked, status)
    wanted = None if status is None else parse_status(status)
    if watch and (asked.explain or asked.of_intent or limit is not None):
        raise click.UsageError("--watch can only be combined with SELECTOR, --status, --filter and -o")
    if asked.explain:
        show_plan(form, asked)
        return
    if asked.of_intent:
        show_intent(form, asked, limit)
        return
    with open_reading() as reading:
        if watch:
            follow(reading, WatchedAssets(form, lambda now: _found(now, asked), wanted, _rows_shape))
        found = [row for row in _found(reading, asked) if wanted in (None, row.status)]
        show(form, bounded(found, limit, "assets"), _rows_shape(reading), nothing="no assets")


def _found(reading: Reading, asked: AssetQuery) -> list[Row]:
    among = matching(reading, asked)
    return [row for row in rows(reading, _parsed(asked.selector)) if among is None or row.id in among]


get.add_command(referrers)
get.add_command(incarnations)


@get.command()
@click.argument("selector", required=False, shell_complete=complete_selector)
@list_options(None)
def orphans(selector: str | None, limit: int | None, form: str) -> None:
    """List assets that intent has let go: still in production, but never touched by Lehr.

    Examples:
        lehr get orphans
        lehr get orphans -o name
    """
    with open_reading() as reading:
        shown = bounded(find(reading, _parsed(selector)), limit, "orphans")
        show(form, shown, _rows_shape(reading), nothing="no orphans")


@get.command()
@click.argument("asset", required=False, shell_complete=complete_asset)
@list_options(50)
def operations(asset: str | None, limit: int, form: str) -> None:
    """List pushes, newest first, optionally of one ASSET.

    Examples:
        lehr get operations
        lehr get operations web/process --limit 3 -o wide
    """
    with open_reading() as reading:
        now = reading.now
        columns: list[Column[Operation]] = [
            Column("id", lambda item: item.id),
            Column("asset", lambda item: item.asset),
            Column("type", lambda item: item.type, wide=True),
            Column("goal", lambda item: str(item.goal)),
            Column("purpose", lambda item: str(item.purpose), wide=True),
            Column("content", lambda item: f"{item.partition}@{item.content}"),
            Column("governing", lambda item: f"{item.partition}@{item.governing}", wide=True),
            Column("started", lambda item: formatting.ago(item.started_at, now), narrow=True),
            Column("started", lambda item: formatting.moment(item.started_at) or "", wide=True),
            Column("took", lambda item: formatting.span((item.ended_at or now) - item.started_at)),
            Column("result", lambda item: str(item.result or "under way")),
            Column("message", lambda item: item.message),
        ]
        known = None if asset is None else _known(reading, asset)
        found = reading.records.operations(reading.partition, known, limit)
        show(form, found, Shape(columns, plain, lambda item: item.id), nothing="no operations")


@get.command()
@click.argument("asset", required=False, shell_complete=complete_asset)
@watch_option
@list_options(50)
def decisions(asset: str | None, watch: bool, limit: int, form: str) -> None:
    """List decisions, newest first, optionally about one ASSET. With --watch, the newest is the last.

    Examples:
        lehr get decisions
        lehr get decisions web/process -o yaml    with all verdicts and evidence
        lehr get decisions --watch --limit 1      as they are made
    """
    with open_reading() as reading:
        known = None if asset is None else _known(reading, asset)
        if watch:
            follow(reading, WatchedDecisions(form, known, limit, _decisions_shape))
        found = reading.records.decisions(reading.partition, known, limit)
        show(form, found, _decisions_shape(reading), nothing="no decisions")


def _decisions_shape(reading: Reading) -> Shape[tuple[int, Decision]]:
    now = reading.now
    columns: list[Column[tuple[int, Decision]]] = [
        Column("number", lambda item: str(item[0])),
        Column("asset", lambda item: item[1].asset),
        Column("age", lambda item: formatting.age(item[1].at, now), narrow=True),
        Column("at", lambda item: formatting.moment(item[1].at) or "", wide=True),
        Column("content", lambda item: str(item[1].content), wide=True),
        Column("governing", lambda item: str(item[1].governing), wide=True),
        Column("operation", lambda item: item[1].operation or "-", wide=True),
        Column("status", lambda item: str(item[1].condition.status)),
        Column("reason", lambda item: item[1].condition.reason),
        Column("cause", lambda item: item[1].event),
        Column("message", lambda item: item[1].condition.message),
    ]
    return Shape(columns, lambda item: of_decision(*item), lambda item: str(item[0]))


def _rows_shape(reading: Reading) -> Shape[Row]:
    now = reading.now
    columns: list[Column[Row]] = [
        Column("id", lambda row: row.id),
        Column("type", lambda row: row.type),
        Column("status", lambda row: row.status),
        Column("reason", lambda row: row.reason or "-"),
        Column("since", lambda row: formatting.age(row.since, now), narrow=True),
        Column("since", lambda row: formatting.moment(row.since) or "-", wide=True),
        Column("next turn", lambda row: formatting.moment(row.next_at) or "-", wide=True),
        Column("unblock", lambda row: row.unblock or "-", wide=True),
        Column("message", lambda row: row.message),
    ]
    return Shape(columns, plain, lambda row: row.id)


def _parsed(selector: str | None) -> Selector | None:
    return None if selector is None else parse_selector(selector)


def _known(reading: Reading, asset: str) -> Any:
    return known_asset(reading, asset)[0].id

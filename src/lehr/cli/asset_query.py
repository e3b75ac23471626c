"""`lehr get assets` with a filter, page by page, or at a past incarnation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from lehr.cli import formatting
from lehr.cli.output import Column, Shape, bounded, show, show_text
from lehr.cli.snapshots import IMPORTED, open_snapshot
from lehr.cli.stored import open_reading, remote_store
from lehr.model.asset import Asset
from lehr.query.asset_pages import FilterPlan, Page, Wanted, page, parse_fields, projected
from lehr.query.partition_view import Reading

Function = TypeVar("Function", bound=Callable[..., Any])


class AssetQuery(NamedTuple):
    """A query about intent, as given on the command line.

    Attributes:
        filter, fields, incarnation, cursor: as written; None if not given.
        explain: show how the filter is evaluated instead of its result.
    """

    selector: str | None
    filter: str | None
    fields: str | None
    incarnation: str | None
    cursor: str | None
    explain: bool

    @property
    def of_intent(self) -> bool:
        """Whether the query is for declared assets, without their status."""
        return bool(self.fields or self.incarnation or self.cursor)

    def wanted(self) -> Wanted:
        """The parsed selection.

        Raises:
            LehrError: it cannot be parsed.
        """
        from lehr.model.selector import parse_selector
        from lehr.query.filters import Filter

        return Wanted(
            None if self.filter is None else Filter(self.filter),
            None if self.selector is None else parse_selector(self.selector),
        )


def query_options(function: Function) -> Function:
    """The options that select assets and fields."""
    for option in (
        click.option(
            "--cursor", metavar="CURSOR", help="Continue after the previous page of --limit assets."
        ),
        click.option(
            "--fields",
            metavar="FIELDS",
            help="Show only these fields of the declaration, such as payload.replicas,addons.",
        ),
        click.option(
            "--explain-query", is_flag=True, help="Show how the filter is evaluated instead of its result."
        ),
        click.option(
            "--filter",
            "expression",
            metavar="EXPR",
            help="Only assets that match this CEL expression over id, type, payload and addons.",
        ),
    ):
        function = option(function)
    return function


def check(asked: AssetQuery, status: str | None) -> None:
    """Check that the options can be combined.

    Raises:
        UsageError: they cannot.
    """
    named = {"--fields": asked.fields, "--incarnation": asked.incarnation, "--cursor": asked.cursor}
    if "" in named.values():  # an unset variable would request something else
        empty = ", ".join(option for option, text in named.items() if text == "")
        raise click.UsageError(f"{empty} is empty")
    if status is not None and asked.of_intent:
        raise click.UsageError("--status cannot be combined with --incarnation, --fields or --cursor")
    if asked.explain and asked.filter is None:
        raise click.UsageError("--explain-query requires --filter")
    if asked.cursor and asked.incarnation:
        raise click.UsageError("--cursor already names an incarnation; omit --incarnation")


def _page(reading: Reading, asked: AssetQuery, cursor: str = "", limit: int | None = None) -> Page:
    remote = remote_store(reading)
    ask = page if remote is None else remote.page
    at = asked.incarnation or "latest"
    return ask(reading, asked.wanted(), incarnation=at, cursor=cursor, limit=limit)


def show_plan(form: str, asked: AssetQuery) -> None:
    """How a filter is evaluated."""
    with open_reading() as reading:
        found = _page(reading, asked)
    assert found.plan is not None
    form = form if form in ("json", "yaml") else "text"
    show_text(form, _plan_lines(found.plan), lambda: found.plan)


def matching(reading: Reading, asked: AssetQuery) -> frozenset[str] | None:
    """Ids of the assets in force that the filter matches; None without a filter, or an incarnation."""
    if asked.filter is None or reading.newest() is None:
        return None
    found = _page(reading, asked)
    _warn(found.plan)
    return frozenset(asset.id for asset in found.assets)


def show_intent(form: str, asked: AssetQuery, limit: int | None) -> None:
    """Assets of an incarnation."""
    fields = None if asked.fields is None else parse_fields(asked.fields)
    shape = _shape(fields)
    if asked.incarnation is not None and asked.incarnation.startswith(IMPORTED):
        _show_imported(form, asked, limit, shape)
        return
    with open_reading() as reading:
        found = _page(reading, asked, asked.cursor or "", limit)
    show(form, found.assets, shape, nothing="no assets")
    _warn(found.plan)
    if found.cursor:
        rest = f"{found.incarnation.name} has more assets; continue with --cursor {found.cursor}"
        click.echo(rest, err=True)


def _show_imported(form: str, asked: AssetQuery, limit: int | None, shape: Shape[Asset]) -> None:
    wanted = asked.wanted()
    with open_snapshot(asked.incarnation or "") as snapshot:
        found = [asset for asset in snapshot.assets() if wanted.matches(asset)]
    show(form, bounded(found, limit, "assets"), shape, nothing="no assets")
    if wanted.filter is not None:
        _warn_of(*wanted.filter.unanswered)


def _shape(fields: tuple[tuple[str, ...], ...] | None) -> Shape[Asset]:
    if fields is None:
        columns = [
            Column[Any]("id", lambda asset: asset.id),
            Column[Any]("type", lambda asset: asset.type),
            Column[Any]("digest", lambda asset: asset.digest[:12], narrow=True),
            Column[Any]("digest", lambda asset: asset.digest, wide=True),
            Column[Any]("origin", lambda asset: str(asset.origin or "-")),
        ]
        return Shape(columns, lambda asset: projected(asset, None), lambda asset: asset.id)
    columns = [Column[Any]("id", lambda asset: asset.id)]
    columns += [Column[Any](".".join(path), _cell(path)) for path in fields if path != ("id",)]
    return Shape(columns, lambda asset: projected(asset, fields), lambda asset: asset.id)


def _cell(path: tuple[str, ...]) -> Callable[[Any], str]:
    from lehr.query.blame_fields import by_path

    def cell(asset: Asset) -> str:
        field = by_path(projected(asset, [path]), ".".join(path))
        if field is None:
            return "-"
        return field.value if isinstance(field.value, str) else msgspec.json.encode(field.value).decode()

    return cell


def _warn(plan: FilterPlan | None) -> None:
    if plan is not None:
        _warn_of(plan.why, plan.unanswered)


def _warn_of(why: str, count: int) -> None:
    if count:
        omitted = formatting.counted(count, "asset")
        click.echo(f"warning: {omitted} omitted: the filter has no answer for them; first: {why}", err=True)


def _plan_lines(plan: FilterPlan) -> Iterator[str]:
    yield f"filter      {plan.filter}"
    for number, bound in enumerate(plan.by_index or ("none: every asset is checked",)):
        yield f"{'' if number else 'index':<12}{bound}"
    way = "compiled (fast)" if plan.fast else "CEL library (slow)"
    yield f"evaluation  {way}"
    yield f"checked     {formatting.counted(plan.looked_at, 'asset')}"
    yield f"matched     {formatting.counted(plan.matched, 'asset')}"
    if plan.unanswered:
        yield f"no answer   {formatting.counted(plan.unanswered, 'asset')}; first: {plan.why}"

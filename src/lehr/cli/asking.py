"""`lehr get assets` with a filter, page by page, or as intent was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec

from lehr.cli import words
from lehr.cli.output import Column, Shape, bounded, show, show_document
from lehr.cli.snapshots import IMPORTED, open_snapshot
from lehr.cli.stored import open_reading, remote_store

if TYPE_CHECKING:
    from lehr.model.asset import Asset
    from lehr.query.asset_pages import Page, Plan, Wanted
    from lehr.query.partition_view import Reading

Function = TypeVar("Function", bound=Callable[..., Any])


class Asked(NamedTuple):
    """The question about intent on the command line.

    Attributes:
        filter, fields, incarnation, cursor: as they were written; None if they were not.
        explain: show how the filter is answered instead of its result.
    """

    selector: str | None
    filter: str | None
    fields: str | None
    incarnation: str | None
    cursor: str | None
    explain: bool

    @property
    def of_intent(self) -> bool:
        """Whether assets are wanted as they are declared, without their status."""
        return bool(self.fields or self.incarnation or self.cursor)

    def wanted(self) -> Wanted:
        """As the query wants it.

        Raises:
            LehrError: it cannot be understood.
        """
        from lehr.model.selector import parse_selector
        from lehr.query.asset_pages import Wanted
        from lehr.query.filters import Filter

        return Wanted(
            None if self.filter is None else Filter(self.filter),
            None if self.selector is None else parse_selector(self.selector),
        )


def asking_options(function: Function) -> Function:
    """The options that select assets, and parts of them."""
    for option in (
        click.option("--cursor", metavar="CURSOR", help="Go on where a page of --limit assets has ended."),
        click.option(
            "--fields",
            metavar="FIELDS",
            help="What they are declared to be, and of that only these: payload.replicas,addons.",
        ),
        click.option("--explain-query", is_flag=True, help="Show how the filter is answered instead."),
        click.option(
            "--filter",
            "expression",
            metavar="EXPR",
            help="Only those of which this holds: CEL over id, type, payload and addons.",
        ),
    ):
        function = option(function)
    return function


def check(asked: Asked, status: str | None) -> None:
    """See that options go together.

    Raises:
        UsageError: they do not.
    """
    named = {"--fields": asked.fields, "--incarnation": asked.incarnation, "--cursor": asked.cursor}
    if "" in named.values():  # a variable that was not set would ask for something else
        empty = ", ".join(option for option, text in named.items() if text == "")
        raise click.UsageError(f"{empty}: there is nothing in it")
    if status is not None and asked.of_intent:
        raise click.UsageError("--status does not go with --incarnation, --fields or --cursor")
    if asked.explain and asked.filter is None:
        raise click.UsageError("--explain-query goes with --filter")
    if asked.cursor and asked.incarnation:
        raise click.UsageError("--cursor names its incarnation; leave --incarnation out")


def _page(
    reading: Reading, asked: Asked, incarnation: str = "latest", cursor: str = "", limit: int | None = None
) -> Page:
    from lehr.query.asset_pages import page

    remote = remote_store(reading)
    ask = page if remote is None else remote.page
    return ask(reading, asked.wanted(), incarnation=incarnation, cursor=cursor, limit=limit)


def show_plan(form: str, asked: Asked, state: Path | None, partition: str | None) -> None:
    """How a filter is answered."""
    with open_reading(state, partition) as reading:
        found = _page(reading, asked, asked.incarnation or "latest")
    assert found.plan is not None
    if form in ("json", "yaml"):
        show_document(form, msgspec.to_builtins(found.plan))
        return
    for line in _told(found.plan):
        print(line)


def matching(reading: Reading, asked: Asked) -> frozenset[str] | None:
    """Ids of the assets in force that the filter matches; None without a filter, or an incarnation."""
    if asked.filter is None or reading.newest() is None:
        return None
    found = _page(reading, asked)
    _warn(found.plan)
    return frozenset(asset.id for asset in found.assets)


def show_intent(
    form: str, asked: Asked, limit: int | None, state: Path | None, partition: str | None
) -> None:
    """Assets as an incarnation has them."""
    from lehr.query.asset_pages import parse_fields

    fields = None if asked.fields is None else parse_fields(asked.fields)
    shape = _shape(fields)
    if asked.incarnation is not None and asked.incarnation.startswith(IMPORTED):
        _show_imported(form, asked, limit, state, partition, shape)
        return
    with open_reading(state, partition) as reading:
        found = _page(reading, asked, asked.incarnation or "latest", asked.cursor or "", limit)
    show(form, found.assets, shape, nothing="no assets")
    _warn(found.plan)
    _tell_rest(found)


def _show_imported(
    form: str, asked: Asked, limit: int | None, state: Path | None, partition: str | None, shape: Shape[Asset]
) -> None:
    wanted = asked.wanted()
    with open_snapshot(state, partition, asked.incarnation or "") as snapshot:
        found = [asset for asset in snapshot.assets() if wanted.matches(asset)]
    show(form, bounded(found, limit, "assets"), shape, nothing="no assets")
    if wanted.filter is not None:
        _warn_of(*wanted.filter.unanswered)


def _shape(fields: tuple[tuple[str, ...], ...] | None) -> Shape[Asset]:
    from lehr.query.asset_pages import projected

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
    from lehr.query.asset_pages import value_at

    def cell(asset: Asset) -> str:
        value = value_at(asset, path)
        if value is msgspec.UNSET:
            return "-"
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    return cell


def _tell_rest(found: Page) -> None:
    if found.cursor:
        click.echo(
            f"there are more in {found.incarnation.name}: go on with --cursor {found.cursor}", err=True
        )


def _warn(plan: Plan | None) -> None:
    if plan is not None:
        _warn_of(plan.why, plan.unanswered)


def _warn_of(why: str, count: int) -> None:
    if count:
        told = f"{words.counted(count, 'asset')} left out, for which the filter has no answer"
        click.echo(f"warning: {told}; the first: {why}", err=True)


def _told(plan: Plan) -> Iterator[str]:
    yield f"filter      {plan.filter}"
    for number, bound in enumerate(plan.by_index or ("nothing: every asset is looked at",)):
        yield f"{'' if number else 'by index':<12}{bound}"
    way = "by closures, the fast way" if plan.fast else "by the library of CEL, the slow way"
    yield f"each asset  is asked the filter {way}"
    yield f"looked at   {words.counted(plan.looked_at, 'asset')}"
    yield f"matched     {words.counted(plan.matched, 'asset')}"
    if plan.unanswered:
        yield f"no answer   for {words.counted(plan.unanswered, 'asset')}; the first: {plan.why}"

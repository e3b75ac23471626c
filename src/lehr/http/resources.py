"""Resources of intent, and how they are answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from lehr.base.errors import LehrError
from lehr.client.wire import AssetDocument, encode_asset
from lehr.http.limits import Limits
from lehr.http.parameters import each_of, incarnation_at, understood
from lehr.http.problems import ProblemError, meaning
from lehr.http.questions import (
    PARTITION_PATH,
    At,
    Catalogue,
    Fields,
    FilterText,
    Id,
    NoParameters,
    OfComparison,
    OfLatest,
    OfPartition,
    Question,
    Representation,
    SelectorText,
    Types,
)
from lehr.model.asset import AssetId, AssetKey
from lehr.model.incarnation import Incarnation
from lehr.model.selector import parse_selector
from lehr.query.activity import Activity, read_activity
from lehr.query.asset_pages import FilterPlan, Wanted, page, parse_cursor, parse_fields, projected
from lehr.query.asset_rows import Row, parse_status, rows
from lehr.query.blame import blame
from lehr.query.blame_values import Blame
from lehr.query.compare import Comparison, compare
from lehr.query.filters import Filter
from lehr.query.incarnations import IntentVersion, versions
from lehr.query.partition_view import Reading
from lehr.query.referrers import Referrer, behind_at, behind_now, referrers

T = TypeVar("T")

RESOURCES = Catalogue()

# --- partitions and incarnations -----------------------------------------------------


class PartitionDocument(msgspec.Struct, frozen=True):
    """A partition, and the header of its newest incarnation; null before the first."""

    name: str
    newest: Incarnation | None


@RESOURCES.answered_by("/v1/partitions", "All partitions.", NoParameters, list[PartitionDocument])
def _partitions(question: Question, _asked: NoParameters) -> Representation:
    intent = question.store.intent
    return Representation(
        lambda: [PartitionDocument(name, intent.newest(name)) for name in intent.partitions()]
    )


@RESOURCES.answered_by(PARTITION_PATH, "A partition.", OfPartition, PartitionDocument, name="partition")
def _partition(question: Question, asked: OfPartition) -> Representation:
    reading = question.reading(asked.partition)
    return Representation(lambda: PartitionDocument(reading.partition, reading.newest()))


@RESOURCES.read_by("incarnations", "Incarnations that are kept, newest first.", OfLatest, list[Incarnation])
def _incarnations(reading: Reading, asked: OfLatest) -> list[Incarnation]:
    return reading.intent.incarnations(reading.partition, asked.limit, asked.before)


@RESOURCES.answered_by(
    "history",
    "Incarnations with their commits, newest first; before them the newest commit, if it was refused.",
    OfLatest,
    list[IntentVersion],
)
def _history(question: Question, asked: OfLatest) -> Representation:
    reading = question.reading(asked.partition)
    return Representation(lambda: versions(reading, asked.limit, question.installation.history, asked.before))


class OfIncarnation(OfPartition, frozen=True):
    """One of them."""

    at: At


@RESOURCES.answered_by(
    "incarnations/{at}", "The header of an incarnation.", OfIncarnation, Incarnation, name="incarnation"
)
def _incarnation(question: Question, asked: OfIncarnation) -> Representation:
    header = incarnation_at(question.reading(asked.partition), asked.at)
    return Representation(lambda: header, _tag(header))


# --- assets -------------------------------------------------------------------------


class OfAssets(OfPartition, frozen=True):
    """Which of them, in which incarnation."""

    at: At = "latest"
    filter: FilterText = ""
    types: Types = ""
    selector: SelectorText = ""
    fields: Fields = ""
    limit: Annotated[int, Meta(ge=1, le=Limits().page_assets)] = 1000
    cursor: Annotated[str, Meta(description="Cursor returned by the previous page.")] = ""


class AssetPage(msgspec.Struct, frozen=True):
    """Assets of one incarnation, by id.

    Attributes:
        cursor: where the next page begins; empty if this is the last. A page may have fewer assets than
            `limit`, or none, and not be the last.
        plan: how the filter was evaluated; null without one.
    """

    incarnation: str
    sequence: int
    digest: str
    assets: list[AssetDocument]
    cursor: str = ""
    plan: FilterPlan | None = None


@RESOURCES.answered_by("assets", "Assets of an incarnation, by id, page by page.", OfAssets, AssetPage)
def _assets(question: Question, asked: OfAssets) -> Representation:
    reading = question.reading(asked.partition)
    begun = asked.cursor

    def listed() -> Incarnation | None:
        if cursor := _understood("cursor", parse_cursor, begun):
            return incarnation_at(reading, str(cursor.sequence))
        if asked.at == "latest" and reading.newest() is None:
            return None
        return incarnation_at(reading, asked.at)

    wanted, fields, header = each_of(
        lambda: wanted_of(asked.filter, asked.types, asked.selector), lambda: _fields(asked.fields), listed
    )
    if header is None:
        return Representation(lambda: AssetPage(f"{reading.partition}@0", 0, "", []))

    def make() -> AssetPage:
        deadline = question.clock.monotonic() + question.limits.page_seconds
        try:
            found = page(
                reading,
                wanted,
                incarnation=str(header.sequence),
                cursor=begun,
                limit=asked.limit,
                enough=lambda: question.clock.monotonic() > deadline,
                most_work=question.limits.page_work,
                sieve=question.sieve,
            )
        except LehrError as error:
            raise error if type(error) is not LehrError else understood(error, "cursor") from error
        sent: list[Any] = [_sent(asset, fields) for asset in found.assets]
        return AssetPage(header.name, header.sequence, header.digest, sent, found.cursor, found.plan)

    return Representation(make, _tag(header))


class OfAsset(OfPartition, frozen=True):
    """One of them, in which incarnation."""

    id: Id
    at: At = "latest"
    fields: Fields = ""


@RESOURCES.answered_by("assets/{id}", "An asset.", OfAsset, AssetDocument, name="asset")
def _asset(question: Question, asked: OfAsset) -> Representation:
    reading = question.reading(asked.partition)
    header, fields = each_of(lambda: incarnation_at(reading, asked.at), lambda: _fields(asked.fields))

    def make() -> Any:
        found = reading.intent.asset(AssetKey(reading.partition, AssetId(asked.id)), header.sequence)
        if found is None:
            raise ProblemError(
                "NotFound",
                f"{header.name} has no asset {asked.id}",
                code="HTP123",
                fix="see /assets, or use another `at`",
            )
        return _sent(found, fields)

    return Representation(make, _tag(header))


class OfReferrers(OfPartition, frozen=True):
    """To which asset, through which field, how far, in which incarnation."""

    asset: Id
    field: Annotated[
        str, Meta(description="Only references through this field of the payload.", max_length=200)
    ] = ""
    tree: Annotated[bool, Meta(description="Also list indirect referrers.")] = False
    at: At = "latest"


@RESOURCES.answered_by("referrers", "Referrers of an asset.", OfReferrers, list[Referrer])
def _referrers(question: Question, asked: OfReferrers) -> Representation:
    reading = question.reading(asked.partition)
    newest = reading.newest()
    if asked.at == "latest" and newest is None:
        return Representation(list)
    header = incarnation_at(reading, asked.at)

    def make() -> list[Referrer]:
        among = behind_now(reading)
        if header != newest:
            known = question.installation.types(question.store, reading.partition, header.sequence)
            among = behind_at(reading, header.sequence, known)
        depth = None if asked.tree else 1
        return list(referrers(among, AssetId(asked.asset), asked.field or None, most_deep=depth))

    return Representation(make, _tag(header))


class OfBlame(OfPartition, frozen=True):
    """Of which asset, or field of it, as of which incarnation."""

    asset: Id
    field: Annotated[str, Meta(description="Dotted path, or JSON pointer.", max_length=400)] = ""
    at: At = "latest"


@RESOURCES.answered_by("blame", "The files, lines and commits that an asset comes from.", OfBlame, Blame)
def _blame(question: Question, asked: OfBlame) -> Representation:
    reading = question.reading(asked.partition)
    header = incarnation_at(reading, asked.at)

    def make() -> Blame:
        with meaning("NotFound"):
            return blame(
                reading, question.installation.history, asked.asset, asked.field or None, str(header.sequence)
            )

    return Representation(make)


@RESOURCES.answered_by(
    "compare", "How two incarnations differ, field by field.", OfComparison, Comparison, whole=True
)
def _compare(question: Question, asked: OfComparison) -> Representation:
    reading = question.reading(asked.partition)
    before, after = each_of(
        lambda: incarnation_at(reading, asked.before, "from"),
        lambda: incarnation_at(reading, asked.after, "to"),
    )

    def make() -> Comparison:
        changes = reading.intent.changes(reading.partition, before.sequence, after.sequence)
        return compare(before.name, after.name, changes)

    return Representation(make, f"{_tag(before)}-{_tag(after)}")


class OfRows(OfPartition, frozen=True):
    """Which of them, by status."""

    status: Annotated[str, Meta(description="Only assets with this status, such as Waiting.")] = ""


@RESOURCES.read_by("activity", "Pushes, and what fails or waits most.", OfPartition, Activity, whole=True)
def _activity(reading: Reading, _asked: OfPartition) -> Activity:
    return read_activity(reading)


@RESOURCES.read_by("standing", "Status of all assets.", OfRows, list[Row], whole=True)
def _standing(reading: Reading, asked: OfRows) -> list[Row]:
    wanted = _understood("status", parse_status, asked.status)
    return [row for row in rows(reading) if wanted in (None, row.status)]


def wanted_of(filter: str, types: str, selector: str) -> Wanted:
    """The selection of a filter, types and a selector together.

    Raises:
        ProblemError: the filter or the selector cannot be parsed.
    """
    among = tuple(name.strip() for name in types.split(",")) if types else None
    condition, selected = each_of(
        lambda: _understood("filter", Filter, filter),
        lambda: _understood("selector", parse_selector, selector),
    )
    return Wanted(condition, selected, among)


def _understood(parameter: str, parse: Callable[[str], T], text: str) -> T | None:
    """The value of one parameter; None if it was not given."""
    try:
        return parse(text) if text else None
    except LehrError as error:
        raise understood(error, parameter) from error


def _fields(text: str) -> tuple[tuple[str, ...], ...] | None:
    return _understood("fields", parse_fields, text)


def _sent(asset: Any, fields: tuple[tuple[str, ...], ...] | None) -> Any:
    return msgspec.Raw(encode_asset(asset)) if fields is None else projected(asset, fields)


def _tag(header: Incarnation) -> str:
    return f"{header.sequence}-{header.digest[:16]}"

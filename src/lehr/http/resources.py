"""Resources of intent, and how they are answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from lehr.base.errors import LehrError
from lehr.client.wire import AssetDocument, encode_asset
from lehr.http.limits import Limits
from lehr.http.parameters import each_of, incarnation_at, understood
from lehr.http.problems import ProblemError, meaning
from lehr.http.questions import (
    Answer,
    At,
    Fields,
    FilterText,
    Id,
    Limit,
    NoParameters,
    OfPartition,
    Question,
    Resource,
    SelectorText,
    Types,
)
from lehr.model.asset import AssetId, AssetKey
from lehr.model.incarnation import Incarnation
from lehr.model.selector import parse_selector
from lehr.query.asset_pages import Plan, Wanted, page, parse_cursor, parse_fields, projected
from lehr.query.asset_rows import Row, parse_status, rows
from lehr.query.blame import blame
from lehr.query.blame_values import Blame
from lehr.query.compare import Comparison, compare
from lehr.query.filters import Filter
from lehr.query.referrers import Behind, Referrer, behind_at, referrers

T = TypeVar("T")

# --- partitions and incarnations -----------------------------------------------------


class PartitionDocument(msgspec.Struct, frozen=True):
    """A partition, and the header of its newest incarnation; null before the first."""

    name: str
    newest: Incarnation | None


def _partitions(question: Question, _asked: NoParameters) -> Answer:
    intent = question.store.intent
    return Answer(lambda: [PartitionDocument(name, intent.newest(name)) for name in intent.partitions()])


def _partition(question: Question, asked: OfPartition) -> Answer:
    reading = question.reading(asked.partition)
    return Answer(lambda: PartitionDocument(reading.partition, reading.newest()))


class OfIncarnations(OfPartition, frozen=True):
    """The newest of them."""

    limit: Limit = 100


def _incarnations(question: Question, asked: OfIncarnations) -> Answer:
    reading = question.reading(asked.partition)
    return Answer(lambda: reading.intent.incarnations(reading.partition, asked.limit))


class OfIncarnation(OfPartition, frozen=True):
    """One of them."""

    at: At


def _incarnation(question: Question, asked: OfIncarnation) -> Answer:
    header = incarnation_at(question.reading(asked.partition), asked.at)
    return Answer(lambda: header, _tag(header))


# --- assets -------------------------------------------------------------------------


class OfAssets(OfPartition, frozen=True):
    """Which of them, in which incarnation."""

    at: At = "latest"
    filter: FilterText = ""
    types: Types = ""
    selector: SelectorText = ""
    fields: Fields = ""
    limit: Annotated[int, Meta(ge=1, le=Limits().page_assets)] = 1000
    cursor: Annotated[str, Meta(description="Where a page has ended; it names its incarnation.")] = ""


class AssetPage(msgspec.Struct, frozen=True):
    """Assets of one incarnation, by id.

    Attributes:
        cursor: where the next page begins; empty if this is the last. A page may have fewer assets than
            `limit`, or none, and not be the last.
        plan: how the filter was answered; null without one.
    """

    incarnation: str
    sequence: int
    digest: str
    assets: list[AssetDocument]
    cursor: str = ""
    plan: Plan | None = None


def _assets(question: Question, asked: OfAssets) -> Answer:
    reading = question.reading(asked.partition)
    begun = asked.cursor

    def listed() -> Incarnation | None:
        if begun:
            return incarnation_at(reading, str(_sequence_of(begun)))
        if asked.at == "latest" and reading.newest() is None:
            return None
        return incarnation_at(reading, asked.at)

    wanted, fields, header = each_of(
        lambda: wanted_of(asked.filter, asked.types, asked.selector), lambda: _fields(asked.fields), listed
    )
    if header is None:
        return Answer(lambda: AssetPage(f"{reading.partition}@0", 0, "", []))

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

    return Answer(make, _tag(header))


class OfAsset(OfPartition, frozen=True):
    """One of them, in which incarnation."""

    id: Id
    at: At = "latest"
    fields: Fields = ""


def _asset(question: Question, asked: OfAsset) -> Answer:
    reading = question.reading(asked.partition)
    header, fields = each_of(lambda: incarnation_at(reading, asked.at), lambda: _fields(asked.fields))

    def make() -> Any:
        found = reading.intent.asset(AssetKey(reading.partition, AssetId(asked.id)), header.sequence)
        if found is None:
            raise ProblemError(
                "NotFound",
                f"{header.name} has no asset {asked.id}",
                code="HTP123",
                fix="ask for /assets, or for another `at`",
            )
        return _sent(found, fields)

    return Answer(make, _tag(header))


class OfReferrers(OfPartition, frozen=True):
    """To which asset, through which field, how far, in which incarnation."""

    asset: Id
    field: Annotated[str, Meta(description="Only through this field of the payload.", max_length=200)] = ""
    tree: Annotated[bool, Meta(description="Also what refers to those, all the way.")] = False
    at: At = "latest"


def _referrers(question: Question, asked: OfReferrers) -> Answer:
    reading = question.reading(asked.partition)
    newest = reading.newest()
    if asked.at == "latest" and newest is None:
        return Answer(list)
    header = incarnation_at(reading, asked.at)

    def behind(id: AssetId) -> list[tuple[AssetId, str]]:
        return reading.intent.mentioned_by(AssetKey(reading.partition, id))

    def make() -> list[Referrer]:
        among: Behind = behind
        if header != newest:
            known = question.installation.types(question.store, reading.partition, header.sequence)
            among = behind_at(reading, header.sequence, known)
        depth = None if asked.tree else 1
        return list(referrers(among, AssetId(asked.asset), asked.field or None, most_deep=depth))

    return Answer(make, _tag(header))


class OfBlame(OfPartition, frozen=True):
    """Of which asset, or field of it, as of which incarnation."""

    asset: Id
    field: Annotated[str, Meta(description="Dotted path, or JSON pointer.", max_length=400)] = ""
    at: At = "latest"


def _blame(question: Question, asked: OfBlame) -> Answer:
    reading = question.reading(asked.partition)
    header = incarnation_at(reading, asked.at)

    def make() -> Blame:
        with meaning("NotFound"):
            return blame(
                reading, question.installation.history, asked.asset, asked.field or None, str(header.sequence)
            )

    return Answer(make)


class OfComparison(OfPartition, frozen=True):
    """Between which incarnations."""

    before: At = msgspec.field(name="from", default="previous")
    after: At = msgspec.field(name="to", default="latest")


def _compare(question: Question, asked: OfComparison) -> Answer:
    reading = question.reading(asked.partition)
    before, after = each_of(
        lambda: incarnation_at(reading, asked.before, "from"),
        lambda: incarnation_at(reading, asked.after, "to"),
    )

    def make() -> Comparison:
        changes = reading.intent.changes(reading.partition, before.sequence, after.sequence)
        return compare(before.name, after.name, changes)

    return Answer(make, f"{_tag(before)}-{_tag(after)}")


class OfRows(OfPartition, frozen=True):
    """Which of them, by status."""

    status: Annotated[str, Meta(description="Only those that stand so, such as Waiting.")] = ""


def _standing(question: Question, asked: OfRows) -> Answer:
    reading = question.reading(asked.partition)
    try:
        wanted = parse_status(asked.status) if asked.status else ""
    except LehrError as error:
        raise understood(error, "status") from error

    def make() -> list[Row]:
        return [row for row in rows(reading) if wanted in ("", row.status)]

    return Answer(make)


RESOURCES: Sequence[Resource] = (
    Resource(
        "/v1/partitions", "partitions", "All partitions.", NoParameters, list[PartitionDocument], _partitions
    ),
    Resource(
        "/v1/partitions/{partition}", "partition", "A partition.", OfPartition, PartitionDocument, _partition
    ),
    Resource(
        "/v1/partitions/{partition}/incarnations",
        "incarnations",
        "Incarnations that are kept, newest first.",
        OfIncarnations,
        list[Incarnation],
        _incarnations,
    ),
    Resource(
        "/v1/partitions/{partition}/incarnations/{at}",
        "incarnation",
        "The header of an incarnation.",
        OfIncarnation,
        Incarnation,
        _incarnation,
    ),
    Resource(
        "/v1/partitions/{partition}/assets",
        "assets",
        "Assets of an incarnation, by id, page by page.",
        OfAssets,
        AssetPage,
        _assets,
    ),
    Resource("/v1/partitions/{partition}/assets/{id}", "asset", "An asset.", OfAsset, AssetDocument, _asset),
    Resource(
        "/v1/partitions/{partition}/referrers",
        "referrers",
        "What refers to an asset.",
        OfReferrers,
        list[Referrer],
        _referrers,
    ),
    Resource(
        "/v1/partitions/{partition}/blame",
        "blame",
        "Which files, lines and people an asset comes from.",
        OfBlame,
        Blame,
        _blame,
    ),
    Resource(
        "/v1/partitions/{partition}/compare",
        "compare",
        "How two incarnations differ, field by field.",
        OfComparison,
        Comparison,
        _compare,
        whole=True,
    ),
    Resource(
        "/v1/partitions/{partition}/standing",
        "standing",
        "How every asset stands.",
        OfRows,
        list[Row],
        _standing,
        whole=True,
    ),
)


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


def _sequence_of(cursor: str) -> int:
    try:
        return parse_cursor(cursor).sequence
    except LehrError as error:
        raise understood(error, "cursor") from error


def _sent(asset: Any, fields: tuple[tuple[str, ...], ...] | None) -> Any:
    return msgspec.Raw(encode_asset(asset)) if fields is None else projected(asset, fields)


def _tag(header: Incarnation) -> str:
    return f"{header.sequence}-{header.digest[:16]}"

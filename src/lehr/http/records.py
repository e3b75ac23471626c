"""Resources of decisions and operations, and of the history of an asset.

Values as the store keeps them, times in seconds since the epoch: `lehr.http.remote` builds a store from them.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from lehr.base.moments import Moment
from lehr.client.wire import AssetDocument, ParameterProblem, encode_asset
from lehr.http.limits import Limits
from lehr.http.parameters import continued, incarnation_at, moment_of
from lehr.http.problems import ProblemError
from lehr.http.questions import (
    Catalogue,
    CursorText,
    Id,
    Limit,
    NoParameters,
    OfComparison,
    OfPartition,
    Question,
    Representation,
)
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.attempt import Attempt
from lehr.model.control import Control
from lehr.model.decision import Reservation
from lehr.model.evidence import Evidence
from lehr.model.feed import FeedEntry
from lehr.model.handle import Handle
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry
from lehr.model.outputs import Outputs
from lehr.model.release import Release, Released
from lehr.model.writes import Prune, Pruned
from lehr.query.explain import NumberedDecision
from lehr.query.list_cursor import list_cursor
from lehr.query.partition_view import Reading
from lehr.sdk.store import Head, Imported, Standing, StandingCount

_MICROSECONDS = 1_000_000
_MOST_STANDINGS = 100
_LONGEST_IDS = _MOST_STANDINGS * 201


class OfSome(OfPartition, frozen=True):
    """All of them, or that of one asset."""

    asset: Id = ""


class OfStandings(OfPartition, frozen=True):
    """All of them, or those of some assets."""

    asset: Annotated[
        str,
        Meta(description="Ids of assets, at most 100, separated by commas.", max_length=_LONGEST_IDS),
    ] = ""


class OfNewest(OfSome, frozen=True):
    """The newest of them."""

    limit: Limit = 100


class OfDecisions(OfNewest, frozen=True):
    """Which of them."""

    before: Annotated[
        int, Meta(description="Only those before the decision with this number; 0 for all.", ge=0, le=2**53)
    ] = 0


class OfHistory(OfPartition, frozen=True):
    """Of which asset."""

    asset: Id


class OfHeader(OfPartition, frozen=True):
    """Of which incarnation."""

    sequence: Annotated[int, Meta(ge=1, le=2**53)]


class OfAddon(OfHistory, frozen=True):
    """Of which addon on which asset."""

    addon: Annotated[str, Meta(max_length=200)]


class OfClaim(OfPartition, frozen=True):
    """Of which thing in production."""

    claim: Annotated[str, Meta(max_length=4000)]


class OfReleased(OfPartition, frozen=True):
    """Since which version of the releases."""

    since: Annotated[int, Meta(ge=0, le=2**53)] = 0


class OfReleases(OfHistory, frozen=True):
    """Of which asset, and how many at most."""

    limit: Annotated[int, Meta(ge=1, le=Limits().page_assets)] = 100


class OfEvidence(OfPartition, frozen=True):
    """After which number, and how many at most."""

    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=Limits().page_assets)] = 100


class OfControls(OfPartition, frozen=True):
    """Active now, or at another time; and which page."""

    at: Annotated[
        str,
        Meta(description="A time in RFC 3339; by default now.", max_length=40),
    ] = ""
    limit: Annotated[int, Meta(description="Most items of a page; 0 for all.", ge=0, le=100_000)] = 0
    cursor: CursorText = ""


class OfUsage(msgspec.Struct, frozen=True):
    """Of which limit, except holder `but`; without a `window`, starts count until they have ended."""

    key: Annotated[str, Meta(max_length=2000)]
    window: Annotated[float, Meta(ge=0)] | None = None
    once: bool = False
    but: Annotated[str, Meta(max_length=2000)] = ""


class OfFeed(OfPartition, frozen=True):
    """After which position, and how many at most; none without a position."""

    after: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    limit: Limit = 100


class OfPrunable(OfPartition, frozen=True):
    """How many are kept, and the time since which all are kept."""

    keep: Annotated[int, Meta(ge=1, le=2**53)]
    before: Annotated[
        str,
        Meta(description="A time in RFC 3339.", max_length=40, extra_json_schema={"format": "date-time"}),
    ]


class OfImported(msgspec.Struct, frozen=True):
    """From which incarnation, and from behind which asset on."""

    name: Annotated[str, Meta(description="As listed by `/v1/imported`: hello@3.", max_length=100)]
    after: Id = ""
    limit: Annotated[int, Meta(ge=1, le=Limits().page_assets)] = 1000


class Since(msgspec.Struct, frozen=True):
    """The time since when something is so; null if it is not."""

    since: Moment | None


class Usage(msgspec.Struct, frozen=True):
    """How many count against a limit, and when the oldest stops counting; null: when it has ended."""

    used: int
    frees_at: Moment | None


class ListedControl(Control, frozen=True, kw_only=True):
    """A control.

    Attributes:
        selects: its selector, as written on the command line.
    """

    selects: str = ""


class Controls(msgspec.Struct, frozen=True):
    """The active controls in the order in which they were set, and the version of the whole set now.

    Attributes:
        cursor: where the next page begins; empty if this is the last.
        total: number of controls on all pages.
    """

    version: int
    controls: list[ListedControl]
    cursor: str = ""
    total: int = 0


class CountingReleases(msgspec.Struct, frozen=True):
    """The release that counts for each asset that changed since another version, and the version of all."""

    version: int
    released: list[Released]


class Feed(msgspec.Struct, frozen=True):
    """Entries of the feed, in order and without a gap, and the position of the newest one when it began."""

    position: int
    entries: list[FeedEntry]


class Version(msgspec.Struct, frozen=True):
    """An asset as of an incarnation; null if it is absent."""

    sequence: int
    asset: AssetDocument | None


class Change(msgspec.Struct, frozen=True):
    """An asset before and after; null if it is absent."""

    id: AssetId
    before: AssetDocument | None
    after: AssetDocument | None


RECORDS = Catalogue()


@RECORDS.read_by(
    "headers/{sequence}",
    "The header of an incarnation, even of a pruned one.",
    OfHeader,
    Incarnation,
    name="header",
)
def _header(reading: Reading, asked: OfHeader) -> Incarnation:
    found = reading.intent.incarnation(reading.partition, asked.sequence)
    if found is None:
        raise ProblemError(
            "NotFound",
            f"there is no incarnation {reading.partition}@{asked.sequence}",
            code="HTP118",
            fix="see /incarnations",
        )
    return found


@RECORDS.read_by("heads", "Assets in force, without their bodies.", OfSome, list[Head], whole=True)
def _heads(reading: Reading, asked: OfSome) -> list[Head]:
    return list(reading.intent.heads(reading.partition, [AssetId(asked.asset)] if asked.asset else None))


@RECORDS.read_by("versions", "How an asset was made.", OfHistory, list[Version])
def _versions(reading: Reading, asked: OfHistory) -> list[Any]:
    newest = reading.newest()
    key = _key(reading, asked.asset)
    found = list(reading.intent.versions(key, 0 if newest is None else newest.sequence))
    last = reading.intent.last(key)
    if last is not None and last[1] not in {sequence for sequence, _asset in found}:
        found.append((last[1], last[0]))
    return [{"sequence": sequence, "asset": _sent(asset)} for sequence, asset in found]


@RECORDS.read_by("changes", "Complete assets before and after.", OfComparison, list[Change], whole=True)
def _changes(reading: Reading, asked: OfComparison) -> list[Any]:
    """Since `from`, which may be 0 for the empty incarnation."""
    after = incarnation_at(reading, asked.after, "to").sequence
    before = 0 if asked.before == "0" else incarnation_at(reading, asked.before, "from").sequence
    return [
        {"id": change.id, "before": _sent(change.before), "after": _sent(change.after)}
        for change in reading.intent.changes(reading.partition, before, after)
    ]


@RECORDS.read_by("former-referrers", "Present and past referrers of an asset.", OfHistory, list[AssetId])
def _former_referrers(reading: Reading, asked: OfHistory) -> list[AssetId]:
    return reading.intent.past_and_present_referrers(_key(reading, asked.asset))


@RECORDS.read_by("claimants", "The asset that claims a thing in production.", OfClaim, list[AssetId])
def _claimants(reading: Reading, asked: OfClaim) -> list[AssetId]:
    return reading.intent.claimed_by(reading.partition, asked.claim)


@RECORDS.read_by("addon-since", "Since when an asset has had an addon.", OfAddon, Since)
def _addon_since(reading: Reading, asked: OfAddon) -> Since:
    return Since(reading.intent.addon_since(_key(reading, asked.asset), asked.addon))


@RECORDS.answered_by("/v1/usage", "How much of a limit is used.", OfUsage, Usage)
def _usage(question: Question, asked: OfUsage) -> Representation:
    reservation = Reservation(asked.key, 0, asked.window, asked.once)
    return Representation(
        lambda: Usage(*question.store.records.usage(reservation, question.clock.now(), asked.but))
    )


@RECORDS.read_by("prunable", "History that could be pruned.", OfPrunable, Pruned, whole=True)
def _prunable(reading: Reading, asked: OfPrunable) -> Pruned:
    return reading.records.prunable(Prune(reading.partition, asked.keep, moment_of(asked.before, "before")))


class _Counts(NamedTuple):
    """Counts, and the position of the feed before they were made."""

    position: int
    counts: list[StandingCount]


@RECORDS.answered_by(
    "counts", "How many assets have each status and reason.", OfPartition, list[StandingCount], whole=True
)
def _counts(question: Question, asked: OfPartition) -> Representation:
    reading = question.reading(asked.partition)

    def counted(before: _Counts | None) -> _Counts:
        position = reading.records.position(reading.partition)
        if before is not None and before.position == position:
            return before
        return _Counts(position, reading.records.standing_counts(reading.partition))

    return Representation(lambda: question.kept.updated(("counts", reading.partition), counted).counts)


@RECORDS.read_by("standings", "Conditions of assets.", OfStandings, list[Standing], whole=True)
def _standings(reading: Reading, asked: OfStandings) -> list[Standing]:
    if not asked.asset:
        return list(reading.records.standings(reading.partition))
    ids = asked.asset.split(",")
    if len(ids) > _MOST_STANDINGS:
        why = f"it has {len(ids):,} ids; at most {_MOST_STANDINGS} are answered at a time"
        wrong = ParameterProblem("asset", why, "name fewer, or none for all")
        raise ProblemError("BadRequest", "too many ids", code="HTP142", why=why, errors=(wrong,))
    found = (reading.records.standing(_key(reading, id)) for id in ids)
    return [item for item in found if item is not None]


@RECORDS.read_by("ledger", "The states last applied or adopted.", OfSome, list[LedgerEntry], whole=True)
def _ledger(reading: Reading, asked: OfSome) -> list[LedgerEntry]:
    if asked.asset:
        return _one(reading.records.ledger(_key(reading, asked.asset)))
    return list(reading.records.ledgers(reading.partition))


@RECORDS.read_by(
    "handles", "Identifiers that plugins keep of assets in production.", OfSome, list[Handle], whole=True
)
def _handles(reading: Reading, asked: OfSome) -> list[Handle]:
    if asked.asset:
        return _one(reading.records.handle(_key(reading, asked.asset)))
    return list(reading.records.handles(reading.partition))


@RECORDS.read_by(
    "outputs",
    "Values that plugins observed in production, for other assets.",
    OfSome,
    list[Outputs],
    whole=True,
)
def _outputs(reading: Reading, asked: OfSome) -> list[Outputs]:
    if asked.asset:
        return _one(reading.records.outputs_of(_key(reading, asked.asset)))
    return list(reading.records.outputs(reading.partition))


@RECORDS.read_by("decisions", "Decisions, newest first.", OfDecisions, list[NumberedDecision])
def _decisions(reading: Reading, asked: OfDecisions) -> list[NumberedDecision]:
    asset = AssetId(asked.asset) or None
    found = reading.records.decisions(reading.partition, asset, asked.limit, asked.before)
    return [NumberedDecision(*item) for item in found]


@RECORDS.read_by("controls", "Active controls: pauses, freezes, pins and more.", OfControls, Controls)
def _controls(reading: Reading, asked: OfControls) -> Controls:
    version, controls = reading.records.controls(reading.partition, reading.now)
    if asked.at:
        controls = reading.records.past_controls(reading.partition, moment_of(asked.at, "at"))
    name = f"controls at {asked.at or 'any time'}"
    place = continued(asked.cursor, name, reading.partition)
    if asked.limit or place is not None:
        controls = sorted(controls, key=_place)
    ahead = [item for item in controls if place is None or _place(item) > place]
    shown = ahead[: asked.limit or None]
    cursor = list_cursor(name, reading.partition, *_place(shown[-1])) if len(ahead) > len(shown) else ""
    return Controls(version, list(map(_listed, shown)), cursor, len(controls))


def _place(control: Control) -> tuple[int, str]:
    """Where a control is in the list, whichever others are lifted between two pages."""
    return round(control.at * _MICROSECONDS), control.id


def _listed(control: Control) -> ListedControl:
    return ListedControl(**asdict(control), selects=str(control.selector))


@RECORDS.read_by("released", "The releases that count, by asset.", OfReleased, CountingReleases, whole=True)
def _released(reading: Reading, asked: OfReleased) -> CountingReleases:
    return CountingReleases(*reading.records.released(reading.partition, asked.since))


@RECORDS.read_by("releases", "Releases of an asset, newest first.", OfReleases, list[Release])
def _releases(reading: Reading, asked: OfReleases) -> list[Release]:
    return reading.records.releases(_key(reading, asked.asset), asked.limit)


@RECORDS.read_by("evidence", "Evidence of rollouts, oldest first.", OfEvidence, list[Evidence])
def _evidence(reading: Reading, asked: OfEvidence) -> list[Evidence]:
    return reading.records.evidence(reading.partition, asked.after, asked.limit)


@RECORDS.read_by("feed", "The changes of each commit, oldest first.", OfFeed, Feed)
def _feed(reading: Reading, asked: OfFeed) -> Feed:
    position = reading.records.position(reading.partition)
    if asked.after is None:
        return Feed(position, [])
    return Feed(position, reading.records.feed(reading.partition, asked.after, asked.limit))


@RECORDS.read_by(
    "attempt", "The last pass over the source; null before the first.", OfPartition, list[Attempt]
)
def _attempt(reading: Reading, _asked: OfPartition) -> list[Attempt]:
    return _one(reading.records.attempt(reading.partition))


@RECORDS.answered_by("/v1/imported", "Imported incarnations of other states.", NoParameters, list[Imported])
def _imported(question: Question, _asked: NoParameters) -> Representation:
    return Representation(question.store.intent.imported)


@RECORDS.answered_by(
    "/v1/imported/{name}/assets",
    "Assets of an imported incarnation, by id.",
    OfImported,
    list[AssetDocument],
    name="imported-assets",
)
def _imported_assets(question: Question, asked: OfImported) -> Representation:
    intent = question.store.intent
    if asked.name not in {item.header.name for item in intent.imported()}:
        raise ProblemError(
            "NotFound", f"no incarnation {asked.name} was imported", code="HTP119", fix="see /v1/imported"
        )

    def made() -> list[Any]:
        behind = intent.imported_assets(asked.name, asked.after)
        return [_sent(asset) for asset in itertools.islice(behind, asked.limit)]

    return Representation(made)


def _key(reading: Reading, id: str) -> AssetKey:
    return AssetKey(reading.partition, AssetId(id))


def _one(found: Any) -> list[Any]:
    return [] if found is None else [found]


def _sent(asset: Asset | None) -> msgspec.Raw | None:
    return None if asset is None else msgspec.Raw(encode_asset(asset))

"""Resources of decisions and operations, and of the history of an asset.

Values as the store keeps them, times in seconds since the epoch: `lehr.http.remote` builds a store from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lehr.base.moments import Moment
from lehr.client.wire import AssetDocument, encode_asset
from lehr.http.limits import Limits
from lehr.http.parameters import incarnation_at, moment_of
from lehr.http.problems import ProblemError
from lehr.http.questions import Answer, At, Id, Limit, NoParameters, OfPartition, Question, Resource
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import Decision, Reservation
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.writes import Prune, Pruned
from lehr.query.partition_view import Reading
from lehr.sdk.store import Head, Imported, Standing


class OfSome(OfPartition, frozen=True):
    """All of them, or that of one asset."""

    asset: Id = ""


class OfNewest(OfSome, frozen=True):
    """The newest of them."""

    limit: Limit = 100


class OfAudit(OfPartition, frozen=True):
    """The newest of them."""

    limit: Limit = 100


class OfOperations(OfNewest, frozen=True):
    """Which of them."""

    open: Annotated[bool, Meta(description="Only those that may be changing production.")] = False


class OfHistory(OfPartition, frozen=True):
    """Of which asset."""

    asset: Id


class OfChanges(OfPartition, frozen=True):
    """Between which incarnations; `from` may be 0 for the empty one."""

    before: At = msgspec.field(name="from", default="previous")
    after: At = msgspec.field(name="to", default="latest")


class OfHeader(OfPartition, frozen=True):
    """Of which incarnation."""

    sequence: Annotated[int, Meta(ge=1, le=2**53)]


class OfAddon(OfHistory, frozen=True):
    """Of which addon on which asset."""

    addon: Annotated[str, Meta(max_length=200)]


class OfClaim(OfPartition, frozen=True):
    """Of which thing in production."""

    claim: Annotated[str, Meta(max_length=4000)]


class OfUsage(msgspec.Struct, frozen=True):
    """Of which limit, except holder `but`; without a `window`, starts count until they have ended."""

    key: Annotated[str, Meta(max_length=2000)]
    window: Annotated[float, Meta(ge=0)] | None = None
    once: bool = False
    but: Annotated[str, Meta(max_length=2000)] = ""


class OfPrunable(OfPartition, frozen=True):
    """How many are kept, and the time after which younger ones are kept."""

    keep: Annotated[int, Meta(ge=1, le=2**53)]
    before: Annotated[
        str,
        Meta(description="A time in RFC 3339.", max_length=40, extra_json_schema={"format": "date-time"}),
    ]


class OfImported(msgspec.Struct, frozen=True):
    """From which incarnation, and from behind which asset on."""

    name: Annotated[str, Meta(description="As `/v1/imported` has it: hello@3.", max_length=100)]
    after: Id = ""
    limit: Annotated[int, Meta(ge=1, le=Limits().page_assets)] = 1000


class Since(msgspec.Struct, frozen=True):
    """The time since when something is so; null if it is not."""

    since: Moment | None


class Usage(msgspec.Struct, frozen=True):
    """How many count against a limit, and when the oldest stops counting; null: when it has ended."""

    used: int
    frees_at: Moment | None


class NumberedDecision(msgspec.Struct, frozen=True):
    """A decision and its number."""

    number: int
    decision: Decision


class Controls(msgspec.Struct, frozen=True):
    """The active controls, and the version of the whole set."""

    version: int
    controls: list[Control]


class Version(msgspec.Struct, frozen=True):
    """An asset as an incarnation has made it; null for its absence."""

    sequence: int
    asset: AssetDocument | None


class Change(msgspec.Struct, frozen=True):
    """An asset before and after; null where it is not there."""

    id: AssetId
    before: AssetDocument | None
    after: AssetDocument | None


def _answering(answer: Callable[[Reading, Any], Any]) -> Callable[[Question, Any], Answer]:
    """An answer without a tag: how long it stays the same is unknown."""

    def answering(question: Question, asked: Any) -> Answer:
        reading = question.reading(asked.partition)
        return Answer(lambda: answer(reading, asked))

    return answering


def _key(reading: Reading, id: str) -> AssetKey:
    return AssetKey(reading.partition, AssetId(id))


def _one(found: Any) -> list[Any]:
    return [] if found is None else [found]


def _standings(reading: Reading, asked: OfSome) -> list[Standing]:
    if asked.asset:
        return _one(reading.records.standing(_key(reading, asked.asset)))
    return list(reading.records.standings(reading.partition))


def _ledger(reading: Reading, asked: OfSome) -> list[LedgerEntry]:
    if asked.asset:
        return _one(reading.records.ledger(_key(reading, asked.asset)))
    return list(reading.records.ledgers(reading.partition))


def _heads(reading: Reading, asked: OfSome) -> list[Head]:
    return list(reading.intent.heads(reading.partition, [AssetId(asked.asset)] if asked.asset else None))


def _operations(reading: Reading, asked: OfOperations) -> list[Operation]:
    if asked.open:
        return reading.records.open_operations(reading.partition)
    return reading.records.operations(reading.partition, AssetId(asked.asset) or None, asked.limit)


def _decisions(reading: Reading, asked: OfNewest) -> list[NumberedDecision]:
    found = reading.records.decisions(reading.partition, AssetId(asked.asset) or None, asked.limit)
    return [NumberedDecision(*item) for item in found]


def _controls(reading: Reading, _asked: OfPartition) -> Controls:
    return Controls(*reading.records.controls(reading.partition, reading.now))


def _attempt(reading: Reading, _asked: OfPartition) -> list[Attempt]:
    return _one(reading.records.attempt(reading.partition))


def _audit(reading: Reading, asked: OfAudit) -> list[AuditEntry]:
    return reading.records.audit(reading.partition, asked.limit)


def _versions(reading: Reading, asked: OfHistory) -> list[Any]:
    newest = reading.newest()
    key = _key(reading, asked.asset)
    found = list(reading.intent.versions(key, 0 if newest is None else newest.sequence))
    last = reading.intent.last(key)
    if last is not None and last[1] not in {sequence for sequence, _asset in found}:
        found.append((last[1], last[0]))
    return [{"sequence": sequence, "asset": _sent(asset)} for sequence, asset in found]


def _changes(question: Question, asked: OfChanges) -> Answer:
    reading = question.reading(asked.partition)
    after = incarnation_at(reading, asked.after, "to").sequence
    before = 0 if asked.before == "0" else incarnation_at(reading, asked.before, "from").sequence

    def made() -> Iterator[Any]:
        for change in reading.intent.changes(reading.partition, before, after):
            yield {"id": change.id, "before": _sent(change.before), "after": _sent(change.after)}

    return Answer(lambda: list(made()))


def _imported(question: Question, _asked: NoParameters) -> Answer:
    return Answer(question.store.intent.imported)


def _header(reading: Reading, asked: OfHeader) -> Incarnation:
    found = reading.intent.incarnation(reading.partition, asked.sequence)
    if found is None:
        raise ProblemError(
            "NotFound",
            f"there is no incarnation {reading.partition}@{asked.sequence}",
            code="HTP118",
            fix="ask for /incarnations",
        )
    return found


def _former_referrers(reading: Reading, asked: OfHistory) -> list[AssetId]:
    return reading.intent.once_mentioned_by(_key(reading, asked.asset))


def _claimants(reading: Reading, asked: OfClaim) -> list[AssetId]:
    return reading.intent.claimed_by(reading.partition, asked.claim)


def _addon_since(reading: Reading, asked: OfAddon) -> Since:
    return Since(reading.intent.addon_since(_key(reading, asked.asset), asked.addon))


def _usage(question: Question, asked: OfUsage) -> Answer:
    reservation = Reservation(asked.key, 0, asked.window, asked.once)
    return Answer(lambda: Usage(*question.store.records.usage(reservation, question.clock.now(), asked.but)))


def _prunable(reading: Reading, asked: OfPrunable) -> Pruned:
    return reading.records.prunable(Prune(reading.partition, asked.keep, moment_of(asked.before, "before")))


def _imported_assets(question: Question, asked: OfImported) -> Answer:
    intent = question.store.intent
    if asked.name not in {item.header.name for item in intent.imported()}:
        raise ProblemError(
            "NotFound", f"no incarnation {asked.name} was imported", code="HTP119", fix="ask for /v1/imported"
        )

    def made() -> list[Any]:
        behind = intent.imported_assets(asked.name, asked.after)
        return [_sent(asset) for asset in itertools.islice(behind, asked.limit)]

    return Answer(made)


def _sent(asset: Asset | None) -> msgspec.Raw | None:
    return None if asset is None else msgspec.Raw(encode_asset(asset))


def _resource(
    name: str, summary: str, parameters: Any, answers: Any, answer: Any, *, whole: bool = False
) -> Resource:
    path = f"/v1/partitions/{{partition}}/{name}"
    return Resource(path, name, summary, parameters, answers, _answering(answer), whole)


RECORDS: Sequence[Resource] = (
    Resource(
        "/v1/partitions/{partition}/headers/{sequence}",
        "header",
        "The header of an incarnation, also of one that is not kept any more.",
        OfHeader,
        Incarnation,
        _answering(_header),
    ),
    _resource("heads", "Assets in force, without their bodies.", OfSome, list[Head], _heads, whole=True),
    _resource("versions", "How an asset came to be what it is.", OfHistory, list[Version], _versions),
    Resource(
        "/v1/partitions/{partition}/changes",
        "changes",
        "Assets before and after, as a whole.",
        OfChanges,
        list[Change],
        _changes,
        whole=True,
    ),
    _resource(
        "former-referrers",
        "Who refers to an asset, or once did.",
        OfHistory,
        list[AssetId],
        _former_referrers,
    ),
    _resource("claimants", "Who claims a thing in production.", OfClaim, list[AssetId], _claimants),
    _resource("addon-since", "Since when an asset has an addon.", OfAddon, Since, _addon_since),
    Resource("/v1/usage", "usage", "How much of a limit is used.", OfUsage, Usage, _usage),
    _resource("prunable", "What nobody would need any more.", OfPrunable, Pruned, _prunable, whole=True),
    _resource("standings", "The condition of assets.", OfSome, list[Standing], _standings, whole=True),
    _resource("ledger", "What was last applied or adopted.", OfSome, list[LedgerEntry], _ledger, whole=True),
    _resource("operations", "Pushes, newest first.", OfOperations, list[Operation], _operations),
    _resource("decisions", "Decisions, newest first.", OfNewest, list[NumberedDecision], _decisions),
    _resource("controls", "Pauses, freezes, pins and more that stand.", OfPartition, Controls, _controls),
    _resource(
        "attempt", "The last pass over the source; none at first.", OfPartition, list[Attempt], _attempt
    ),
    _resource("audit", "Commands, newest first.", OfAudit, list[AuditEntry], _audit),
    Resource(
        "/v1/imported",
        "imported",
        "Incarnations of other states.",
        NoParameters,
        list[Imported],
        _imported,
    ),
    Resource(
        "/v1/imported/{name}/assets",
        "imported-assets",
        "Assets of an incarnation of another state, by id.",
        OfImported,
        list[AssetDocument],
        _imported_assets,
    ),
)

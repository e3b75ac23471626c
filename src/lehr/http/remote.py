"""A store read over HTTP: data served by `lehr.http.server`, as a `lehr.sdk.store.Store`.

So every command that reads works remotely as it does locally. One persistent connection; nothing is cached or
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from lehr.base.errors import StalledError
from lehr.client.wire import ReceivedAsset, decode_page
from lehr.http.connection import NotThereError, Server
from lehr.http.records import Since
from lehr.http.remote_part import RemotePart, path_of
from lehr.http.remote_records import RemoteRecords
from lehr.http.resources import PartitionDocument
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.writes import Write
from lehr.query.activity import Activity
from lehr.query.asset_pages import Cursor, FilterPlan, Page, Wanted, page, parse_cursor
from lehr.query.blame_values import Blame
from lehr.query.causes import Cause, RootCauses
from lehr.query.incarnations import IntentVersion
from lehr.query.partition_view import Reading
from lehr.query.referrers import Referrer
from lehr.sdk.store import WHOLE, Head, Imported, Row, Span, row_of

if TYPE_CHECKING:
    from lehr.dry_run.unblock import Unblocking
    from lehr.dry_run.what_if import Supposed
    from lehr.enforce.replay import Replay

T = TypeVar("T")

_PAGE = 10_000
_CAUSES = 1000
_EXAMPLES = 1000
_LONGEST_TYPES = _LONGEST_TEXT = 2000
_LONGEST_QUOTED = 8000

_IDS = 15
"""Ids per request: a filter has at most 4,096 characters, an id 200."""


class _Change(msgspec.Struct, frozen=True):
    id: AssetId
    before: ReceivedAsset | None
    after: ReceivedAsset | None


class _Planned(msgspec.Struct, frozen=True):
    plan: FilterPlan | None


class _Version(msgspec.Struct, frozen=True):
    sequence: int
    asset: ReceivedAsset | None


class RemoteIntent(RemotePart):
    """`lehr.sdk.store.StoredIntent` over HTTP."""

    def partitions(self) -> list[Partition]:
        found = self._server.asked("/v1/partitions", list[PartitionDocument])
        return [Partition(item.name) for item in found]

    def newest(self, partition: Partition) -> Incarnation | None:
        return self._server.asked(path_of(partition), PartitionDocument).newest

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        if sequence < 1:
            return None
        try:
            return self._ask(partition, f"headers/{sequence}", Incarnation)
        except NotThereError:
            return None

    def incarnations(self, partition: Partition, limit: int, before: int = 0) -> list[Incarnation]:
        return self._newest(partition, "incarnations", Incarnation, limit, before=before)

    def intent_versions(self, partition: Partition, limit: int) -> list[IntentVersion]:
        """As `lehr.query.incarnations.versions`, which needs data on the server's disk."""
        return self._newest(partition, "history", IntentVersion, limit)

    def require_kept(self, partition: Partition, sequence: int) -> None:
        if self.incarnation(partition, sequence) is not None:
            self._server.ask(path_of(partition, f"incarnations/{sequence}"))

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        return next(self.assets(key.partition, sequence, None, Span(frozenset((key.id,)))), None)

    def last(self, key: AssetKey, sequence: int | None = None) -> tuple[Asset, int] | None:
        found = (
            (asset, at)
            for at, asset in self._versions(key)
            if asset is not None and (sequence is None or at <= sequence)
        )
        return next(found, None)

    def versions(self, key: AssetKey, sequence: int) -> Iterator[tuple[int, Asset | None]]:
        yield from ((at, asset) for at, asset in self._versions(key) if at <= sequence)

    def assets(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Asset]:
        if sequence == 0 or (types is not None and not types):
            return
        named = ",".join(types or ())
        for bounds in _filters(span):
            few = named if len(named) <= _LONGEST_TYPES else ""
            asked = {"filter": bounds, "types": few, "limit": _PAGE}
            cursor = Cursor(sequence, "", span.after).text()
            while cursor:
                content = self._server.ask(path_of(partition, "assets"), {**asked, "cursor": cursor})
                _sequence, found, cursor = decode_page(content)
                yield from (asset for asset in found if types is None or asset.type in types)

    def rows(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Row]:
        return map(row_of, self.assets(partition, sequence, types, span))

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        for id in (None,) if ids is None else ids:
            yield from self._ask(partition, "heads", list[Head], asset=id)

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        for item in self._ask(partition, "changes", list[_Change], **{"from": before, "to": after}):
            yield AssetChange(item.id, _asset(item.before), _asset(item.after))

    def mentioned_by(self, key: AssetKey) -> list[tuple[AssetId, str]]:
        found = self._ask(key.partition, "referrers", list[Referrer], asset=key.id)
        return [(item.id, item.path) for item in found]

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        later = [at for at, _asset in self._versions(key) if at > sequence]
        return min(later, default=None)

    def past_and_present_referrers(self, key: AssetKey) -> list[AssetId]:
        return self._ask(key.partition, "former-referrers", list[AssetId], asset=key.id)

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        return self._ask(partition, "claimants", list[AssetId], claim=claim)

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        return self._ask(key.partition, "addon-since", Since, asset=key.id, addon=addon).since

    def imported(self) -> list[Imported]:
        return self._server.asked("/v1/imported", list[Imported])

    def imported_assets(self, name: str, after: str = "") -> Iterator[Asset]:
        asked = {"limit": _PAGE, "after": after}
        while True:
            path = f"/v1/imported/{quote(name, safe='')}/assets"
            try:
                found = self._server.asked(path, list[ReceivedAsset], asked)
            except NotThereError:
                return
            yield from (item.asset() for item in found)
            if len(found) < _PAGE:
                return
            asked["after"] = found[-1].id

    def _versions(self, key: AssetKey) -> list[tuple[int, Asset | None]]:
        found = self._ask(key.partition, "versions", list[_Version], asset=key.id)
        return [(item.sequence, _asset(item.asset)) for item in found]


class RemoteStore:
    """`lehr.sdk.store.Store` over HTTP, for reading."""

    def __init__(self, url: str, token: Callable[[], str] = str) -> None:
        """As `Server`."""
        self.server = Server(url, token)
        self.intent = RemoteIntent(self.server)
        self.records = RemoteRecords(self.server)

    def page(
        self, reading: Reading, wanted: Wanted, *, incarnation: str, cursor: str, limit: int | None
    ) -> Page:
        """As `lehr.query.asset_pages.page`, but filtered by the server: only matches are sent."""
        expression = "" if wanted.filter is None else wanted.filter.text
        selector = "" if wanted.selector is None else str(wanted.selector)
        if max(len(expression), len(selector)) > _LONGEST_TEXT or len(quote(expression)) > _LONGEST_QUOTED:
            return page(reading, wanted, incarnation=incarnation, cursor=cursor, limit=limit)
        at = str(parse_cursor(cursor).sequence) if cursor else incarnation
        header = reading.incarnation(at)
        asked = {"at": header.sequence, "filter": expression, "selector": selector, "cursor": cursor}
        found: list[Asset] = []
        plan: FilterPlan | None = None
        while True:
            asked["limit"] = _PAGE if limit is None else min(_PAGE, limit - len(found))
            content = self.server.ask(path_of(reading.partition, "assets"), asked)
            _sequence, assets, ahead = decode_page(content)
            found += assets
            plan = _both(plan, msgspec.json.decode(content, type=_Planned).plan)
            if not ahead or len(found) == limit:
                return Page(header, tuple(found), ahead, plan)
            asked["cursor"] = ahead

    def blame(self, partition: Partition, asset: str, field: str | None, at: str) -> Blame:
        """As `lehr.query.blame.blame`, which needs data on the server's disk."""
        asked = {"asset": asset, "field": field, "at": at}
        return self.server.asked(path_of(partition, "blame"), Blame, asked)

    def root_causes(self, partition: Partition, *, most: int) -> RootCauses:
        """As `lehr.query.cause_reader.read_root_causes`, page by page."""
        from lehr.http.explanations import CausePage  # noqa: PLC0415 -- slow to import, and rarely needed

        causes: dict[str, Cause] = {}
        cursor = ""
        while True:
            asked = {"examples": min(most, _EXAMPLES), "limit": _CAUSES, "cursor": cursor}
            page = self.server.asked(path_of(partition, "causes"), CausePage, asked)
            causes.update((cause.id, cause) for cause in page.causes)
            cursor = page.cursor
            if not cursor:
                return RootCauses(page.count, tuple(causes.values()))

    def replay(self, partition: Partition, number: int) -> Replay:
        """As `lehr.enforce.replay.replay`, whose inputs are not sent."""
        from lehr.enforce.replay import Replay  # noqa: PLC0415 -- slow to import, and rarely needed

        return self.server.asked(path_of(partition, "replay"), Replay, {"decision": number})

    def what_if(self, partition: Partition, asset: str, commands: Sequence[str]) -> Supposed:
        """As `WhatIf.turn`, where production is."""
        from lehr.dry_run.what_if import Supposed  # noqa: PLC0415 -- slow to import, and rarely needed

        asked = {"asset": asset, "if": tuple(commands)}
        return self.server.asked(path_of(partition, "what-if"), Supposed, asked)

    def unblocking(self, partition: Partition, asset: str) -> Unblocking:
        """As `lehr.dry_run.unblock.unblocking`, where production is."""
        from lehr.dry_run.unblock import Unblocking  # noqa: PLC0415 -- slow to import, and rarely needed

        return self.server.asked(path_of(partition, "unblock"), Unblocking, {"asset": asset})

    def activity(self, partition: Partition) -> Activity:
        """As `lehr.query.activity.read_activity`, in one request."""
        return self.server.asked(path_of(partition, "activity"), Activity)

    def referrers(
        self, partition: Partition, asset: AssetId, field: str | None, at: str, *, tree: bool
    ) -> list[Referrer]:
        """As `lehr.query.referrers.referrers`, in one request."""
        asked = {"asset": asset, "field": field, "at": at, "tree": "true" if tree else None}
        return self.server.asked(path_of(partition, "referrers"), list[Referrer], asked)

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        raise StalledError(f"{self.server.url} is read-only", code="HTP121")

    def close(self) -> None:
        self.server.close()


def _filters(span: Span) -> Iterator[str]:
    """Look-ups by index, as filters that the server answers by index; returns the answers in order."""
    beginning = "" if not span.prefix else f"id.startsWith({msgspec.json.encode(span.prefix).decode()})"
    if span.ids is None:
        yield beginning
        return
    ids = sorted(id for id in span.ids if id.startswith(span.prefix))
    for first in range(0, len(ids), _IDS):
        yield f"id in {msgspec.json.encode(ids[first : first + _IDS]).decode()}"


def _both(one: FilterPlan | None, other: FilterPlan | None) -> FilterPlan | None:
    """How a filter was evaluated for two pages."""
    if one is None or other is None:
        return other if one is None else one
    return msgspec.structs.replace(
        one,
        looked_at=one.looked_at + other.looked_at,
        matched=one.matched + other.matched,
        unanswered=one.unanswered + other.unanswered,
        why=one.why or other.why,
    )


def _asset(received: ReceivedAsset | None) -> Asset | None:
    return None if received is None else received.asset()

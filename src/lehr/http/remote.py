"""A store that is read over HTTP: what `lehr.http.server` serves, as a `lehr.store.Store`.

So every command that reads works elsewhere as it does here. One connection, which is kept; nothing is
cached, and nothing is written.
"""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.http.records import Controls, NumberedDecision
from lehr.http.resources import PartitionDocument
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import Decision, Reservation
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.operation import LedgerEntry, Operation
from lehr.query.listing import Cursor
from lehr.query.referring import Referrer
from lehr.sdk.wire import ReceivedAsset, decode_page, decode_problem
from lehr.store import WHOLE, Row, Span
from lehr.store.interface import Head, Imported, Standing, row_of
from lehr.store.writes import Prune, Pruned, Write

T = TypeVar("T")

_SECONDS = 60.0
_PAGE = 10_000
_MOST = 100_000


class _Change(msgspec.Struct, frozen=True):
    id: AssetId
    before: ReceivedAsset | None
    after: ReceivedAsset | None


class _Version(msgspec.Struct, frozen=True):
    sequence: int
    asset: ReceivedAsset | None


class _Health(msgspec.Struct, frozen=True):
    running: bool


class Server:
    """Where questions go."""

    def __init__(self, url: str) -> None:
        """`url` is where `lehr serve` answers (`http://127.0.0.1:8470`).

        Raises:
            LehrError: it is no URL of a server.
        """
        place = urlsplit(url)
        kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(place.scheme)
        if kind is None or not place.hostname:
            raise LehrError(f"{url!r} is no URL of a server", fix="write http://127.0.0.1:8470")
        self.url = url
        self._root = place.path.rstrip("/")
        self._connection = kind(place.netloc.rpartition("@")[2], timeout=_SECONDS)

    def ask(self, path: str, asked: Mapping[str, Any] | None = None) -> bytes:
        """The content of an answer.

        Raises:
            TransientError: it cannot be reached, or cannot answer now.
            LehrError: it has no answer to this.
        """
        given = {name: value for name, value in (asked or {}).items() if value not in ("", None)}
        target = f"{self._root}{path}" + (f"?{urlencode(given)}" if given else "")
        try:
            try:
                return self._once(target)
            except (ConnectionError, http.client.HTTPException):
                self._connection.close()  # one that was kept may be closed at the other end
                return self._once(target)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise TransientError(
                f"{self.url} cannot be reached",
                why=str(error) or type(error).__name__,
                fix="see that `lehr serve` runs there, and that --server or LEHR_SERVER is right",
            ) from error

    def asked(self, path: str, kind: type[T], asked: Mapping[str, Any] | None = None) -> T:
        """An answer as a value. Raises as `ask`."""
        try:
            return msgspec.json.decode(self.ask(path, asked), type=kind)
        except msgspec.DecodeError as error:
            raise StalledError(
                f"what {self.url} answers cannot be understood",
                why=str(error),
                fix="see that it is `lehr serve` of the same version",
            ) from error

    def running(self) -> bool:
        """Whether `lehr run` runs there."""
        return self.asked("/healthz", _Health).running

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _once(self, target: str) -> bytes:
        self._connection.request("GET", target, headers={"Accept-Encoding": "gzip"})
        answer = self._connection.getresponse()
        content: bytes = answer.read()
        if answer.getheader("content-encoding") == "gzip":
            content = gzip.decompress(content)
        if answer.status == http.client.OK:
            return content
        problem = decode_problem(answer.status, content)
        kind = TransientError if answer.status >= 500 else LehrError
        raise kind(problem.title, why=problem.detail, fix=problem.fix)


def _of(partition: Partition, name: str = "") -> str:
    return f"/v1/partitions/{quote(partition, safe='')}" + (f"/{name}" if name else "")


class RemoteIntent:
    """`lehr.store.StoredIntent` over HTTP."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def partitions(self) -> list[Partition]:
        found = self._server.asked("/v1/partitions", list[PartitionDocument])
        return [Partition(item.name) for item in found]

    def newest(self, partition: Partition) -> Incarnation | None:
        return self._server.asked(_of(partition), PartitionDocument).newest

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        newest = self.newest(partition)
        if newest is None or not 1 <= sequence <= newest.sequence:
            return None
        return self._server.asked(_of(partition, f"incarnations/{sequence}"), Incarnation)

    def incarnations(self, partition: Partition, limit: int) -> list[Incarnation]:
        return self._server.asked(
            _of(partition, "incarnations"), list[Incarnation], {"limit": min(limit, 1000)}
        )

    def require_kept(self, partition: Partition, sequence: int) -> None:
        self.incarnation(partition, sequence)

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        return next(self.assets(key.partition, sequence, None, Span(frozenset((key.id,)))), None)

    def last(self, key: AssetKey) -> tuple[Asset, int] | None:
        found = ((asset, sequence) for sequence, asset in self._versions(key) if asset is not None)
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
        asked = {"filter": _filter(types, span), "limit": _PAGE}
        cursor = Cursor(sequence, "", span.after).text()
        while cursor:
            content = self._server.ask(_of(partition, "assets"), {**asked, "cursor": cursor})
            _sequence, found, cursor = decode_page(content)
            yield from found

    def rows(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Row]:
        return map(row_of, self.assets(partition, sequence, types, span))

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        if ids is None:
            yield from self._server.asked(_of(partition, "heads"), list[Head])
            return
        for id in ids:
            yield from self._server.asked(_of(partition, "heads"), list[Head], {"asset": id})

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        asked = {"from": before, "to": after}
        for item in self._server.asked(_of(partition, "changes"), list[_Change], asked):
            yield AssetChange(item.id, _asset(item.before), _asset(item.after))

    def mentioned_by(self, key: AssetKey) -> list[tuple[AssetId, str]]:
        found = self._server.asked(_of(key.partition, "referrers"), list[Referrer], {"asset": key.id})
        return [(item.id, item.path) for item in found]

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        later = [at for at, _asset in self._versions(key) if at > sequence]
        return min(later, default=None)

    def once_mentioned_by(self, key: AssetKey) -> list[AssetId]:
        _not_over_http("who once referred to an asset")

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        _not_over_http("who claims a thing in production")

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        _not_over_http("since when an addon stands")

    def imported(self) -> list[Imported]:
        return self._server.asked("/v1/imported", list[Imported])

    def imported_assets(self, name: str) -> Iterator[Asset]:
        _not_over_http("what was imported")

    def _versions(self, key: AssetKey) -> list[tuple[int, Asset | None]]:
        found = self._server.asked(_of(key.partition, "versions"), list[_Version], {"asset": key.id})
        return [(item.sequence, _asset(item.asset)) for item in found]


class RemoteRecords:
    """`lehr.store.Records` over HTTP. What stands at a moment stands at the server's."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        found = self._server.asked(_of(partition, "controls"), Controls)
        return found.version, found.controls

    def open_operations(self, partition: Partition) -> list[Operation]:
        return self._server.asked(_of(partition, "operations"), list[Operation], {"open": "true"})

    def operations(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100
    ) -> list[Operation]:
        return self._newest(partition, "operations", list[Operation], asset, limit)

    def ledger(self, key: AssetKey) -> LedgerEntry | None:
        found = self._server.asked(_of(key.partition, "ledger"), list[LedgerEntry], {"asset": key.id})
        return found[0] if found else None

    def ledgers(self, partition: Partition) -> Iterator[LedgerEntry]:
        yield from self._server.asked(_of(partition, "ledger"), list[LedgerEntry])

    def standing(self, key: AssetKey) -> Standing | None:
        found = self._server.asked(_of(key.partition, "standings"), list[Standing], {"asset": key.id})
        return found[0] if found else None

    def standings(self, partition: Partition) -> Iterator[Standing]:
        yield from self._server.asked(_of(partition, "standings"), list[Standing])

    def decisions(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100
    ) -> list[tuple[int, Decision]]:
        found = self._newest(partition, "decisions", list[NumberedDecision], asset, limit)
        return [(item.number, item.decision) for item in found]

    def usage(self, reservation: Reservation, now: float) -> tuple[int, float | None]:
        _not_over_http("how much of a limit is used")

    def attempt(self, partition: Partition) -> Attempt | None:
        found = self._server.asked(_of(partition, "attempt"), list[Attempt])
        return found[0] if found else None

    def prunable(self, write: Prune) -> Pruned:
        _not_over_http("what can be pruned")

    def audit(self, partition: Partition, limit: int = 100) -> list[AuditEntry]:
        return self._newest(partition, "audit", list[AuditEntry], None, limit)

    def _newest(self, partition: Partition, name: str, kind: type[T], asset: AssetId | None, limit: int) -> T:
        return self._server.asked(_of(partition, name), kind, {"asset": asset, "limit": min(limit, _MOST)})


class RemoteStore:
    """`lehr.store.Store` over HTTP, for reading."""

    def __init__(self, url: str) -> None:
        """As `Server`."""
        self.server = Server(url)
        self.intent = RemoteIntent(self.server)
        self.records = RemoteRecords(self.server)

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        raise StalledError(f"{self.server.url} is for reading only")

    def close(self) -> None:
        self.server.close()


def _filter(types: Sequence[str] | None, span: Span) -> str:
    """What a store finds by index, as a filter, which is looked up by index there."""
    parts = []
    if types is not None:
        parts.append(f"type in {msgspec.json.encode(list(types)).decode()}")
    if span.ids is not None:
        parts.append(f"id in {msgspec.json.encode(sorted(span.ids)).decode()}")
    if span.prefix:
        parts.append(f"id.startsWith({msgspec.json.encode(span.prefix).decode()})")
    return " && ".join(parts)


def _asset(received: ReceivedAsset | None) -> Asset | None:
    return None if received is None else received.asset()


def _not_over_http(what: str) -> NoReturn:
    raise StalledError(
        f"{what} is not told over HTTP", fix="ask on the machine of `lehr run`, without --server"
    )

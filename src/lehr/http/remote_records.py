"""`lehr.sdk.store.Records` over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from lehr.base.errors import StalledError
from lehr.base.moments import rfc3339
from lehr.http.connection import NotThereError
from lehr.http.operations import AuditPage, OperationPage, ReportedOperation
from lehr.http.records import Controls, CountingReleases, Feed, ListedControl, Usage
from lehr.http.remote_part import RemotePart
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import Decision, Reservation
from lehr.model.evidence import Evidence
from lehr.model.feed import FeedEntry
from lehr.model.handle import Handle
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.outputs import Outputs
from lehr.model.release import Release, Released
from lehr.model.writes import Prune, Pruned
from lehr.query.cause_inputs import unsettled_of
from lehr.query.explain import NumberedDecision
from lehr.query.explanation import NumberedAuditEntry
from lehr.query.list_cursor import list_cursor
from lehr.sdk.store import DamagedOperation, Head, Standing, StandingCount, Unsettled

_PAGE = 10_000


class RemoteRecords(RemotePart):
    """`lehr.sdk.store.Records` over HTTP. Controls are those active at the server's time."""

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        found = self._ask(partition, "controls", Controls)
        return found.version, list(map(_control, found.controls))

    def past_controls(self, partition: Partition, at: float) -> list[Control]:
        return list(map(_control, self._ask(partition, "controls", Controls, at=rfc3339(at)).controls))

    def released(self, partition: Partition, since: int = 0) -> tuple[int, list[Released]]:
        found = self._ask(partition, "released", CountingReleases, since=since)
        return found.version, found.released

    def releases(self, key: AssetKey, limit: int = 100) -> list[Release]:
        return self._ask(key.partition, "releases", list[Release], asset=key.id, limit=limit)

    def evidence(self, partition: Partition, after: int = 0, limit: int = 1000) -> list[Evidence]:
        return self._ask(partition, "evidence", list[Evidence], after=after, limit=limit)

    def open_operations(self, partition: Partition) -> list[Operation]:
        found = self._ask(partition, "operations", OperationPage, open="true").operations
        return list(map(_operation, found))

    def damaged_operations(self, partition: Partition) -> list[DamagedOperation]:
        raise StalledError(
            f"operations of {partition} cannot be verified over HTTP",
            code="HTP120",
            why="a server returns the rows of its store, but not whether they are damaged",
            fix="run `lehr store check` where the store is",
        )

    def operation(self, partition: Partition, id: str) -> Operation | None:
        try:
            return _operation(self._ask(partition, f"operations/{quote(id, safe='')}", ReportedOperation))
        except NotThereError:
            return None

    def operations(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100, before: str = ""
    ) -> list[Operation]:
        cursor = list_cursor(f"operations of {asset or 'all assets'}", partition, 0, before) if before else ""
        found: list[Operation] = []
        while len(found) < limit:
            asked = {"asset": asset, "limit": min(_PAGE, limit - len(found)), "cursor": cursor}
            page = self._ask(partition, "operations", OperationPage, **asked)
            found += map(_operation, page.operations)
            cursor = page.cursor
            if not cursor:
                break
        return found

    def ledger(self, key: AssetKey) -> LedgerEntry | None:
        return next(iter(self._ask(key.partition, "ledger", list[LedgerEntry], asset=key.id)), None)

    def ledgers(self, partition: Partition) -> Iterator[LedgerEntry]:
        yield from self._ask(partition, "ledger", list[LedgerEntry])

    def handle(self, key: AssetKey) -> Handle | None:
        return next(iter(self._ask(key.partition, "handles", list[Handle], asset=key.id)), None)

    def handles(self, partition: Partition) -> Iterator[Handle]:
        yield from self._ask(partition, "handles", list[Handle])

    def outputs_of(self, key: AssetKey) -> Outputs | None:
        return next(iter(self._ask(key.partition, "outputs", list[Outputs], asset=key.id)), None)

    def outputs(self, partition: Partition) -> Iterator[Outputs]:
        yield from self._ask(partition, "outputs", list[Outputs])

    def standing(self, key: AssetKey) -> Standing | None:
        return next(iter(self._ask(key.partition, "standings", list[Standing], asset=key.id)), None)

    def standings(self, partition: Partition) -> Iterator[Standing]:
        yield from self._ask(partition, "standings", list[Standing])

    def standing_counts(self, partition: Partition) -> list[StandingCount]:
        return self._ask(partition, "counts", list[StandingCount])

    def unsettled(self, partition: Partition) -> Iterator[Unsettled]:
        found = (unsettled_of(item, self, partition) for item in self.standings(partition))
        yield from (item for item in found if item is not None)

    def without_turn(self, partition: Partition) -> list[Head]:
        heads = self._ask(partition, "heads", list[Head])
        had_turn = {standing.asset for standing in self.standings(partition)}
        return [head for head in heads if head.id not in had_turn]

    def decisions(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100, before: int = 0
    ) -> list[tuple[int, Decision]]:
        found = self._newest(partition, "decisions", NumberedDecision, limit, asset, before)
        return [(item.number, item.decision) for item in found]

    def usage(self, reservation: Reservation, now: float, but: str = "") -> tuple[int, float | None]:
        asked = {
            "key": reservation.key,
            "window": reservation.window,
            "once": "true" if reservation.once else None,
            "but": but or None,
        }
        found = self._server.asked("/v1/usage", Usage, asked)
        return found.used, found.frees_at

    def decision(self, partition: Partition, number: int) -> tuple[Decision, bytes] | None:
        raise _not_sent(f"the inputs of decision {number} of {partition}")

    def position(self, partition: Partition) -> int:
        return self._ask(partition, "feed", Feed).position

    def feed(self, partition: Partition, after: int, limit: int = 100) -> list[FeedEntry]:
        return self._ask(partition, "feed", Feed, after=after, limit=limit).entries

    def attempt(self, partition: Partition) -> Attempt | None:
        return self._server.attempt(partition)

    def prunable(self, write: Prune) -> Pruned:
        before = rfc3339(write.before)
        return self._ask(write.partition, "prunable", Pruned, keep=write.keep, before=before)

    def audit(
        self, partition: Partition, limit: int = 100, before: int | None = None
    ) -> list[tuple[int, AuditEntry]]:
        cursor = "" if before is None else list_cursor("audit", partition, before)
        found: list[tuple[int, AuditEntry]] = []
        while len(found) < limit:
            asked = {"limit": min(_PAGE, limit - len(found)), "cursor": cursor}
            page = self._ask(partition, "audit", AuditPage, **asked)
            found += ((item.number, _entry(item)) for item in page.commands)
            cursor = page.cursor
            if not cursor:
                break
        return found


def _control(listed: ListedControl) -> Control:
    """The control without its selector as text."""
    return Control(**{name: getattr(listed, name) for name in Control.__struct_fields__})


def _operation(reported: ReportedOperation) -> Operation:
    """The operation without its progress."""
    return Operation(**{name: getattr(reported, name) for name in Operation.__struct_fields__})


def _entry(numbered: NumberedAuditEntry) -> AuditEntry:
    """The command without its number."""
    return AuditEntry(**{name: getattr(numbered, name) for name in AuditEntry.__struct_fields__})


def _not_sent(what: str) -> StalledError:
    return StalledError(
        f"{what} cannot be read over HTTP", code="HTP128", fix="run the command where the store is"
    )

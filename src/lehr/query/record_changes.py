"""What has changed since a reader last looked: decisions, and rows of assets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import structs

from lehr.model.asset import AssetId
from lehr.model.decision import Decision
from lehr.model.feed import ChangeKind, FeedEntry
from lehr.query.asset_rows import GONE, NO_TURN, Row, after_decision
from lehr.query.partition_view import Reading

_FIRST = 100

NumberedDecisions = list[tuple[int, Decision]]


def decisions_after(reading: Reading, number: int, asset: AssetId | None = None) -> NumberedDecisions:
    """Decisions with a higher number, oldest first; of one asset, or of all."""
    most = _FIRST
    while True:
        found = reading.records.decisions(reading.partition, asset, most)
        if len(found) < most or found[-1][0] <= number:
            return [item for item in reversed(found) if item[0] > number]
        most *= 10


def newest_decision(reading: Reading) -> int:
    """The number of the newest decision; 0 before the first."""
    return next((number for number, _ in reading.records.decisions(reading.partition, None, 1)), 0)


class RowChanges:
    """Rows of a list of assets, one for each change.

    All rows are read only when an incarnation was published: decisions show the other changes.
    """

    def __init__(self, find: Callable[[Reading], Iterable[Row]], status: str | None = None) -> None:
        """Begin with an empty list.

        Args:
            find: returns the assets of the list as they are now, whatever their status.
            status: only rows with this status, and the next row of each asset that had it; None for all.
        """
        self._find = find
        self._status = status
        self._rows: dict[AssetId, Row] = {}
        self._shown: set[AssetId] = set()
        self._decided = 0

    def since(self, reading: Reading, entries: Sequence[FeedEntry] | None) -> list[Row]:
        """The rows that have changed.

        Args:
            entries: those of the feed since the last call, so that little is read. None if they are not
                known, as in the first call, which returns all rows.
        """
        if entries is None:
            # In this order, a decision in between is found again, and not missed.
            decided = newest_decision(reading)
            changed = self._replaced({row.id: row for row in self._find(reading)})
            self._decided = decided
            return self._wanted(changed)
        kinds = {change.kind for entry in entries for change in entry.changes}
        decisions = decisions_after(reading, self._decided) if ChangeKind.DECISION in kinds else []
        changed = []
        if ChangeKind.INCARNATION in kinds:
            changed = self._relisted(reading, {decision.asset for _, decision in decisions})
        changed += self._decisions(decisions)
        return self._wanted(changed)

    def _decisions(self, decisions: NumberedDecisions) -> Iterator[Row]:
        for number, decision in decisions:
            self._decided = number
            before = self._rows.get(decision.asset)
            if before is None:
                continue
            row = self._rows[before.id] = after_decision(before, decision)
            if _seen(row) != _seen(before):
                yield row

    def _relisted(self, reading: Reading, decided: set[AssetId]) -> list[Row]:
        """The rows that a new incarnation has changed. Only decisions, which come next, change a status."""
        found = {row.id: row for row in self._find(reading)}
        for id, row in found.items():
            before = self._rows.get(id)
            if before is None and id in decided:
                before = Row(id, row.type, NO_TURN)
            if before is not None:
                found[id] = structs.replace(before, type=row.type, departed=row.departed)
        undecided = {id for id in found if id not in decided or id in self._rows}
        return [row for row in self._replaced(found) if row.status == GONE or row.id in undecided]

    def _replaced(self, found: dict[AssetId, Row]) -> list[Row]:
        """Replace all rows; those that are gone, and those that differ."""
        before, self._rows = self._rows, found
        gone = [row for id, row in before.items() if id not in found]
        return [Row(row.id, row.type, GONE, message="no longer in this list") for row in gone] + [
            row for id, row in found.items() if id not in before or _seen(row) != _seen(before[id])
        ]

    def _wanted(self, changed: Iterable[Row]) -> list[Row]:
        wanted = []
        for row in changed:
            if self._status in (None, row.status):
                self._shown.add(row.id)
            elif row.id in self._shown:
                self._shown.discard(row.id)
            else:
                continue
            wanted.append(row)
        return wanted


def _seen(row: Row) -> Row:
    """The row without times, which change with every turn."""
    return structs.replace(row, since=None, next_at=None, resync=None)

"""`lehr get assets --watch` and `lehr get decisions --watch`: a row for each change."""

from __future__ import annotations

from collections.abc import Callable

from lehr.cli.live import Entries, Lines, Live
from lehr.cli.output import ItemWriter, Shape
from lehr.model.asset import AssetId
from lehr.model.decision import Decision
from lehr.query.asset_rows import Row
from lehr.query.partition_view import Reading
from lehr.query.record_changes import RowChanges, decisions_after, newest_decision


class WatchedAssets(Lines, Live):
    """Rows of assets, and one for each change."""

    def __init__(
        self,
        form: str,
        find: Callable[[Reading], list[Row]],
        status: str | None,
        shape: Callable[[Reading], Shape[Row]],
    ) -> None:
        """As `RowChanges`, in this form and shape."""
        self._changes = RowChanges(find, status)
        self._writer = ItemWriter[Row](form)
        self._shape = shape

    def show(self, reading: Reading, entries: Entries) -> None:
        self._writer.write(self._changes.since(reading, entries), self._shape(reading))


class WatchedDecisions(Lines, Live):
    """The newest decisions, and each later one; of one asset, or of all."""

    def __init__(
        self,
        form: str,
        asset: AssetId | None,
        limit: int,
        shape: Callable[[Reading], Shape[tuple[int, Decision]]],
    ) -> None:
        """Begin with `limit` decisions."""
        self._asset = asset
        self._limit = limit
        self._writer = ItemWriter[tuple[int, Decision]](form)
        self._shape = shape
        self._shown: int | None = None

    def show(self, reading: Reading, entries: Entries) -> None:
        if entries is not None and not entries:
            return
        if self._shown is None:
            found = reading.records.decisions(reading.partition, self._asset, self._limit)[::-1]
        else:
            if entries is None:  # the store may be another one, with lower numbers
                self._shown = min(self._shown, newest_decision(reading))
            found = decisions_after(reading, self._shown, self._asset)
        self._writer.write(found, self._shape(reading))
        self._shown = found[-1][0] if found else self._shown or 0

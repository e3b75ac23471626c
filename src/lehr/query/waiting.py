"""Whether assets have come to where somebody waits for them to be."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.model.asset import AssetKey
from lehr.model.decision import Status
from lehr.query.reading import Reading
from lehr.query.selecting import GOVERNING, Row


def not_converged(reading: Reading, found: Iterable[Row]) -> list[Row]:
    """Those of `found` on which something is left to do for the newest incarnation.

    A status alone may be older than the newest incarnation. So what was last applied to, or
    found in, production must have the content that is intended now.
    """
    return [row for row in found if not (row.settled and _at_newest(reading, row))]


def _at_newest(reading: Reading, row: Row) -> bool:
    if row.status == GOVERNING or row.departed or row.reason == "Pinned":
        return True
    key = AssetKey(reading.partition, row.id)
    entry, last = reading.records.ledger(key), reading.intent.last(key)
    if entry is None or last is None:
        return False
    asset, came_with = last
    if entry.content >= came_with:
        return True
    applied = reading.intent.asset(key, entry.content)
    return applied is not None and applied.digest == asset.digest


def not_at(found: Iterable[Row], status: Status) -> list[Row]:
    """Those of `found` that stand otherwise than `status`."""
    return [row for row in found if row.status not in (status, GOVERNING)]

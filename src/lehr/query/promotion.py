"""Whether production matches an incarnation: a promoted incarnation has proved itself."""

from __future__ import annotations

from lehr.model.asset import Asset, AssetKey
from lehr.model.decision import Status
from lehr.query.asset_rows import INERT, Row, rows
from lehr.query.partition_view import Reading
from lehr.sdk.store import PrunedError


def not_in_production(reading: Reading, sequence: int) -> list[str]:
    """Assets of an incarnation that production does not have as intended, now; each with the reason.

    Assets without production are left out. An incarnation older than the one in force may also be
    in production, as far as nothing has changed since.
    """
    stand = {row.id: row for row in rows(reading)}
    found = []
    for asset in reading.intent.assets(reading.partition, sequence):
        if not _inert(reading, asset, stand.get(asset.id)):
            reason = _reason(reading, asset, stand.get(asset.id))
            if reason:
                found.append(f"{asset.id}: {reason}")
    return found


def _inert(reading: Reading, asset: Asset, row: Row | None) -> bool:
    return reading.inert(asset.type) if row is None else row.status == INERT


def _reason(reading: Reading, asset: Asset, row: Row | None) -> str:
    """Why production does not have `asset`; "" if it has."""
    if row is None:
        return "it is not intended any more"
    if not row.settled:
        return f"{row.status} {row.message}".strip()
    key = AssetKey(reading.partition, asset.id)
    entry, last = reading.records.ledger(key), reading.intent.last(key)
    if row.status == Status.TURNED_DOWN and last is not None and last[0].digest == asset.digest:
        return ""
    if entry is None:
        return "nothing was ever applied"
    try:
        applied = reading.intent.asset(key, entry.content)
    except PrunedError:
        applied = None
    same = applied is not None and applied.digest == asset.digest
    return "" if same else f"production has it as of {reading.partition}@{entry.content}"

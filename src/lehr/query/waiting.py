"""Whether assets have come to where somebody waits for them to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lehr.model.asset import Asset, AssetKey
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status
from lehr.query.reading import Reading
from lehr.query.selecting import INERT, Row
from lehr.store import PrunedError

PINNED = "Pinned"
"""Reason of assets that are converged at the incarnation that they are pinned to."""


def not_converged(reading: Reading, found: Iterable[Row]) -> list[Row]:
    """Those of `found` on which something is left to do, for the newest incarnation or their pin.

    A status alone may be older than the newest incarnation, or than a pin. So what was last
    applied to, or found in, production must have the content that is intended now.
    """
    _version, controls = reading.records.controls(reading.partition, reading.now)
    pins = [control for control in controls if control.kind is ControlKind.PIN]
    return [row for row in found if not (row.settled and _as_intended_now(reading, row, pins))]


def _as_intended_now(reading: Reading, row: Row, pins: Sequence[Control]) -> bool:
    if row.status == INERT or row.departed:
        return True
    key = AssetKey(reading.partition, row.id)
    entry, last = reading.records.ledger(key), reading.intent.last(key)
    if entry is None or last is None:
        return False
    asset, came_with = last
    pin = next((item for item in reversed(pins) if item.selector.matches(asset)), None)
    if (pin is not None) is not (row.reason == PINNED):
        return False
    intended: Asset | None = asset
    if pin is not None and pin.incarnation is not None:
        intended = reading.intent.asset(key, pin.incarnation)
    elif entry.content >= came_with:
        return True
    try:
        applied = reading.intent.asset(key, entry.content)
    except PrunedError:
        return False  # it was out of production once, and has come back since
    return applied is not None and intended is not None and applied.digest == intended.digest


def not_at(found: Iterable[Row], status: Status) -> list[Row]:
    """Those of `found` that stand otherwise than `status`."""
    return [row for row in found if row.status not in (status, INERT)]

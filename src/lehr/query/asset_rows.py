"""Assets and their status: the rows of `lehr get assets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from lehr.base.errors import LehrError
from lehr.base.moments import Moment
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Decision, Status
from lehr.model.selector import Selector
from lehr.query.partition_view import Reading
from lehr.sdk.store import Head, Standing

INERT = "Inert"
"""Shown as status of assets that configure checks and limits: they have no production."""

NO_TURN = "NoTurnYet"
"""Shown as status of assets that have not had a turn yet."""

GONE = "Gone"
"""Shown as status of assets that have left a list while it was watched."""


def parse_status(text: str) -> str:
    """The status that `text` names, whatever its case.

    Raises:
        LehrError: there is no status of that name.
    """
    known = {status.lower(): str(status) for status in (*Status, INERT, NO_TURN)}
    if text.lower() not in known:
        fix = f"name one of {', '.join(known.values())}"
        raise LehrError(
            f"unknown status {text!r}", code="QRY119", why="it is not a status of assets", fix=fix
        )
    return known[text.lower()]


class Row(msgspec.Struct, frozen=True):
    """Status of one asset.

    Attributes:
        status: a `Status`, `INERT`, `NO_TURN` or `GONE`.
        since: wall-clock seconds since when it has this status; None when it had no turn.
        next_at: wall-clock seconds at which the next turn is due.
        resync: seconds until the next regular check, at most.
        automatic: True if a turn may push automatically; False if an operator must act or intent must change
            first.
        departed: True when the newest incarnation no longer has it.
    """

    id: AssetId
    type: str
    status: str
    reason: str = ""
    message: str = ""
    unblock: str = ""
    since: Moment | None = None
    next_at: Moment | None = None
    departed: bool = False
    resync: float | None = None
    automatic: bool = True

    @property
    def settled(self) -> bool:
        """True when nothing is left to do."""
        if self.status in (INERT, NO_TURN, GONE):
            return self.status != NO_TURN
        return Status(self.status).settled


def rows(reading: Reading, selector: Selector | None = None) -> list[Row]:
    """Every asset of the newest incarnation, and those that left it with work left to do, by id.

    Args:
        selector: only the assets that it selects; None for all.
    """
    standings = {item.asset: item for item in reading.records.standings(reading.partition)}
    found = [_row(reading, head, standings.pop(head.id, None)) for head in _heads(reading, selector)]
    found.extend(row for row in _departed(reading, standings.values(), selector) if not row.settled)
    return sorted(found, key=lambda row: row.id)


def orphans(reading: Reading, selector: Selector | None = None) -> list[Row]:
    """Assets that intent has let go without a turndown: still in production, but never touched."""
    present = {head.id for head in reading.intent.heads(reading.partition)}
    departed = (item for item in reading.records.standings(reading.partition) if item.asset not in present)
    found = _departed(reading, departed, selector)
    return [row for row in found if row.status == Status.ORPHANED]


def selected(reading: Reading, text: Selector) -> list[Row]:
    """As `rows`, but never nothing.

    Raises:
        LehrError: no asset is selected.
    """
    found = rows(reading, text)
    if not found:
        raise LehrError(
            f"no asset is selected by {text}", code="QRY120", fix="`lehr get assets` lists all assets"
        )
    return found


def known_asset(reading: Reading, id: str) -> tuple[Asset, int]:
    """The last version of the asset in intent, and the sequence it came with.

    Raises:
        LehrError: there never was an asset of this id. Suggests similar ids.
    """
    found = reading.intent.last(AssetKey(reading.partition, AssetId(id)))
    if found is not None:
        return found
    raise LehrError(
        f"partition {reading.partition} has no asset {id}", code="QRY121", fix=_similar_ids(reading, id)
    )


def row_of(reading: Reading, asset: Asset) -> Row:
    """Status of one asset."""
    head = next(reading.intent.heads(reading.partition, [asset.id]), None)
    standing = reading.records.standing(AssetKey(reading.partition, asset.id))
    if head is not None:
        return _row(reading, head, standing)
    if standing is not None:
        return _with_standing(asset.id, asset.type, standing, departed=True)
    return Row(asset.id, asset.type, NO_TURN, departed=True)


def after_decision(row: Row, decision: Decision) -> Row:
    """The row of the same asset once the decision is recorded."""
    standing = Standing(row.id, decision.condition, decision.at, decision.condition.key())
    return _with_standing(row.id, row.type, standing, departed=row.departed)


def _heads(reading: Reading, selector: Selector | None) -> Iterable[Head]:
    heads = reading.intent.heads(reading.partition)
    if selector is None or selector.all:
        return heads
    if not selector.labels:
        return (head for head in heads if _matches(selector, head))
    newest = reading.newest()
    assets = reading.intent.assets(reading.partition, newest.sequence) if newest is not None else iter(())
    ids = {asset.id for asset in assets if selector.matches(asset)}
    return (head for head in heads if head.id in ids)


def _matches(selector: Selector, head: Head) -> bool:
    """A selector without labels only needs id and type, so no body is read."""
    return selector.matches(Asset(head.id, head.type, b"", head.digest))


def _departed(reading: Reading, standings: Iterable[Standing], selector: Selector | None) -> Iterator[Row]:
    for standing in standings:
        if standing.condition.status is Status.TURNED_DOWN:
            continue
        last = reading.intent.last(AssetKey(reading.partition, standing.asset))
        # A given status may belong to an asset that the selector excludes.
        if last is None or (selector is not None and not selector.matches(last[0])):
            continue
        if next(reading.intent.heads(reading.partition, [standing.asset]), None) is None:
            yield _with_standing(standing.asset, last[0].type, standing, departed=True)


def _row(reading: Reading, head: Head, standing: Standing | None) -> Row:
    if standing is not None:
        return _with_standing(head.id, head.type, standing)
    if reading.inert(head.type):
        return Row(head.id, head.type, INERT, message="it has no production")
    return Row(
        head.id, head.type, NO_TURN, message="no turn yet", unblock="wait until `lehr run` processes it"
    )


def _with_standing(id: AssetId, type: str, standing: Standing, *, departed: bool = False) -> Row:
    condition = standing.condition
    return Row(
        id,
        type,
        str(condition.status),
        condition.reason,
        condition.message,
        condition.unblock,
        standing.since,
        condition.next_at,
        departed,
        condition.resync,
        condition.automatic,
    )


def _similar_ids(reading: Reading, id: str) -> str:
    import difflib  # noqa: PLC0415 -- slow to import, and only needed after a mistake

    known = [head.id for head in reading.intent.heads(reading.partition)]
    within = [item for item in known if id and id in item]
    close = difflib.get_close_matches(id, known, n=3) or within[:3]
    if not close:
        return "`lehr get assets` lists all assets"
    return f"did you mean {' or '.join(close)}?"

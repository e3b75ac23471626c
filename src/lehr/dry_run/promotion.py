"""The incarnation of another partition that a promotion pins, its location, and whether production matches.

In: a state or an exported file, and what `lehr.yaml` declares. Out: the incarnation, and the new declaration.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.documents import load
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetKey, Partition
from lehr.model.decision import Status
from lehr.model.declared_sources import WORKSPACE_FILE
from lehr.model.incarnation import Incarnation
from lehr.query.asset_rows import INERT, Row, rows
from lehr.query.partition_view import Reading, choose_partition
from lehr.query.wait_conditions import asset_at
from lehr.sdk.store import CheckableStore, Store
from lehr.store.archive import open_archive


class Chosen(msgspec.Struct, frozen=True):
    """The promoted incarnation.

    Attributes:
        field: of the source's declaration that holds its location: `state` or `archive`.
        place: the folder or file.
        unproved: why production is not known to match it; empty if it matches.
    """

    header: Incarnation
    field: str
    place: Path
    unproved: tuple[str, ...]


def chosen_from(
    partition: str,
    number: str,
    origin: Path,
    open_state: Callable[[Path], CheckableStore],
    inert_in: Callable[[Store, Partition], Callable[[str], bool]],
    now: float,
) -> Chosen:
    """The incarnation, from a state folder or an exported file.

    Args:
        number: `latest`, or its sequence.
        open_state: opens the store of a state folder for reading.
        inert_in: returns the predicate of the types of a store that have no production.

    Raises:
        LehrError: it is not there.
    """
    if origin.is_file():
        with open_archive(origin) as archive:
            header = archive.header
        if header.partition != partition or number not in ("latest", str(header.sequence)):
            raise LehrError(
                f"{origin} contains {header.name}, not {partition}@{number}",
                code="CLI130",
                fix="name another file",
            )
        return Chosen(
            header, "archive", origin, ("an exported file does not record the status of production",)
        )
    with contextlib.closing(open_state(origin)) as store:
        known = choose_partition(store.intent.partitions(), partition)
        reading = Reading(store, known, now, inert_in(store, known))
        header = reading.incarnation(f"{partition}@{number}")
        return Chosen(header, "state", origin, tuple(_not_in_production(reading, header.sequence)))


def declared_origin(workspace: Path | None, file: str, partition: str, name: str | None) -> Path:
    """Where the workspace locates the partition.

    Raises:
        LehrError: it has no location, or one that is not on this machine.
    """
    path = None if workspace is None else workspace / file
    if path is not None and path.is_file():
        loaded = load(WORKSPACE_FILE, path.read_bytes()).documents
        value = loaded[0].value if len(loaded) == 1 else None
        sources = value.get("sources") if isinstance(value, dict) else None
        if isinstance(sources, dict):
            entry = sources.get(name or _named(sources, partition))
            place = (entry.get("state") or entry.get("archive")) if isinstance(entry, dict) else None
            if isinstance(place, str):
                return path.parent / Path(place).expanduser()
    raise LehrError(
        f"the location of partition {partition} is not known",
        code="CLI129",
        why=f"no source in {file} names it" if path else "the workspace is not on this machine",
        fix="name its workspace, its state folder or an exported file with --from",
    )


def pin(chosen: Chosen, name: str | None, workspace: Path | None) -> Callable[[Any], Any]:
    """An edit of `sources` in lehr.yaml that pins `chosen`.

    If it is repeated because of another commit, it refuses to undo the pins of that commit.
    """
    partition = str(chosen.header.partition)
    seen: list[Any] = []

    def pinned(sources: Any) -> Any:
        if not isinstance(sources, dict):
            raise LehrError(
                f"`sources` in {WORKSPACE_FILE} is not a mapping", code="CLI125", fix="run `lehr validate`"
            )
        named = name or _named(sources, partition) or partition
        before = sources.get(named, {})
        if not isinstance(before, dict) or before.get("partition", partition) != partition:
            raise LehrError(
                f"source {named} does not read partition {partition}",
                code="CLI126",
                fix="name another with --source",
            )
        if seen and seen[0] != before:
            raise LehrError(
                f"source {named} was changed at the same time",
                code="CLI127",
                why="another commit changed its pin",
                fix="review that commit, then run the command again",
            )
        seen.append(before)
        other = {"state", "archive"} - {chosen.field}
        entry = {"partition": partition, **{key: value for key, value in before.items() if key not in other}}
        entry[chosen.field] = _written(before.get(chosen.field), chosen, workspace)
        digest = str(chosen.header.digest)
        return {**sources, named: {**entry, "incarnation": chosen.header.sequence, "digest": digest}}

    return pinned


def _named(sources: dict[str, Any], partition: str) -> str | None:
    """The source that reads the partition; None if there is none.

    Raises:
        LehrError: there are several.
    """
    found = [
        name
        for name, value in sources.items()
        if isinstance(value, dict) and value.get("partition") == partition
    ]
    if len(found) > 1:
        raise LehrError(
            f"several sources read partition {partition}: {', '.join(found)}",
            code="CLI128",
            fix="name one with --source",
        )
    return found[0] if found else None


def _written(before: Any, chosen: Chosen, workspace: Path | None) -> str:
    """Its location as written in the file: unchanged if it is the same, else relative to the workspace."""
    place = chosen.place.expanduser().absolute()
    if workspace is None:  # relative to that workspace, not to this one
        return before if isinstance(before, str) and chosen.field == "state" else str(place)
    if isinstance(before, str) and (workspace / Path(before).expanduser()).resolve() == place.resolve():
        return before
    return os.path.relpath(place, workspace.absolute())


def _not_in_production(reading: Reading, sequence: int) -> list[str]:
    """Assets of an incarnation that production does not match at the moment, each with the reason.

    Assets without production are excluded. Production may also match an incarnation older than the one in
    force, if nothing has changed since.
    """
    stand = {row.id: row for row in rows(reading)}
    found = []
    for asset in reading.intent.assets(reading.partition, sequence):
        reason = _reason(reading, asset, stand.get(asset.id))
        if reason:
            found.append(f"{asset.id}: {reason}")
    return found


def _reason(reading: Reading, asset: Asset, row: Row | None) -> str:
    """Why production does not match `asset`; "" if it does."""
    if row is None:
        return "" if reading.inert(asset.type) else "no longer in intent"
    if row.status == INERT:
        return ""
    if not row.settled:
        return f"{row.status} {row.message}".strip()
    key = AssetKey(reading.partition, asset.id)
    entry, last = reading.records.ledger(key), reading.intent.last(key)
    if row.status == Status.TURNED_DOWN and last is not None and last[0].digest == asset.digest:
        return ""
    if entry is None:
        return "never applied"
    applied = asset_at(reading, asset.id, entry.content)
    same = applied is not None and applied.digest == asset.digest
    return "" if same else f"production matches {reading.partition}@{entry.content}"

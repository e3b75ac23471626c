"""Pruning: removes what is no longer needed, an incarnation completely or not at all.

A pruned incarnation keeps its header, a permanent record of what was in force when, and what it was made
from. The versions of its assets that no kept incarnation shows are removed.

Invariants kept here: I2 (a kept incarnation never reads differently), I12 (incarnations that are pinned,
applied or under way are never removed).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from lehr.model.asset import Partition
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.writes import Prune, Pruned
from lehr.store.sql.admission import active_controls
from lehr.store.sql.evidence import old_evidence
from lehr.store.sql.feed import prunable_entries, prune_entries
from lehr.store.sql.headers import mark_pruned, pruned_flags
from lehr.store.sql.releases import released
from lehr.store.sql.session import Session
from lehr.store.sql.tables import OPERATION, RESERVATION


def _needed(db: Session) -> str:
    """Incarnations that are needed, whatever their age.

    A pin that was lifted or expired since `before` still counts: a turn that began under it may be under way.
    """
    named = db.number("body", "incarnation")
    return f"""
    SELECT {named} FROM control
    WHERE partition = :partition AND {named} IS NOT NULL
      AND (lifted_at IS NULL OR lifted_at > :before) AND (expires_at IS NULL OR expires_at > :before)
  UNION ALL
    SELECT target FROM release
    WHERE partition = :partition AND target IS NOT NULL
      AND (withdrawn_at IS NULL OR withdrawn_at > :before)
  UNION ALL
    SELECT {db.number("body", "content")} FROM operation WHERE partition = :partition AND open = 1
  UNION ALL
    SELECT {db.number("body", "governing")} FROM operation WHERE partition = :partition AND open = 1
"""  # noqa: S608 - made of our own constants


_APPLIED = f"""
    SELECT 1 FROM ledger l
    WHERE l.partition = incarnation.partition AND l.content = incarnation.sequence
      AND (l.goal != '{Goal.ABSENT}' OR EXISTS (
        SELECT 1 FROM asset_current c WHERE c.partition = l.partition AND c.id = l.asset))
"""  # noqa: S608
"""Assets whose production comes from an incarnation, or will again."""


def _prunable(db: Session) -> str:
    """Incarnations that may be pruned, with the number of versions that each added."""
    versions = " + ".join(db.number("header", name) for name in ("added", "changed", "removed"))
    return f"""
    SELECT sequence, {versions} FROM incarnation{db.by("incarnation_kept")}
    WHERE partition = :partition AND pruned = 0
      AND sequence <= (SELECT newest FROM partition WHERE name = :partition) - :keep
      AND {db.number("header", "created_at")} < :before
      AND sequence NOT IN ({_needed(db)})
      AND NOT EXISTS ({_APPLIED})
      -- The last that holds an asset which is gone from intent, and not turned down yet.
      AND NOT EXISTS (
        SELECT 1 FROM asset_version t{db.by("asset_version_sequence")}
        WHERE t.partition = :partition AND t.sequence = incarnation.sequence + 1 AND t.digest IS NULL
          AND NOT EXISTS (SELECT 1 FROM asset_version n
                          WHERE n.partition = t.partition AND n.id = t.id AND n.sequence > t.sequence)
          AND EXISTS (SELECT 1 FROM standing s WHERE s.partition = t.partition AND s.asset = t.id
                      AND {db.text("s.condition", "status")} != '{Status.TURNED_DOWN}'))
    ORDER BY sequence
"""  # noqa: S608


def _replaced(db: Session) -> str:
    """Versions that no incarnation shows any more.

    Versions between two kept incarnations (`low`, or 0, and `high`) that another version has replaced at
    `high`. The search starts from the replacements: `first` is the first that was not pruned before.
    """
    return f"""
    SELECT DISTINCT v.number, v.id, v.sequence FROM asset_version w{db.by("asset_version_sequence")}
    CROSS JOIN asset_version v{db.by("asset_version_key")}
    WHERE v.partition = w.partition AND v.id = w.id AND v.sequence > :low AND v.sequence < w.sequence
      AND w.partition = :partition AND w.sequence > :first AND w.sequence <= :high
"""  # noqa: S608


def _old_decisions(db: Session) -> str:
    return f"""
    SELECT number FROM decision d WHERE partition = :partition AND number > :above AND number <= :most
      AND {db.number("body", "at")} < :before
      AND EXISTS (SELECT 1 FROM decision n
                  WHERE n.partition = d.partition AND n.asset = d.asset AND n.number > d.number)
      AND NOT EXISTS (SELECT 1 FROM operation o{db.by("operation_open")}
                      WHERE o.partition = d.partition AND o.asset = d.asset AND o.open = 1
                        AND o.id = {db.text("d.body", "operation")})
"""  # noqa: S608


def _old_operations(db: Session) -> str:
    return f"""
    SELECT number FROM operation o
    WHERE partition = :partition AND number > :above AND number <= :most AND open = 0
      AND {db.number("body", "ended_at")} < :before
      AND EXISTS (SELECT 1 FROM operation n
                  WHERE n.partition = o.partition AND n.asset = o.asset AND n.number > o.number)
      AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.partition = o.partition AND l.asset = o.asset
                      AND {db.text("l.body", "operation")} = o.id)
      AND NOT EXISTS (SELECT 1 FROM reservation r
                      WHERE r.operation = o.id AND (r.until IS NULL OR r.until >= :before))
"""  # noqa: S608


_OLD_SHARES = f"SELECT {RESERVATION.names()} FROM reservation WHERE until < ? LIMIT ?"  # noqa: S608

_MAYBE_OPEN = f"""
    SELECT {OPERATION.names()} FROM operation o
    WHERE partition = :partition AND number > :above AND number <= :most
      AND (open = 1 OR NOT EXISTS (SELECT 1 FROM operation n
                                   WHERE n.partition = o.partition AND n.asset = o.asset
                                     AND n.number > o.number))
"""  # noqa: S608
"""Only the newest operation of an asset can be under way, whatever the row holds."""

_OLD_CONTROLS = """
    SELECT number FROM control
    WHERE partition = :partition AND (lifted_at < :before OR expires_at < :before)
"""


def _old_releases(db: Session) -> str:
    """Releases that were withdrawn or replaced long ago.

    Those that count stay, with those before them, where a rollback goes: those that count now, and those that
    counted before some were withdrawn lately. So does the newest of each asset, even if it was withdrawn:
    it shows that releases govern the asset.
    """
    return f"""
    SELECT number FROM release r WHERE partition = :partition AND {db.number("body", "at")} < :before
      AND EXISTS (SELECT 1 FROM release n
                  WHERE n.partition = r.partition AND n.asset = r.asset AND n.number > r.number)
      AND number NOT IN (
        SELECT number FROM (
            SELECT number, withdrawn_at,
                   row_number() OVER (PARTITION BY asset ORDER BY number DESC) place,
                   row_number() OVER (PARTITION BY asset, withdrawn_at IS NULL ORDER BY number DESC) among
            FROM release WHERE partition = :partition AND (withdrawn_at IS NULL OR withdrawn_at > :before)) s
        WHERE place <= 2 OR (withdrawn_at IS NULL AND among <= 2))
"""  # noqa: S608 - our own names


def prune(db: Session, write: Prune) -> Pruned:
    """Remove a share of what `write` asks for."""
    if not (write.decisions_above or write.operations_above):
        verified = _require_intact(db, write)
        if verified is not None:
            return Pruned(rest=replace(write, operations_verified=verified))
        if _remove_shares(db, write) or _remove_releases(db, write) or _remove_evidence(db, write):
            return Pruned(rest=write)
        sequences = list(_share(db, write))
        if sequences:
            versions = _prune_incarnations(db, write.partition, sequences)
            return Pruned(incarnations=len(sequences), versions=versions, rest=write)
        controls = _remove_controls(db, write)
        if controls:
            return Pruned(controls=controls, rest=write)
        entries = prune_entries(db, write.partition, write.before, write.most)
        if entries:
            return Pruned(entries=entries, rest=write)
    decisions, last_decision = _remove_decisions(db, write)
    operations, last_operation = _remove_operations(db, write)
    rest = replace(write, decisions_above=last_decision, operations_above=last_operation)
    at_end = (last_decision, last_operation) == (write.decisions_above, write.operations_above)
    return Pruned(decisions=decisions, operations=operations, rest=None if at_end else rest)


def prunable(db: Session, write: Prune) -> Pruned:
    """The number of rows that `write` and all following shares would remove."""
    wanted = _wanted(write)
    sequences = [sequence for sequence, _changes in db.execute(_prunable(db), wanted)]
    versions = sum(
        db.execute(f"SELECT count(*) FROM ({_replaced(db)}) gone", gap).fetchone()[0]  # noqa: S608
        for gap in _gaps(db, write.partition, sequences)
    )
    wanted |= {"above": 0, "most": 2**63 - 1}
    decisions = db.execute(f"SELECT count(*) FROM ({_old_decisions(db)}) gone", wanted).fetchone()[0]  # noqa: S608
    operations = db.execute(f"SELECT count(*) FROM ({_old_operations(db)}) gone", wanted).fetchone()[0]  # noqa: S608
    controls = db.execute(f"SELECT count(*) FROM ({_OLD_CONTROLS}) gone", _wanted(write)).fetchone()[0]  # noqa: S608
    entries = prunable_entries(db, write.partition, write.before)
    return Pruned(len(sequences), versions, decisions, operations, controls, entries)


def _wanted(write: Prune) -> dict[str, Any]:
    # The newest is enforced: it always stays.
    return {"partition": write.partition, "keep": max(write.keep, 1), "before": write.before}


def _share(db: Session, write: Prune) -> Iterator[int]:
    """The oldest incarnations that may be pruned, with about `write.most` versions in total."""
    held = 0
    for sequence, changes in db.execute(_prunable(db), _wanted(write)):
        yield sequence
        held += changes
        if held >= write.most:
            return


def _gaps(db: Session, partition: Partition, sequences: list[int]) -> Iterator[dict[str, Any]]:
    """The ranges of `sequences` between kept incarnations, as parameters of `_replaced`."""
    going = set(sequences)
    kept = [
        sequence
        for (sequence,) in db.execute(
            f"SELECT sequence FROM incarnation{db.by('incarnation_kept')}"  # noqa: S608
            " WHERE partition = ? AND pruned = 0 ORDER BY sequence",
            (partition,),
        )
        if sequence not in going
    ]
    place = 0

    def next_kept(sequence: int) -> int:
        nonlocal place
        while kept[place] < sequence:
            place += 1
        return place

    for index, group in groupby(sequences, next_kept):
        low = kept[index - 1] if index else 0
        yield {"partition": partition, "low": low, "first": next(group), "high": kept[index]}


def _prune_incarnations(db: Session, partition: Partition, sequences: list[int]) -> int:
    """Returns the number of versions removed."""
    gaps = list(_gaps(db, partition, sequences))
    for gap in gaps:
        # One that seems to be pruned, and is not, would lose versions that it shows.
        deque(pruned_flags(db, partition, gap["low"], gap["high"]), maxlen=0)
    mark_pruned(db, partition, sequences)
    return sum(_remove_replaced(db, partition, gap) for gap in gaps)


def _remove_replaced(db: Session, partition: Partition, gap: dict[str, Any]) -> int:
    gone = db.execute(_replaced(db), gap).fetchall()
    db.executemany(
        "DELETE FROM mention WHERE partition = :partition AND source = :id AND until > :at AND until <= ("
        "SELECT min(sequence) FROM asset_version"
        " WHERE partition = :partition AND id = :id AND sequence > :at)",
        ({"partition": partition, "id": id, "at": sequence} for _number, id, sequence in gone),
    )
    db.executemany("DELETE FROM asset_version WHERE number = ?", ((number,) for number, _id, _at in gone))
    # A tombstone with nothing before it has no meaning.
    db.executemany(
        "DELETE FROM asset_version WHERE number ="
        " (SELECT number FROM asset_version WHERE partition = ? AND id = ? ORDER BY sequence LIMIT 1)"
        " AND digest IS NULL",
        {(partition, id) for _number, id, _at in gone},
    )
    return len(gone)


def _require_intact(db: Session, write: Prune) -> int | None:
    """Verify the rows that keep incarnations: if damaged, a needed incarnation may seem unneeded.

    Returns:
        The last operation of this share; None if there are no more.

    Raises:
        DamagedError: a row is damaged.
    """
    active_controls(db, write.partition, 0.0)
    released(db, write.partition, 0)
    most = _last_of_share(db, "operation", write.operations_verified, write.most)
    if most is None:
        return None
    wanted = {"partition": write.partition, "above": write.operations_verified, "most": most}
    deque(OPERATION.read_all(db.execute(_MAYBE_OPEN, wanted)), maxlen=0)
    return most


def _last_of_share(db: Session, table: str, above: int, rows: int) -> int | None:
    """The number of the last row in the next batch of `table`; None if there are no more rows."""
    query = f"SELECT max(number) FROM (SELECT number FROM {table} WHERE number > ? ORDER BY number LIMIT ?) s"  # noqa: S608
    most: int | None = db.execute(query, (above, rows)).fetchone()[0]
    return most


def _remove_shares(db: Session, write: Prune) -> bool:
    """Remove shares of limits that ended long ago: the limit may be gone and never be read again.

    A damaged one may count for longer, and stays. Returns whether any was removed.
    """
    over = db.execute(_OLD_SHARES, (write.before, write.most)).fetchall()
    gone = [(row[0], row[1]) for row in over if RESERVATION.is_intact(row)]
    if gone:
        db.executemany("DELETE FROM reservation WHERE key = ? AND operation = ?", gone)
    return bool(gone)


def _remove_controls(db: Session, write: Prune) -> int:
    """Remove controls that ended long ago. The audit trail keeps their purpose and author."""
    return db.execute(f"DELETE FROM control WHERE number IN ({_OLD_CONTROLS})", _wanted(write)).rowcount  # noqa: S608


def _remove_releases(db: Session, write: Prune) -> bool:
    """Remove old releases, before the incarnations that they alone need. Returns whether any was removed.

    So a release that counts again when later ones are withdrawn always finds its incarnation.
    """
    query = f"DELETE FROM release WHERE number IN ({_old_releases(db)})"  # noqa: S608
    return db.execute(query, _wanted(write)).rowcount > 0


def _remove_evidence(db: Session, write: Prune) -> bool:
    """Remove evidence of old rollouts, but for their beginnings and ends. Returns whether any was removed."""
    query = f"DELETE FROM evidence WHERE number IN ({old_evidence(db)})"  # noqa: S608
    return db.execute(query, _wanted(write)).rowcount > 0


def _remove_decisions(db: Session, write: Prune) -> tuple[int, int]:
    """Returns the number removed, and the row number up to which all were checked."""
    most = _last_of_share(db, "decision", write.decisions_above, write.most)
    if most is None:
        return 0, write.decisions_above
    wanted = {**_wanted(write), "above": write.decisions_above, "most": most}
    count = db.execute(f"DELETE FROM decision WHERE number IN ({_old_decisions(db)})", wanted).rowcount  # noqa: S608
    return count, most


def _remove_operations(db: Session, write: Prune) -> tuple[int, int]:
    """The same of operations."""
    most = _last_of_share(db, "operation", write.operations_above, write.most)
    if most is None:
        return 0, write.operations_above
    wanted = {**_wanted(write), "above": write.operations_above, "most": most}
    count = db.execute(f"DELETE FROM operation WHERE number IN ({_old_operations(db)})", wanted).rowcount  # noqa: S608
    return count, most

"""Pruning: what nobody needs any more goes, an incarnation whole or not at all.

An incarnation that is pruned keeps its header: it says for ever what was in force when, and what it was
made from. Of its assets those versions go that no incarnation that is kept shows.

Invariants kept here: I2 (an incarnation that is kept reads as on its first day), I12 (what is pinned,
applied or under way is never removed).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from lehr.model.asset import Partition
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.store.writes import Prune, Pruned

# Incarnations that somebody needs, whatever their age. A pin that was lifted or has run out since
# `before` still counts: a turn that began under it may be under way.
_NEEDED = f"""
    SELECT json_extract(CAST(body AS TEXT), '$.incarnation') FROM control
    WHERE partition = :partition AND json_extract(CAST(body AS TEXT), '$.incarnation') IS NOT NULL
      AND (lifted_at IS NULL OR lifted_at > :before) AND (expires_at IS NULL OR expires_at > :before)
  UNION ALL
    SELECT json_extract(CAST(body AS TEXT), '$.content') FROM operation
    WHERE partition = :partition AND open = 1
  UNION ALL
    SELECT json_extract(CAST(body AS TEXT), '$.governing') FROM operation
    WHERE partition = :partition AND open = 1
  UNION ALL
    SELECT json_extract(CAST(l.body AS TEXT), '$.content') FROM ledger l
    LEFT JOIN asset_current c ON c.partition = l.partition AND c.id = l.asset
    WHERE l.partition = :partition
      AND (c.id IS NOT NULL OR json_extract(CAST(l.body AS TEXT), '$.goal') != '{Goal.ABSENT}')
"""  # noqa: S608 - made of our own constants
_PRUNABLE = f"""
    SELECT sequence,
           json_extract(CAST(header AS TEXT), '$.added') + json_extract(CAST(header AS TEXT), '$.changed')
           + json_extract(CAST(header AS TEXT), '$.removed')
    FROM incarnation INDEXED BY incarnation_kept
    WHERE partition = :partition AND pruned = 0
      AND sequence <= (SELECT newest FROM partition WHERE name = :partition) - :keep
      AND json_extract(CAST(header AS TEXT), '$.created_at') < :before
      AND sequence NOT IN ({_NEEDED})
      -- The last that holds an asset which is gone from intent, and not turned down yet.
      AND NOT EXISTS (
        SELECT 1 FROM asset_version t INDEXED BY asset_version_sequence
        WHERE t.partition = :partition AND t.sequence = incarnation.sequence + 1 AND t.digest IS NULL
          AND NOT EXISTS (SELECT 1 FROM asset_version n
                          WHERE n.partition = t.partition AND n.id = t.id AND n.sequence > t.sequence)
          AND EXISTS (SELECT 1 FROM standing s WHERE s.partition = t.partition AND s.asset = t.id
                      AND json_extract(CAST(s.condition AS TEXT), '$.status') != '{Status.TURNED_DOWN}'))
    ORDER BY sequence
"""  # noqa: S608
# Versions between two incarnations that are kept (`low`, or 0, and `high`), which another one has replaced
# at `high`. Looked for from those that replaced them: `first` is the first that was not pruned before.
_REPLACED = """
    SELECT DISTINCT v.number, v.id, v.sequence FROM asset_version w INDEXED BY asset_version_sequence
    CROSS JOIN asset_version v INDEXED BY asset_version_key
      ON v.partition = w.partition AND v.id = w.id AND v.sequence > :low AND v.sequence < w.sequence
    WHERE w.partition = :partition AND w.sequence > :first AND w.sequence <= :high
"""
_OLD_DECISIONS = """
    SELECT number FROM decision d WHERE partition = :partition AND number > :above AND number <= :most
      AND json_extract(CAST(body AS TEXT), '$.at') < :before
      AND EXISTS (SELECT 1 FROM decision n
                  WHERE n.partition = d.partition AND n.asset = d.asset AND n.number > d.number)
      AND NOT EXISTS (SELECT 1 FROM operation o INDEXED BY operation_open
                      WHERE o.partition = d.partition AND o.asset = d.asset AND o.open = 1
                        AND o.id = json_extract(CAST(d.body AS TEXT), '$.operation'))
"""
_OLD_OPERATIONS = """
    SELECT id FROM operation o WHERE partition = :partition AND id > :above AND id <= :most AND open = 0
      AND json_extract(CAST(body AS TEXT), '$.ended_at') < :before
      AND EXISTS (SELECT 1 FROM operation n
                  WHERE n.partition = o.partition AND n.asset = o.asset AND n.id > o.id)
      AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.partition = o.partition AND l.asset = o.asset
                      AND json_extract(CAST(l.body AS TEXT), '$.operation') = o.id)
      AND NOT EXISTS (SELECT 1 FROM reservation r WHERE r.operation = o.id)
"""


def prune(db: sqlite3.Connection, write: Prune) -> Pruned:
    """Remove a share of what `write` asks for."""
    if not (write.decisions_above or write.operations_above):
        sequences = list(_share(db, write))
        if sequences:
            versions = _prune_incarnations(db, write.partition, sequences)
            return Pruned(incarnations=len(sequences), versions=versions, rest=write)
    decisions, last_decision = _remove_decisions(db, write)
    operations, last_operation = _remove_operations(db, write)
    rest = replace(write, decisions_above=last_decision, operations_above=last_operation)
    at_end = (last_decision, last_operation) == (write.decisions_above, write.operations_above)
    return Pruned(decisions=decisions, operations=operations, rest=None if at_end else rest)


def prunable(db: sqlite3.Connection, write: Prune) -> Pruned:
    """What `write` and all that is left after it would remove."""
    wanted = _wanted(write)
    sequences = [sequence for sequence, _changes in db.execute(_PRUNABLE, wanted)]
    versions = sum(
        db.execute(f"SELECT count(*) FROM ({_REPLACED})", gap).fetchone()[0]  # noqa: S608
        for gap in _gaps(db, write.partition, sequences)
    )
    wanted |= {"above": 0, "most": 2**63 - 1}
    decisions = db.execute(f"SELECT count(*) FROM ({_OLD_DECISIONS})", wanted).fetchone()[0]  # noqa: S608
    wanted |= {"above": "", "most": "~"}
    operations = db.execute(f"SELECT count(*) FROM ({_OLD_OPERATIONS})", wanted).fetchone()[0]  # noqa: S608
    return Pruned(len(sequences), versions, decisions, operations)


def is_pruned(db: sqlite3.Connection, partition: Partition, sequence: int) -> bool:
    """Whether an incarnation was pruned."""
    row = db.execute(
        "SELECT pruned FROM incarnation WHERE partition = ? AND sequence = ?", (partition, sequence)
    ).fetchone()
    return row is not None and row[0] == 1


def _wanted(write: Prune) -> dict[str, Any]:
    # The newest is what is enforced: it stays, whatever somebody asks for.
    return {"partition": write.partition, "keep": max(write.keep, 1), "before": write.before}


def _share(db: sqlite3.Connection, write: Prune) -> Iterator[int]:
    """The oldest incarnations that may go, as many as hold about `write.most` versions."""
    held = 0
    for sequence, changes in db.execute(_PRUNABLE, _wanted(write)):
        yield sequence
        held += changes
        if held >= write.most:
            return


def _gaps(db: sqlite3.Connection, partition: Partition, sequences: list[int]) -> Iterator[dict[str, Any]]:
    """Where `sequences` lie between incarnations that are kept, as `_REPLACED` asks for it."""
    going = set(sequences)
    kept = [
        sequence
        for (sequence,) in db.execute(
            "SELECT sequence FROM incarnation INDEXED BY incarnation_kept"
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


def _prune_incarnations(db: sqlite3.Connection, partition: Partition, sequences: list[int]) -> int:
    """Returns how many versions are gone."""
    gaps = list(_gaps(db, partition, sequences))
    db.executemany(
        "UPDATE incarnation SET pruned = 1 WHERE partition = ? AND sequence = ?",
        ((partition, sequence) for sequence in sequences),
    )
    return sum(_remove_replaced(db, partition, gap) for gap in gaps)


def _remove_replaced(db: sqlite3.Connection, partition: Partition, gap: dict[str, Any]) -> int:
    gone = db.execute(_REPLACED, gap).fetchall()
    db.executemany(
        "DELETE FROM mention WHERE partition = ?1 AND source = ?2 AND until > ?3 AND until <="
        " (SELECT min(sequence) FROM asset_version WHERE partition = ?1 AND id = ?2 AND sequence > ?3)",
        ((partition, id, sequence) for _number, id, sequence in gone),
    )
    db.executemany("DELETE FROM asset_version WHERE number = ?", ((number,) for number, _id, _at in gone))
    # A tombstone with nothing before it says nothing.
    db.executemany(
        "DELETE FROM asset_version WHERE number ="
        " (SELECT number FROM asset_version WHERE partition = ? AND id = ? ORDER BY sequence LIMIT 1)"
        " AND digest IS NULL",
        {(partition, id) for _number, id, _at in gone},
    )
    return len(gone)


def _remove_decisions(db: sqlite3.Connection, write: Prune) -> tuple[int, int]:
    """Returns how many are gone, and the number up to which all were looked at."""
    most = db.execute(
        "SELECT max(number) FROM (SELECT number FROM decision WHERE number > ? ORDER BY number LIMIT ?)",
        (write.decisions_above, write.most),
    ).fetchone()[0]
    if most is None:
        return 0, write.decisions_above
    wanted = {**_wanted(write), "above": write.decisions_above, "most": most}
    count = db.execute(f"DELETE FROM decision WHERE number IN ({_OLD_DECISIONS})", wanted).rowcount  # noqa: S608
    return count, int(most)


def _remove_operations(db: sqlite3.Connection, write: Prune) -> tuple[int, str]:
    """The same of operations."""
    most = db.execute(
        "SELECT max(id) FROM (SELECT id FROM operation WHERE id > ? ORDER BY id LIMIT ?)",
        (write.operations_above, write.most),
    ).fetchone()[0]
    if most is None:
        return 0, write.operations_above
    wanted = {**_wanted(write), "above": write.operations_above, "most": most}
    count = db.execute(f"DELETE FROM operation WHERE id IN ({_OLD_OPERATIONS})", wanted).rowcount  # noqa: S608
    return count, str(most)

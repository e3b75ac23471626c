"""Evidence of rollouts: appended together with releases, and read in the order in which it was written."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from lehr.model.asset import Partition
from lehr.model.evidence import Evidence
from lehr.model.feed import ChangeKind
from lehr.store.sql.session import Session
from lehr.store.sql.tables import EVIDENCE

_AFTER = f"SELECT {EVIDENCE.names()} FROM evidence WHERE partition = ? AND number > ? ORDER BY number LIMIT ?"  # noqa: S608

_decode = msgspec.json.Decoder(Evidence).decode


def append_evidence(db: Session, found: Iterable[Evidence]) -> None:
    """Append evidence, in its order."""
    for item in found:
        db.noted.add(item.partition, ChangeKind.ROLLOUT, item.at, item.policy, item.rollout)
        number, body = db.next_number("evidence"), msgspec.json.encode(replace(item, number=0))
        db.execute(
            EVIDENCE.insert, EVIDENCE.sealed(number, item.partition, item.policy, item.rollout, item.at, body)
        )


def evidence(db: Session, partition: Partition, after: int, limit: int) -> list[Evidence]:
    """The first evidence after a number, in order.

    Raises:
        DamagedError: a row is damaged.
    """
    rows = db.execute(_AFTER, (partition, after, limit)).fetchall()
    return [replace(_decode(row[5]), number=row[0]) for row in EVIDENCE.read_all(rows)]


def old_evidence(db: Session) -> str:
    """Evidence of rollouts about which nothing was written for long, except the last one of each policy.

    What began and ended them and was commanded stays: it shows which content has failed.
    """
    return f"""
    SELECT number FROM evidence WHERE partition = :partition AND rollout IN (
        SELECT rollout FROM evidence e WHERE partition = :partition
        GROUP BY policy, rollout
        HAVING max(at) < :before AND max(number) < (
            SELECT max(number) FROM evidence n WHERE n.partition = :partition AND n.policy = e.policy))
      AND {db.text("body", "fact.fact")} NOT IN ('begun', 'ended', 'commanded')
"""  # noqa: S608 - our own names

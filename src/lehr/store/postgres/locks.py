"""Locks that serialize commits that could depend on the same rows. Pure.

Before it reads anything, each commit locks the partitions that it writes and the limits of which it takes a
share, always in the same order, so that no two deadlock. The rows that it then reads are committed and do not
change until it ends. Commits of different partitions do not wait for each other (invariant I9).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from lehr.model.writes import (
    Admit,
    Adopt,
    Import,
    Publish,
    RecordAttempt,
    RecordDecision,
    Reschedule,
    SetControl,
    Write,
)

_LIMITS = 256
"""Number of locks that limits share: a server has a bounded number."""


def lock_key(name: str) -> int:
    """The number of one of our locks in PostgreSQL."""
    return int.from_bytes(hashlib.blake2b(f"lehr {name}".encode(), digest_size=8).digest(), signed=True)


def keys_of(schema: str, writes: Sequence[Write]) -> list[int]:
    """The locks of a commit, in the order in which they are taken."""
    return sorted({lock_key(f"{schema} {name}") for write in writes for name in _names(write)})


def _names(write: Write) -> Iterator[str]:
    match write:
        case Publish():
            yield f"partition {write.candidate.partition}"
        case RecordAttempt():
            yield f"partition {write.attempt.partition}"
        case Admit():
            yield f"partition {write.operation.partition}"
            for item in write.reservations:
                yield f"limit {lock_key(item.key) % _LIMITS}"
        case Adopt():
            yield f"partition {write.ledger.partition}"
        case RecordDecision():
            yield f"partition {write.decision.partition}"
        case Reschedule():
            yield f"partition {write.key.partition}"
        case SetControl():
            yield f"partition {write.control.partition}"
        case Import():
            yield "imported"
        case _:
            yield f"partition {write.partition}"

"""Every row is as it was written: also values that nothing else could contradict."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.model.damage import Advance, Damage
from lehr.store.sql.session import Session
from lehr.store.sql.tables import MENTION_END, Table


def check(db: Session, table: Table, advance: Advance) -> Iterator[Damage]:
    """The rows of one table that do not match their checksums."""
    # A reference that has not ended has nothing to cover.
    where = " WHERE until IS NOT NULL OR until_checksum IS NOT NULL" if table is MENTION_END else ""
    for row in db.stream(f"SELECT {table.names()} FROM {table.name}{where}"):  # noqa: S608 - our own names
        advance(1)
        if not table.is_intact(row):
            error = table.damaged(row[:-1])
            yield Damage(error.what, error.why, error.fix)

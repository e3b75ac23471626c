"""State files that a test has changed as Lehr itself would have written them."""

from __future__ import annotations

import sqlite3

from lehr.store.sql.tables import MENTION_END, TABLES


def seal(db: sqlite3.Connection) -> None:
    """Give every row the checksums of what it says now."""
    for table in TABLES:
        if table is MENTION_END:
            continue
        rows = db.execute(f"SELECT {table.names()} FROM {table.name}").fetchall()
        matching = " AND ".join(f"{name} IS ?" for name in table.columns)
        for *values, _checksum in rows:
            db.execute(
                f"UPDATE {table.name} SET {table.checksum} = ? WHERE {matching}",
                (table.sealed(*values)[-1], *values),
            )

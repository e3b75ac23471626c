"""SQLite's own integrity check of a file's pages and indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from lehr.model.damage import RESTORE, Damage

_PROBLEMS = 1000
"""Beyond this number, further errors add nothing new."""


def structure(db: sqlite3.Connection) -> Iterator[Damage]:
    """Damage of the file itself."""
    try:
        for (said,) in db.execute(f"PRAGMA integrity_check({_PROBLEMS})"):
            if said != "ok":
                yield Damage("the state file is damaged", said.replace("\n", "; "), RESTORE)
    except sqlite3.Error as error:
        yield Damage("the structure of the file could not be looked at", str(error), RESTORE)

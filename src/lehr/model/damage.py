"""Damage of the store: what a check finds, and what reading raises."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lehr.base.errors import StalledError
from lehr.model.asset import Partition
from lehr.model.types import Registry

TypesOf = Callable[[Partition], Registry | None]
"""The types that a partition's newest incarnation is made of; None when they cannot be known."""

Advance = Callable[[int], None]
"""Called with each share of the work that is done, in rows."""

RESTORE = "restore the state from a backup; without one, move it away: Lehr starts over from git"
"""How to fix lost content."""

REBUILD = "publish a change of it, which rewrites derived data; or restore the state from a backup"
"""How to fix an index that does not match the assets."""


class Damage(msgspec.Struct, frozen=True):
    """One record that is not as it was written, or contradicts another.

    Attributes:
        what: the damage, naming the row.
        why: what was found, and what was expected.
        fix: what to do about it.
    """

    what: str
    why: str
    fix: str = RESTORE


class DamagedError(StalledError):
    """A row is not as it was written. Its content is unknown, so it is not used.

    Attributes:
        row: its name; `table`: where it is.
    """

    def __init__(self, row: str, table: str, fix: str = RESTORE, place: str = "", why: str = "") -> None:
        self.row = row
        self.table = table
        where = f" in {place}" if place else ""
        why = why or f"its row in table {table} does not match its checksum"
        super().__init__(f"{row} is damaged{where}", code="MOD101", why=why, fix=fix)

    def at(self, place: str) -> DamagedError:
        """The same, of the store at `place`."""
        return DamagedError(self.row, self.table, self.fix, place, self.why)

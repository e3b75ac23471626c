"""A schema as a database has it, or is to have it: values in the database's own words."""

from __future__ import annotations

import msgspec

SERIAL = "serial"
"""The default of a column whose number the database gives, by a sequence or as identity."""


class ColumnState(msgspec.Struct, frozen=True):
    """A column.

    Attributes:
        type: as the database prints it.
        default: SQL, in one spelling for each value; `SERIAL`; or None.
    """

    type: str
    nullable: bool = True
    default: str | None = None

    def __str__(self) -> str:
        default = "" if self.default is None else f" default {self.default}"
        return f"{self.type}{'' if self.nullable else ' not null'}{default}"


class IndexState(msgspec.Struct, frozen=True):
    """An index.

    Attributes:
        valid: False for what is left of a build that did not end.
        special: True when it is of a kind that intent cannot express, over expressions or some
            rows, say.
        constraint: True when it is there for a constraint, which alone can take it away.
    """

    columns: tuple[str, ...]
    unique: bool = False
    valid: bool = True
    special: bool = False
    constraint: bool = False

    def __str__(self) -> str:
        kind = "special " if self.special else "unique " if self.unique else ""
        valid = "" if self.valid else ", left by a build that did not end"
        return f"{kind}on {', '.join(self.columns) or 'expressions'}{valid}"


class TableState(msgspec.Struct, frozen=True):
    """A table. Columns in their order; nothing of its rows."""

    columns: dict[str, ColumnState]
    primary_key: tuple[str, ...] = ()
    indexes: dict[str, IndexState] = {}


class Catalogue(msgspec.Struct, frozen=True):
    """What counts of a database.

    Attributes:
        schema: name of the schema; None if there is none.
        version: 0 if none is kept.
        tables: by name; of what is observed only those that intent declares.
        unwanted: names of tables that are to be dropped.
    """

    schema: str | None
    version: int
    tables: dict[str, TableState] = {}
    unwanted: tuple[str, ...] = ()

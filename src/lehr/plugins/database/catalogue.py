"""A schema, observed or intended: values in the database's own words."""

from __future__ import annotations

import msgspec

SERIAL = "serial"
"""The default of a column that the database numbers, by a sequence or as identity."""


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
        valid: False for the remains of a build that did not finish.
        special: True if intent cannot express it, such as one over expressions or some rows.
        constraint: True if it belongs to a constraint, and only goes with it.
    """

    columns: tuple[str, ...]
    unique: bool = False
    valid: bool = True
    special: bool = False
    constraint: bool = False

    def __str__(self) -> str:
        kind = "special " if self.special else "unique " if self.unique else ""
        valid = "" if self.valid else ", left by an unfinished build"
        return f"{kind}on {', '.join(self.columns) or 'expressions'}{valid}"


class TableState(msgspec.Struct, frozen=True):
    """A table. Columns in their order; nothing of its rows."""

    columns: dict[str, ColumnState]
    primary_key: tuple[str, ...] = ()
    indexes: dict[str, IndexState] = {}


class Catalogue(msgspec.Struct, frozen=True):
    """The relevant part of a database.

    Attributes:
        schema: name of the schema; None if it does not exist.
        version: 0 if none is kept.
        tables: by name; of the observed ones only those that intent declares.
        unwanted: names of tables to drop.
    """

    schema: str | None
    version: int
    tables: dict[str, TableState] = {}
    unwanted: tuple[str, ...] = ()

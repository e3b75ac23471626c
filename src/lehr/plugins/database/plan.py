"""Differences between two catalogues, and the edits that fix them, in order. Pure.

All edits except one kind go into one transaction, including destructive ones, so that it applies this diff or
nothing. The exception is an index over a table in use: it is built concurrently, one at a time, after the
transaction.

The version never claims more than exists: it is lowered with the first edits and raised with the
last.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from lehr.base.digest import digest, short
from lehr.model.diff import Change, Diff, Effects, bounded
from lehr.plugins.database.catalogue import SERIAL, Catalogue, ColumnState, IndexState, TableState

_LONGEST_TEXT = 120


class CreateSchema(msgspec.Struct, frozen=True):
    """Create the schema."""


class CreateTable(msgspec.Struct, frozen=True):
    """Create a table, without its indexes."""

    table: str
    state: TableState


class DropTable(msgspec.Struct, frozen=True):
    """Drop a table with its rows."""

    table: str


class ColumnEdit(msgspec.Struct, frozen=True):
    """An edit of one column."""

    table: str
    column: str


class AddColumn(ColumnEdit, frozen=True):
    """Add a column."""

    state: ColumnState


class DropColumn(ColumnEdit, frozen=True):
    """Drop a column with its values."""


class SetType(ColumnEdit, frozen=True):
    """Change a column's type; its values are cast."""

    type: str


class SetNullable(ColumnEdit, frozen=True):
    """Allow or forbid NULL in a column."""

    nullable: bool


class SetDefault(ColumnEdit, frozen=True):
    """Set a column's default for new rows."""

    default: str


class DropDefault(ColumnEdit, frozen=True):
    """Drop a column's default for new rows."""


class CreateIndex(msgspec.Struct, frozen=True):
    """Create an index, in the transaction or concurrently."""

    table: str
    index: str
    state: IndexState
    concurrently: bool = False


class DropIndex(msgspec.Struct, frozen=True):
    """Drop an index."""

    table: str
    index: str


class SetVersion(msgspec.Struct, frozen=True):
    """Store the version in the database."""

    version: int


Edit = CreateSchema | CreateTable | DropTable | ColumnEdit | CreateIndex | DropIndex | SetVersion


class SchemaPlan(msgspec.Struct, frozen=True):
    """A diff, and how to carry it out.

    Attributes:
        transaction: edits carried out together, before anything else.
        builds: indexes built concurrently, after `transaction`.
        obstacle: a change that cannot be carried out, and how to fix that; None for none.
    """

    diff: Diff
    transaction: tuple[Edit, ...] = ()
    builds: tuple[CreateIndex, ...] = ()
    obstacle: tuple[str, str] | None = None


class _Finding(msgspec.Struct, frozen=True):
    """One difference and its consequences."""

    path: str
    intended: object
    observed: object
    edits: tuple[Edit, ...] = ()
    destructive: bool = False
    disruptive: bool = False
    fix: str = ""


def plan(intended: Catalogue, observed: Catalogue) -> SchemaPlan:
    """Plan how `observed` becomes `intended`. Both catalogues use the same database's words."""
    found = list(_findings(intended, observed))
    edits = [edit for finding in found for edit in finding.edits]
    builds = tuple(edit for edit in edits if isinstance(edit, CreateIndex) and edit.concurrently)
    transaction = sorted((edit for edit in edits if edit not in builds), key=_place)
    changes = [Change(item.path, _short(item.intended), _short(item.observed)) for item in found]
    if intended.version != observed.version:
        changes.append(Change("version", intended.version, observed.version))
        if intended.version < observed.version or not builds:
            transaction.append(SetVersion(intended.version))
    effects = Effects(
        version_from=str(observed.version),
        version_to=str(intended.version),
        destructive=any(item.destructive for item in found),
        disruptive=any(item.disruptive for item in found),
    )
    obstacle = next(((item.path, item.fix) for item in found if item.fix), None)
    return SchemaPlan(Diff(bounded(changes, "tables"), effects), tuple(transaction), builds, obstacle)


def missing_database(name: str, version: int) -> Diff:
    """The diff of a database that does not exist yet."""
    changes = (Change("database", name, None), Change("version", version, None))
    return Diff(changes, Effects(version_from="0", version_to=str(version)))


_ORDER: tuple[type[Edit], ...] = (
    CreateSchema,
    DropIndex,  # before its columns: SQLite drops no column that has an index
    CreateTable,
    AddColumn,
    DropDefault,  # one of the old type may have no cast to the new one
    SetType,
    SetDefault,
    SetNullable,
    DropColumn,
    DropTable,
    CreateIndex,
    SetVersion,
)


def _place(edit: Edit) -> int:
    return _ORDER.index(type(edit))


def _findings(intended: Catalogue, observed: Catalogue) -> Iterator[_Finding]:
    if intended.schema != observed.schema:
        yield _Finding("schema", intended.schema, observed.schema, (CreateSchema(),))
    for name in sorted({*intended.tables, *intended.unwanted}):
        before = observed.tables.get(name)
        after = intended.tables.get(name)
        if after is None and before is not None:
            yield _Finding(f"tables/{name}", None, _listed(before), (DropTable(name),), destructive=True)
        elif after is not None and before is None:
            indexes = (CreateIndex(name, key, index) for key, index in after.indexes.items())
            yield _Finding(f"tables/{name}", _listed(after), None, (CreateTable(name, after), *indexes))
        elif after is not None and before is not None:
            yield from _in_table(name, after, before)


def _in_table(table: str, after: TableState, before: TableState) -> Iterator[_Finding]:
    for name in sorted(after.columns.keys() | before.columns.keys()):
        new, old = after.columns.get(name), before.columns.get(name)
        path = f"tables/{table}/columns/{name}"
        if new is None:
            yield _Finding(path, None, str(old), (DropColumn(table, name),), destructive=True)
        elif old is None:
            serial = new.default == SERIAL
            yield _Finding(path, str(new), None, (AddColumn(table, name, new),), disruptive=serial)
        else:
            yield from _in_column(table, name, new, old)
    if after.primary_key != before.primary_key:
        intended, observed = ", ".join(after.primary_key), ", ".join(before.primary_key)
        fix = "change the primary key by hand, or declare the existing one"
        yield _Finding(f"tables/{table}/primary_key", intended or None, observed or None, fix=fix)
    yield from _in_indexes(table, after, before)


def _in_column(table: str, name: str, new: ColumnState, old: ColumnState) -> Iterator[_Finding]:
    path = f"tables/{table}/columns/{name}"
    drop, put = DropDefault(table, name), SetDefault(table, name, new.default or "")
    if new.type != old.type:
        edits: tuple[Edit, ...] = (SetType(table, name, new.type),)
        if new.default == old.default and new.default not in (None, SERIAL):
            edits = (drop, *edits, put)
        kind = conversion(old.type, new.type)
        lossy, free = kind is Conversion.LOSSY, kind is Conversion.FREE
        yield _Finding(f"{path}/type", new.type, old.type, edits, lossy, not free)
    if new.nullable != old.nullable:
        edits = (SetNullable(table, name, new.nullable),)
        # Every row is checked while the table is locked.
        yield _Finding(f"{path}/nullable", new.nullable, old.nullable, edits, disruptive=not new.nullable)
    if new.default != old.default:
        serial = SERIAL in (new.default, old.default)
        fix = "add another column of that type, fill it, and drop this one" if serial else ""
        edits = (drop,) if new.default is None else (put,) if old.default is None else (drop, put)
        yield _Finding(f"{path}/default", new.default, old.default, () if serial else edits, fix=fix)


def _in_indexes(table: str, after: TableState, before: TableState) -> Iterator[_Finding]:
    for name in sorted(after.indexes.keys() | before.indexes.keys()):
        new, old = after.indexes.get(name), before.indexes.get(name)
        path = f"tables/{table}/indexes/{name}"
        if new is None and old is not None:
            if not old.special and not old.constraint:
                yield _Finding(path, None, str(old), (DropIndex(table, name),), destructive=True)
        elif new is not None and old is None:
            edits: tuple[Edit, ...] = (CreateIndex(table, name, new, concurrently=True),)
            yield _Finding(path, str(new), None, edits)
        elif new is not None and old is not None and new != replace(old, constraint=False):
            # An index can be rebuilt, but a good one is missing until then.
            edits = (DropIndex(table, name), CreateIndex(table, name, new, concurrently=True))
            yield _Finding(path, str(new), str(old), edits, old.special, old.valid)


def _listed(table: TableState) -> str:
    return "columns " + ", ".join(table.columns)


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}... ({short(digest(value))})"
    return value


# --- cost of changing the type of a column that holds rows -----------------------
# Type names are the database's own (`character varying(20)`). A change that is not known to keep every value
# counts as destructive.

_PARAMETERS = re.compile(r"(?P<name>[^(]+?)(\((?P<values>[\d,]+)\))?")
_WHOLE = ("smallint", "integer", "bigint")


class Conversion(enum.Enum):
    """FREE: the rows stay as they are. REWRITE: every row is rewritten with the same value.

    LOSSY: values may be cut off or may not fit.
    """

    FREE = "free"
    REWRITE = "rewrite"
    LOSSY = "lossy"


def conversion(observed: str, intended: str) -> Conversion:
    """The effect of changing a column's type on its values."""
    before, after = _parsed(observed), _parsed(intended)
    if before is None or after is None:
        return Conversion.LOSSY
    (old, had), (new, has) = before, after
    if old in _WHOLE and not had:
        if new in _WHOLE and _WHOLE.index(new) >= _WHOLE.index(old):
            return Conversion.REWRITE
        if new == "numeric" and not has:
            return Conversion.REWRITE
    if (old, new) == ("real", "double precision"):
        return Conversion.REWRITE
    if _widens_text(old, had, new, has) or _widens_numeric(old, had, new, has):
        return Conversion.FREE
    return Conversion.LOSSY


def _widens_text(old: str, had: list[int], new: str, has: list[int]) -> bool:
    texts = ("character varying", "text")
    if old not in texts or new not in texts:
        return False
    return not has or (bool(had) and has[0] >= had[0])


def _widens_numeric(old: str, had: list[int], new: str, has: list[int]) -> bool:
    if old != "numeric" or new != "numeric":
        return False
    return not has or (len(had) == len(has) == 2 and has[0] >= had[0] and has[1] == had[1])


def _parsed(type: str) -> tuple[str, list[int]] | None:
    match = _PARAMETERS.fullmatch(type)
    if match is None:
        return None
    values = match["values"]
    return match["name"], [int(value) for value in values.split(",")] if values else []

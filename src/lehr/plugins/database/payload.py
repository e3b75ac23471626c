"""The payload of `lehr.DatabaseSchema`, and its checks before any query.

Names, types and defaults become part of SQL, so each has a small grammar of its own; nothing that
could end a name, a type or a literal gets through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec

from lehr.model.secret import Secret
from lehr.model.types import AssetType
from lehr.plugins.database.connection import Address, SqliteAddress, parse
from lehr.sdk.secrets import SecretValue

DATABASE_SCHEMA = "lehr.DatabaseSchema"

VERSION_TABLE = "lehr_schema"
"""The table in which PostgreSQL keeps the version."""

_WORDS = r"[A-Za-z_][A-Za-z0-9_]*( [A-Za-z_][A-Za-z0-9_]*)*"
_ARGUMENTS = r" ?\( ?[A-Za-z0-9_]+( ?, ?[A-Za-z0-9_]+)* ?\)"
_TYPE = re.compile(rf"{_WORDS}({_ARGUMENTS}( {_WORDS})?)?( ?\[\])*")
_ENDS_TYPE = re.compile(
    r"as|autoincrement|check|collate|constraint|default|deferrable|exclude|foreign|generated|identity|key|"
    r"not|null|on|primary|references|set|unique"
)
"""Words that may follow a type in SQL: SQLite would parse them as such."""

_LITERAL = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?|'([^'\\\x00-\x1f\x7f]|'')*'|true|false|null", re.I)
_FUNCTION = re.compile(r"now\(\)|current_timestamp|current_date|gen_random_uuid\(\)", re.I)
_MOMENT = re.compile(r"'\s*(now|today|tomorrow|yesterday)\b.*'", re.I)

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}(?!\n)$")]
TypeName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Default = Annotated[str, msgspec.Meta(max_length=200)] | int | float | bool | None


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column.

    Attributes:
        type: as the database calls it (`text`, `varchar(20)`, `timestamptz`), or `serial`,
            `smallserial` or `bigserial` for a number that the database gives.
        nullable: whether it may be NULL. Columns of the primary key never are.
        default: a number, true or false, text as SQL quotes it (`"'none'"`), `now()`,
            `current_date` or `gen_random_uuid()`.
    """

    type: TypeName
    nullable: bool = True
    default: Default = None

    def __post_init__(self) -> None:
        words = re.findall(r"[a-z_]+", self.type.lower())
        if not _TYPE.fullmatch(self.type) or any(map(_ENDS_TYPE.fullmatch, words)):
            raise ValueError(f"{self.type!r} is not a valid type: use words, numbers in parentheses, and []")
        expression = self.expression
        if expression is not None and self.serial:
            raise ValueError(f"a column of type {self.type} cannot have another default")
        if not is_default(expression or "0"):
            raise ValueError(
                f"default {expression!r} is not supported; write a number, true, false, quoted text such as "
                "\"'none'\", now(), current_date or gen_random_uuid()"
            )
        if words[0].startswith(("date", "time")) and _MOMENT.fullmatch(expression or ""):
            raise ValueError(
                f"default {expression} would be evaluated once, when the column is created; write now()"
            )

    @property
    def serial(self) -> bool:
        """True when the database provides the value."""
        return self.type.lower() in ("serial", "smallserial", "bigserial")

    @property
    def expression(self) -> str | None:
        """The default as SQL; None for none."""
        if self.default is None or str(self.default).lower() == "null":
            return None
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An index over columns, in ascending order.

    Attributes:
        columns: their names, in order.
        unique: whether two rows may not have the same values in them.
    """

    columns: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=32)]
    unique: bool = False


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table.

    Attributes:
        columns: by name. A column that the database has but that is not listed here will be dropped, which
            needs approval.
        primary_key: names of columns, in order; created with the table and never changed.
        indexes: by name.
        absent: true drops the whole table, which needs approval.
    """

    columns: dict[Name, Column] = {}
    primary_key: Annotated[list[Name], msgspec.Meta(max_length=32)] = []
    indexes: dict[Name, Index] = {}
    absent: bool = False

    def __post_init__(self) -> None:
        if self.absent == bool(self.columns):
            raise ValueError("a table must have either columns or `absent: true`")
        if self.absent and (self.primary_key or self.indexes):
            raise ValueError("a table with `absent: true` cannot have anything else")
        _once("column", self.columns)
        _once("column of the primary key", self.primary_key)
        lists = {
            "primary_key": self.primary_key,
            **{f"index {k}": v.columns for k, v in self.indexes.items()},
        }
        for what, names in lists.items():
            for name in names:
                if name not in self.columns:
                    raise ValueError(f"{what} names {name}, which is not a column of the table")


class DatabaseSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tables of one schema of a database.

    Attributes:
        connection: `postgresql://[user@][host][:port]/database[?...]` or `sqlite:PATH`, without a
            password. A host with a slash is the directory of a Unix socket. Relative paths are
            relative to the base directory of the deployment.
        password: where the password is kept, for PostgreSQL.
        version: the version that other assets require; raise it with each change that they rely on. 0, the
            value if no asset requires a version, is not stored.
        schema: PostgreSQL's schema; SQLite has none.
        tables: by name. Tables that are not listed are ignored.
        create_database: create the database, or SQLite's file, if it does not exist.
    """

    connection: str
    password: Secret | None = None
    version: Annotated[int, msgspec.Meta(ge=0, le=2_147_483_647)]
    schema: Name = "public"
    tables: dict[Name, Table] = {}
    create_database: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.address, SqliteAddress) and self.schema != "public":
            raise ValueError("SQLite has no schemas: omit `schema`")
        if isinstance(self.address, SqliteAddress) and self.password is not None:
            raise ValueError("SQLite has no passwords: omit `password`")
        indexes = [name for table in self.tables.values() for name in table.indexes]
        _once("table or index", [*self.tables, *indexes])
        for name in (*self.tables, *indexes):
            if name.lower() == VERSION_TABLE or name.lower().startswith(("pg_", "sqlite_")):
                raise ValueError(f"{name} is a reserved name of Lehr or the database")

    @property
    def address(self) -> Address:
        """Where the database is."""
        return parse(self.connection)


class Intended(NamedTuple):
    """An intended schema, and the password to connect with."""

    schema: DatabaseSchema
    password: SecretValue | None = None


def is_default(text: str) -> bool:
    """True when `text` is a default that the grammar allows."""
    return is_literal(text) or _FUNCTION.fullmatch(text) is not None


def is_literal(text: str) -> bool:
    """True when `text` is an SQL literal without side effects: evaluating it is harmless."""
    return _LITERAL.fullmatch(text) is not None


def _once(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        # SQLite ignores case.
        if name.lower() in seen:
            raise ValueError(f"{what} {name} is listed twice")
        seen.add(name.lower())


def _claims(schema: DatabaseSchema) -> Iterator[str]:
    yield f"database:{schema.address.place}/{schema.schema}"


TYPES = (AssetType(DATABASE_SCHEMA, DatabaseSchema, claims=_claims),)

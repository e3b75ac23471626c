"""A database: its tables, their first rows and, if Lehr runs it, its server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.pointers import escaped
from lehr.model.addons import AFFECTED_CLUSTERS, DEPENDS_ON, OWNER
from lehr.model.secret import Secret
from lehr.sdk.generator import DeclaredAsset, SourceFile, asset
from lehr.service_models.model_input import InputProblem, read, refused
from lehr.service_models.web_service import Name, Port, Words

NOUN = "a database"

_COLUMNS = re.compile(r"\{columns\.([^{}]+)\}")

Key = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
TypeName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_ ]*(\([A-Za-z0-9_, ]+\)[a-z ]*)?( ?\[\])*$")
]


class DatabaseColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column, as `lehr.DatabaseSchema` has it."""

    type: TypeName
    nullable: bool = True
    default: str | int | float | bool | None = None


class DatabaseIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An index, as `lehr.DatabaseSchema` has it."""

    columns: Words
    unique: bool = False


class DatabaseTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table, as `lehr.DatabaseSchema` has it."""

    columns: dict[Key, DatabaseColumn] = {}
    primary_key: list[str] = []
    indexes: dict[Key, DatabaseIndex] = {}
    absent: bool = False


class DatabaseServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A server that Lehr runs.

    Attributes:
        command: the program; `{port}` is replaced with the port.
        port: the port that it listens on.
        environment: variables; references to secrets among them.
        restart_on: ids of assets whose change restarts it.
    """

    command: Words
    port: Port
    environment: dict[str, str | Secret] = {}
    restart_on: list[str] = []


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the rows of a table are created, once the table exists.

    Attributes:
        check: a program that exits with 0 if the rows are there, and with 1 if not.
        apply: a program that creates them. In both, `{connection}` is replaced with the connection of the
            database, and `{columns.TABLE}` with the columns of a table, separated by commas.
        needs: ids of assets that are pushed first.
    """

    check: Words
    apply: Words
    needs: list[str] = []


class Database(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A database with its schema, its first rows and, optionally, its server.

    Attributes:
        name: the first part of its assets' ids.
        connection: as in `lehr.DatabaseSchema`, without a password.
        password: reference to the password.
        version: of its schema; raise it with each change that programs rely on.
        schema: PostgreSQL's schema.
        tables: by name.
        create: create the database if it does not exist.
        server: None if Lehr does not run it.
        rows: by table.
        needs: ids of assets that are pushed before the schema.
        owner: the responsible team.
    """

    model: Literal["database"] = "database"
    name: Name
    connection: str
    password: Secret | None = None
    version: Annotated[int, msgspec.Meta(ge=0)]
    schema: str = "public"
    tables: dict[Key, DatabaseTable]
    create: bool = True
    server: DatabaseServer | None = None
    rows: dict[str, Rows] = {}
    needs: list[str] = []
    owner: str = ""


def database(file: SourceFile) -> Iterator[DeclaredAsset]:
    """The assets of the `Database` that `file` describes: `NAME/server`, `NAME/schema` and `NAME/TABLE`.

    Raises:
        UnreadableFileError: the file does not describe a database; has all problems, with their positions.
    """
    spec = read(file, Database, NOUN)
    if problems := list(_problems(spec)):
        raise refused(file, NOUN, problems)
    if spec.server is not None:
        server = {
            "command": spec.server.command,
            "environment": spec.server.environment,
            "ports": [{"name": "sql", "base": spec.server.port}],
            "restart_on": spec.server.restart_on,
            "group": spec.name,
        }
        yield asset(f"{spec.name}/server", "lehr.Process", server, _addons(spec, ()))
    schema = {
        "connection": spec.connection,
        "create_database": spec.create,
        "version": spec.version,
        "schema": spec.schema,
        "password": spec.password,
        "tables": {name: msgspec.to_builtins(table) for name, table in spec.tables.items()},
    }
    first = [*([f"{spec.name}/server"] if spec.server else []), *spec.needs]
    yield asset(f"{spec.name}/schema", "lehr.DatabaseSchema", schema, _addons(spec, first))
    for table, rows in spec.rows.items():
        command = {part: [_filled(word, spec) for word in getattr(rows, part)] for part in ("check", "apply")}
        needs = [f"{spec.name}/schema", *rows.needs]
        yield asset(f"{spec.name}/{table}", "lehr.Command", command, _addons(spec, needs))


def _problems(spec: Database) -> Iterator[InputProblem]:
    for name, table in spec.tables.items():
        yield from _table_problems(table, f"/tables/{name}")
    yield from _row_problems(spec)


def _table_problems(table: DatabaseTable, place: str) -> Iterator[InputProblem]:
    if table.absent == bool(table.columns):
        yield InputProblem(place, "a table must have either columns or `absent: true`")
    named = [(f"{place}/primary_key/{index}", name) for index, name in enumerate(table.primary_key)]
    for key, item in table.indexes.items():
        named += [(f"{place}/indexes/{key}/columns/{index}", name) for index, name in enumerate(item.columns)]
    for at, name in named:
        if name not in table.columns:
            known = f"columns: {', '.join(table.columns) or 'none'}"
            yield InputProblem(at, f"{name} is not a column of the table", known)


def _row_problems(spec: Database) -> Iterator[InputProblem]:
    known = f"tables: {', '.join(spec.tables) or 'none'}"
    for table, rows in spec.rows.items():
        place = f"/rows/{escaped(table)}"
        if table not in spec.tables or spec.tables[table].absent:
            yield InputProblem(place, f"rows of {table}, which is not a table", known)
        if table in ("server", "schema"):
            yield InputProblem(
                place, f"rows of {table}, whose id is taken by another asset", "rename the table"
            )
        for part in ("check", "apply"):
            for index, word in enumerate(getattr(rows, part)):
                for name in _COLUMNS.findall(word):
                    if name not in spec.tables:
                        yield InputProblem(
                            f"{place}/{part}/{index}", f"columns of {name}, which is not a table", known
                        )


def _filled(word: str, spec: Database) -> str:
    filled = word.replace("{connection}", spec.connection)
    return _COLUMNS.sub(lambda match: ",".join(spec.tables[match[1]].columns), filled)


def _addons(spec: Database, needs: Sequence[str]) -> dict[str, Any]:
    addons: dict[str, Any] = {AFFECTED_CLUSTERS: {"clusters": ["global"]}}
    if needs:
        addons[DEPENDS_ON] = {"assets": list(needs)}
    if spec.owner:
        addons[OWNER] = {"team": spec.owner}
    return addons

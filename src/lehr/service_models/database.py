"""A database: its server, where Lehr runs it, its tables, and the rows that they start with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.pointers import escaped
from lehr.model.addons import AFFECTED_CLUSTERS, DEPENDS_ON, OWNER
from lehr.model.secret import Secret
from lehr.sdk.generator import DeclaredAsset, SourceFile, asset
from lehr.service_models.model_input import Problem, read, refused
from lehr.service_models.web_service import Name, Port

NOUN = "a database"

_COLUMNS = re.compile(r"\{columns\.([^{}]+)\}")

Words = Annotated[list[str], msgspec.Meta(min_length=1)]


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
        command: the program; `{port}` stands for the port.
        port: that it listens on.
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
        apply: a program that makes them. In both, `{connection}` stands for the database's, and
            `{columns.TABLE}` for the columns of a table, with commas between them.
        needs: ids of assets that go first.
    """

    check: Words
    apply: Words
    needs: list[str] = []


class Database(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What people write about a database.

    Attributes:
        name: the first part of its assets' ids.
        connection: as in `lehr.DatabaseSchema`, without a password.
        password: where the password is kept.
        version: of its schema; raised with each change that programs rely on.
        schema: PostgreSQL's schema.
        tables: by name.
        create: make the database if there is none.
        server: None if it is run elsewhere.
        rows: by table.
        needs: ids of assets that go before the schema.
        owner: team that is responsible for it.
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
        UnreadableFileError: the file does not describe a database; has all problems, each with its place.
    """
    said = read(file, Database, NOUN)
    if problems := list(_problems(said)):
        raise refused(file, NOUN, problems)
    if said.server is not None:
        server = {
            "command": said.server.command,
            "environment": said.server.environment,
            "ports": [{"name": "sql", "base": said.server.port}],
            "restart_on": said.server.restart_on,
            "group": said.name,
        }
        yield asset(f"{said.name}/server", "lehr.Process", server, _addons(said, ()))
    schema = {
        "connection": said.connection,
        "create_database": said.create,
        "version": said.version,
        "schema": said.schema,
        "password": said.password,
        "tables": {name: msgspec.to_builtins(table) for name, table in said.tables.items()},
    }
    first = [*([f"{said.name}/server"] if said.server else []), *said.needs]
    yield asset(f"{said.name}/schema", "lehr.DatabaseSchema", schema, _addons(said, first))
    for table, rows in said.rows.items():
        command = {part: [_filled(word, said) for word in getattr(rows, part)] for part in ("check", "apply")}
        needs = [f"{said.name}/schema", *rows.needs]
        yield asset(f"{said.name}/{table}", "lehr.Command", command, _addons(said, needs))


def _problems(said: Database) -> Iterator[Problem]:
    for name, table in said.tables.items():
        yield from _table_problems(table, f"/tables/{name}")
    yield from _row_problems(said)


def _table_problems(table: DatabaseTable, place: str) -> Iterator[Problem]:
    if table.absent == bool(table.columns):
        yield Problem(place, "a table has either columns or `absent: true`")
    named = [(f"{place}/primary_key/{index}", name) for index, name in enumerate(table.primary_key)]
    for key, item in table.indexes.items():
        named += [(f"{place}/indexes/{key}/columns/{index}", name) for index, name in enumerate(item.columns)]
    for at, name in named:
        if name not in table.columns:
            known = f"there are {', '.join(table.columns) or 'none'}"
            yield Problem(at, f"{name} is no column of the table", known)


def _row_problems(said: Database) -> Iterator[Problem]:
    known = f"there are {', '.join(said.tables) or 'none'}"
    for table, rows in said.rows.items():
        place = f"/rows/{escaped(table)}"
        if table not in said.tables or said.tables[table].absent:
            yield Problem(place, f"rows of {table}, which is no table", known)
        if table in ("server", "schema"):
            yield Problem(place, f"rows of {table}, whose id another asset has", "call the table otherwise")
        for part in ("check", "apply"):
            for index, word in enumerate(getattr(rows, part)):
                for name in _COLUMNS.findall(word):
                    if name not in said.tables:
                        yield Problem(
                            f"{place}/{part}/{index}", f"columns of {name}, which is no table", known
                        )


def _filled(word: str, said: Database) -> str:
    filled = word.replace("{connection}", said.connection)
    return _COLUMNS.sub(lambda match: ",".join(said.tables[match[1]].columns), filled)


def _addons(said: Database, needs: Sequence[str]) -> dict[str, Any]:
    addons: dict[str, Any] = {AFFECTED_CLUSTERS: {"clusters": ["global"]}}
    if needs:
        addons[DEPENDS_ON] = {"assets": list(needs)}
    if said.owner:
        addons[OWNER] = {"team": said.owner}
    return addons

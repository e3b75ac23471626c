"""Making the tables, and bringing those of an older version up to date: forward only, whole or not at all.

In: a connection to a database, and the schema that is ours. Out: the tables of `schema.VERSION` in it.
Whoever comes at the same time waits, and finds them made.

Architecture invariant: a step is never changed once it was released. What a newer version needs is a
step of its own. There is no copy of what was: back the database up before a newer Lehr is started.
"""

from __future__ import annotations

from collections.abc import Mapping

from lehr.base.errors import StalledError
from lehr.store.postgres import schema
from lehr.store.postgres.address import Address
from lehr.store.postgres.connecting import Connection
from lehr.store.postgres.locks import lock_key

STEPS: Mapping[int, str] = {}
"""What leads from a version to the next: statements, by the version that they start from."""


def prepare(connection: Connection, address: Address) -> None:
    """Make the tables, or bring them up to date.

    Raises:
        StalledError: the schema is another program's, or of a newer Lehr.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("tables")])
        found = version_of(connection, address)
        if found is None:
            _make(connection, address)
        elif found < schema.VERSION and found in STEPS:
            for version in range(found, schema.VERSION):
                connection.execute(STEPS[version].encode())
            connection.execute("UPDATE version SET number = %s", [schema.VERSION])
        else:
            require_version(found, address)


def version_of(connection: Connection, address: Address) -> int | None:
    """The version of the tables; None if there are none.

    Raises:
        StalledError: there are tables of another program.
    """
    ours, any_table = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL,"
        " EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p'))",
        [f"{address.schema}.version", address.schema],
    ).fetchone() or (False, False)
    if ours:
        row = connection.execute("SELECT number FROM version").fetchone()
        return int(row[0]) if row else None
    if any_table:
        raise StalledError(
            f"the schema {address.schema} of {address.place} is not Lehr's",
            code="STO131",
            why="it has tables of another program",
            fix="choose another schema: ?schema=NAME in the address",
        )
    return None


def require_version(found: int | None, address: Address) -> None:
    """See that this Lehr reads tables of version `found`.

    Raises:
        StalledError: it does not.
    """
    if found == schema.VERSION:
        return
    if found is None:
        raise StalledError(
            f"there is no store at {address.place}",
            code="STO132",
            why="nothing was written yet",
            fix="run `lehr run` once, or name the store with --store",
        )
    what = f"the store at {address.place} has version {found}, this Lehr reads version {schema.VERSION}"
    if found < schema.VERSION:
        raise StalledError(
            what,
            code="STO133",
            why="an older Lehr made it, and this command only reads",
            fix="back the database up and start `lehr run` with this Lehr: it brings the tables up to date",
        )
    raise StalledError(what, code="STO134", fix="use the Lehr that made it, or a newer one")


def _make(connection: Connection, address: Address) -> None:
    # Asked first: to make a schema that is there, too, needs rights on the whole database.
    there = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", [address.schema]).fetchone()
    if there != (True,):
        connection.execute(f"CREATE SCHEMA {address.schema}".encode())
    connection.execute(schema.STATEMENTS.encode())
    connection.execute("INSERT INTO version (number) VALUES (%s)", [schema.VERSION])

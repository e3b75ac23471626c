"""Creates the tables, and refuses those of another version.

In: a connection to a database, and the schema that is ours. Out: the tables of `schema.VERSION` in it.
A second process that starts at the same time waits, and finds them.
"""

from __future__ import annotations

from lehr.base.errors import StalledError
from lehr.store.postgres import schema
from lehr.store.postgres.address import Address
from lehr.store.postgres.connecting import Connection
from lehr.store.postgres.locks import lock_key


def prepare(connection: Connection, address: Address) -> None:
    """Create the tables if they are missing.

    Raises:
        StalledError: the schema belongs to another program, or to another version of Lehr.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("tables")])
        found = version_of(connection, address)
        if found is None:
            _make(connection, address)
        else:
            require_version(found, address)


def version_of(connection: Connection, address: Address) -> int | None:
    """The version of the tables; None if there are no tables.

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
    """Check that this Lehr reads tables of version `found`.

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
    raise StalledError(
        f"the store at {address.place} has version {found}, this Lehr reads version {schema.VERSION}",
        code="STO134",
        fix="use the version of Lehr that made it",
    )


def _make(connection: Connection, address: Address) -> None:
    # Check first: CREATE SCHEMA needs privileges on the database even if the schema exists.
    there = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", [address.schema]).fetchone()
    if there != (True,):
        connection.execute(f"CREATE SCHEMA {address.schema}".encode())
    connection.execute(schema.STATEMENTS.encode())
    connection.execute("INSERT INTO version (number) VALUES (%s)", [schema.VERSION])

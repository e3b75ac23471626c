"""Translates PostgreSQL's errors.

Messages about rows are not passed on, since they may quote them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.database.session import ConnectionLostError

_PASSES = {
    "55P03": "other sessions hold locks on the table; Lehr will retry",
    "57014": "it took too long; Lehr will retry",
    "40P01": "",
    "40001": "",
    "55006": "",
    "25006": "the server is a standby or read-only",
}
_LOST = ("57P01", "57P02", "57P03", "57P05")  # it shuts down, crashed, starts up, or ended the session
_FIXES = {
    "23502": "give the column a default, or make it nullable first and fill it",
    "23505": "delete the duplicate rows, or make the index not unique",
    "2BP01": "drop the objects that depend on it by hand; Lehr never uses CASCADE",
    "42501": "grant the missing privilege to the user of `connection`",
    "42704": "correct the type, or install the extension that provides it",
    "42601": "correct the type",
    "42P07": "the name is already in use: choose another, or drop the other object by hand",
    "42703": "if another program's table has the name of Lehr's version table, rename that table",
}
_ABOUT_ROWS = ("22", "23")
_SHORT_OF = "53"  # connections, memory, disk


@contextlib.contextmanager
def translated(connection: psycopg.Connection[Any], *, about_rows: bool = False) -> Iterator[None]:
    """Translates what psycopg raises. With `about_rows`, the server may quote rows in its messages."""
    try:
        yield
    except psycopg.Error as error:
        raise _translated(connection, error, about_rows) from (None if about_rows else error)


def refused(message: str) -> LehrError:
    """Why a running server rejects the connection. There is no code for that, only a message."""
    if "too many" in message:
        return TransientError("the PostgreSQL server has no free connection", code="DBS117", why=message)
    fix = "check user, database, `passfile` (accessible to its owner only) and pg_hba.conf"
    return StalledError("the PostgreSQL server refused the connection", code="DBS118", why=message, fix=fix)


def _translated(connection: psycopg.Connection[Any], error: psycopg.Error, about_rows: bool) -> LehrError:
    code = error.sqlstate
    if code in _LOST or connection.closed:
        return ConnectionLostError(
            "the connection to the PostgreSQL server was lost", code="DBS119", why=code or ""
        )
    message = error.diag.message_primary or type(error).__name__
    if about_rows and code is not None and code.startswith(_ABOUT_ROWS):
        message = f"existing rows do not allow this: {type(error).__name__}"
        if error.diag.column_name:
            message += f" in {error.diag.table_name}.{error.diag.column_name}"
    if code in _PASSES or code is None or code.startswith((_SHORT_OF, "08")):
        return TransientError(
            "the PostgreSQL server cannot do this now",
            code="DBS120",
            why=message,
            fix=_PASSES.get(code or "", ""),
        )
    return StalledError(
        "the PostgreSQL server refused the statement", code="DBS121", why=message, fix=_FIXES.get(code, "")
    )

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
    "55P03": "others hold locks on the table; it is tried again",
    "57014": "it took too long; it is tried again",
    "40P01": "",
    "40001": "",
    "55006": "",
    "25006": "the server is a standby, or set to read only",
}
_LOST = ("57P01", "57P02", "57P03", "57P05")  # it shuts down, crashed, starts up, or ended the session
_FIXES = {
    "23502": "give the column a default, or let it be nullable first and fill it",
    "23505": "take the rows away that are there twice, or let the index not be unique",
    "2BP01": "take away what depends on it by hand; Lehr never drops in cascades",
    "42501": "grant the user of `connection` what is missing",
    "42704": "correct the type, or install the extension that has it",
    "42601": "correct the type",
    "42P07": "something else has this name already: choose another, or take that away by hand",
    "42703": "if a table of another program is called like Lehr's own for the version, rename that",
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
        return TransientError("the PostgreSQL server has no connection to spare", code="DBS117", why=message)
    fix = "check user, database and `passfile` (of which only its owner may have rights), and pg_hba.conf"
    return StalledError("the PostgreSQL server refuses the connection", code="DBS118", why=message, fix=fix)


def _translated(connection: psycopg.Connection[Any], error: psycopg.Error, about_rows: bool) -> LehrError:
    code = error.sqlstate
    if code in _LOST or connection.closed:
        return ConnectionLostError(
            "the connection to the PostgreSQL server was lost", code="DBS119", why=code or ""
        )
    message = error.diag.message_primary or type(error).__name__
    if about_rows and code is not None and code.startswith(_ABOUT_ROWS):
        message = f"rows do not fit: {type(error).__name__}"
        if error.diag.column_name:
            message += f" in {error.diag.table_name}.{error.diag.column_name}"
    if code in _PASSES or code is None or code.startswith((_SHORT_OF, "08")):
        return TransientError(
            "the PostgreSQL server cannot do it now",
            code="DBS120",
            why=message,
            fix=_PASSES.get(code or "", ""),
        )
    return StalledError("the PostgreSQL server refuses", code="DBS121", why=message, fix=_FIXES.get(code, ""))

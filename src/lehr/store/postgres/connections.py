"""Connections to the server: opening and reopening them."""

from __future__ import annotations

import logging
import select
from typing import Any

import psycopg
from psycopg import pq

from lehr.base.backoff import delay
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.store.postgres.address import Address
from lehr.store.postgres.errors import away, message_of, translated

Connection = psycopg.Connection[Any]

FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_OLDEST_SERVER = 140_000

_SETTINGS = {
    # Whatever the server's default, a commit that returned survives a crash of the machine.
    "synchronous_commit": "on",
    # Clients that list assets page by page may be slow, but must not block the server's vacuum forever.
    "idle_in_transaction_session_timeout": "1h",
    "default_transaction_isolation": "read committed",
    "cursor_tuple_fraction": "1",  # streaming readers read to the end
    "statement_timeout": "0",
    "jit": "off",  # takes longer than our statements
    "timezone": "UTC",
    "standard_conforming_strings": "on",
    "client_min_messages": "warning",
}
LOCK_SECONDS = 5.0

# The driver's warnings during clean-up after an error repeat that error.
logging.getLogger("psycopg").setLevel(logging.ERROR)


def connect(address: Address) -> Connection:
    """A connection in autocommit mode that finds the tables of `address`.

    Raises:
        TransientError: the server does not answer.
        StalledError: it rejects the connection, or is too old.
    """
    try:
        connection = psycopg.connect(address.conninfo, autocommit=True)
    except psycopg.Error as error:
        # libpq gives no code for this, and its text is localized.
        if pq.PGconn.ping(address.conninfo.encode()) != pq.Ping.OK:
            raise away(address, why=message_of(error)) from error
        raise StalledError(
            f"the PostgreSQL server of {address.place} rejects the connection",
            code="STO120",
            why=message_of(error),
            fix="check that the database exists, and check user and password (~/.pgpass, PGPASSWORD)",
        ) from error
    try:
        with translated(address):
            _configure(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: Connection, address: Address) -> None:
    if connection.info.server_version < _OLDEST_SERVER:
        raise StalledError(
            f"the PostgreSQL server of {address.place} is older than version 14",
            code="STO121",
            fix="upgrade it",
        )
    settings = {
        **_SETTINGS,
        "search_path": address.schema,
        "lock_timeout": f"{LOCK_SECONDS * 1000:.0f}ms",
    }
    calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    connection.execute(f"SELECT {calls}".encode(), [text for pair in settings.items() for text in pair])


def alive(connection: Connection) -> bool:
    """Whether an idle connection is usable, as far as can be known without a query.

    A server that ended sends a message or closes the socket: both make the socket readable.
    """
    if connection.closed or connection.broken:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


class Connector:
    """Opens connections to one server, and backs off while it is unreachable.

    Readers must not block: while the server is unreachable, most calls fail without an attempt.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._clock = SystemClock()
        self._chance = Chance()
        self._known = False
        self._failures = 0
        self._not_before = 0.0
        self._trouble = ""

    def connect(self) -> Connection:
        """A new connection.

        Raises:
            TransientError: the server is unreachable, or was a moment ago, or rejects the connection now.
            StalledError: it rejects the connection and has never accepted one.
        """
        if self._clock.monotonic() < self._not_before:
            raise away(self.address, why=self._trouble)
        try:
            connection = connect(self.address)
        except (TransientError, StalledError) as error:
            self._failures += 1
            pause = delay(
                self._failures, self._chance.uniform(0, 1), first=FIRST_PAUSE, longest=_LONGEST_PAUSE
            )
            self._not_before = self._clock.monotonic() + pause
            self._trouble = error.why
            if self._known and isinstance(error, StalledError):
                # It may be out of connections, or in the middle of a change: it accepted us before.
                raise TransientError(error.what, code=error.code, why=error.why, fix=error.fix) from error
            raise
        self._known, self._failures = True, 0
        return connection

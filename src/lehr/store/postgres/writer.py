"""The one connection that commits, and recovery of the outcome of a commit whose answer was lost."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg

from lehr.base.backoff import delay
from lehr.base.chance import Chance
from lehr.base.errors import StalledError, TransientError
from lehr.store.postgres import tables
from lehr.store.postgres.connections import Connection, Connector, alive
from lehr.store.postgres.errors import translated
from lehr.store.postgres.session import PostgresSession

_LONGEST_PAUSE = 5.0
_MOST_TRIES = 240
"""About twenty minutes: by then the server needs an operator anyway."""

_CANCEL_SECONDS = 5.0

STOPPED_AFTER = "10min"
"""How long a process that is stopped in the middle of a commit keeps its locks.

Far longer than digesting a million assets takes on an overloaded machine: otherwise a slow process would be
ended, start again, and never finish.
"""


class Writer:
    """Runs transactions one at a time, and knows whether each was committed.

    Each has a number, never used again, and writes it into a row of this writer's own (`writer.commits`),
    in the same transaction. When the connection is lost while COMMIT is under way, that row is read over a
    new one: it shows whether the transaction was committed.

    Invariant: I12. A commit that raised an error was never written.
    """

    def __init__(self, connector: Connector) -> None:
        """Connect, and create missing tables.

        Raises:
            TransientError, StalledError: see `Connector.connect` and `tables.prepare`.
        """
        self._connector = connector
        self._address = address = connector.address
        self._chance = Chance()
        self._number = 0
        self._working = self._closed = False
        self._pipe: tuple[int, ...] = os.pipe()  # one end becomes readable when the other is written to
        try:
            self._connection = connector.connect()
        except BaseException:
            self._close_pipe()
            raise
        try:
            with translated(address):
                tables.prepare(self._connection, address)
                self._id = self._registered()
                self._introduce()
        except BaseException:
            self._connection.close()
            self._close_pipe()
            raise

    def transact(
        self, locks: Sequence[int], work: Callable[[PostgresSession], list[Any]], *, pipelined: bool
    ) -> list[Any]:
        """Return what `work` returns, once it is durable.

        Args:
            locks: taken first, in this order.
            pipelined: True to wait for answers only where `work` asks for them; it must not copy then.

        Raises:
            TransientError, StalledError: nothing was written.
        """
        self._working = True
        try:
            return self._transact(locks, work, pipelined=pipelined)
        finally:
            self._working = False
            if self._closed:
                self._release()

    def _transact(
        self, locks: Sequence[int], work: Callable[[PostgresSession], list[Any]], *, pipelined: bool
    ) -> list[Any]:
        with translated(self._address):
            connection = self._connected()
            self._number += 1
            try:
                with _session(connection, pipelined=pipelined) as session:
                    session.execute("BEGIN")
                    session.execute(
                        "SELECT pg_advisory_xact_lock(key) FROM unnest(?::bigint[]) AS key", [list(locks)]
                    )
                    session.execute(
                        "UPDATE writer SET commits = ?, since = now() WHERE id = ?",
                        [self._number, self._id],
                    )
                    answers = work(session)
            except BaseException:
                self._roll_back(connection)
                raise
            self._commit(connection)
        return answers

    def close(self) -> None:
        """End the connection, any transaction in another thread, and any wait for an unreachable server."""
        if self._closed:
            return
        self._closed = True
        os.write(self._pipe[1], b".")
        if self._working:
            with contextlib.suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
        if not self._working:
            self._release()

    def _release(self) -> None:
        """Called by the last user of the connection."""
        if not self._connection.closed and alive(self._connection):
            with contextlib.suppress(psycopg.Error):
                self._connection.execute("DELETE FROM writer WHERE id = %s", [self._id])
        self._connection.close()
        self._close_pipe()

    def _registered(self) -> int:
        with self._connection.transaction():
            self._connection.execute("DELETE FROM writer WHERE since < now() - interval '90 days'")
            row = self._connection.execute("INSERT INTO writer DEFAULT VALUES RETURNING id").fetchone()
        assert row is not None
        return int(row[0])

    def _connected(self) -> Connection:
        if not alive(self._connection):
            self._connection.close()
            self._connection = self._connector.connect()
            with translated(self._address):
                self._introduce()
        return self._connection

    @property
    def _name(self) -> str:
        return f"lehr writer {self._id}"

    def _introduce(self) -> None:
        self._connection.execute(
            "SELECT set_config('application_name', %s, false),"
            " set_config('idle_in_transaction_session_timeout', %s, false)",
            [self._name, STOPPED_AFTER],
        )

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()

    def _commit(self, connection: Connection) -> None:
        try:
            done = connection.execute("COMMIT", prepare=False).statusmessage
        except psycopg.Error as error:
            if not (connection.closed or connection.broken):
                self._roll_back(connection)
                raise
            connection.close()
            if not self._was_committed():
                raise TransientError(
                    f"the connection to {self._address.place} was lost during a commit",
                    code="STO135",
                    why="the server did not commit it: nothing was written",
                    fix="check the server; Lehr continues automatically",
                ) from error
        except BaseException:
            # After an interrupt here, the store shows the outcome, as after a crash.
            connection.close()
            raise
        else:
            # The server silently rolls back a transaction in which an error was hidden.
            assert done == "COMMIT", f"the server answered {done}"

    def _was_committed(self) -> bool:
        """Whether the transaction whose COMMIT was not answered was committed. Waits for the server."""
        for failures in range(1, _MOST_TRIES):
            with contextlib.suppress(TransientError, psycopg.OperationalError):
                return self._counted(self._connected())
            pause = delay(failures, self._chance.uniform(0, 1), first=0.1, longest=_LONGEST_PAUSE)
            if select.select([self._pipe[0]], [], [], pause)[0]:
                break
        raise StalledError(
            f"it is not known whether the last commit reached {self._address.place}",
            code="STO136",
            why="the connection was lost during the commit, and the server does not come back",
            fix="start `lehr run` again when the server is back: it reads what was written",
        )

    def _counted(self, connection: Connection) -> bool:
        # The server may not have noticed yet that the former client is gone, and keep its transaction.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = %s AND pid <> pg_backend_pid()",
            [self._name],
        )
        with connection.transaction():
            row = connection.execute(
                "SELECT commits FROM writer WHERE id = %s FOR UPDATE", [self._id]
            ).fetchone()
        if row is None:
            raise StalledError(
                f"it is not known whether the last commit reached {self._address.place}",
                code="STO137",
                why="the row of this writer is gone: the store was replaced while Lehr ran",
                fix="start `lehr run` again: it reads what was written",
            )
        return int(row[0]) == self._number

    def _close_pipe(self) -> None:
        for end in self._pipe:
            os.close(end)
        self._pipe = ()


@contextlib.contextmanager
def _session(connection: Connection, *, pipelined: bool) -> Iterator[PostgresSession]:
    if not pipelined:
        yield PostgresSession(connection)
        return
    with connection.pipeline() as pipeline:
        yield PostgresSession(connection, pipeline)

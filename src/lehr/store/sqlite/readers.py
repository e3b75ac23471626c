"""Connections for reading. Each reader has one to itself, so that no other reader is held in its past.

A statement that has not run to its end keeps its connection at one moment of the file. It lives as long as
something refers to it: a generator that is not continued, or an error, through the frames of its traceback.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lehr.store.sqlite.connection import Connection, connect, translated

_MOST_IDLE = 4


class Readers:
    """Connections to the state file at `path`.

    Raises:
        TransientError, StalledError: see `connect`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._closed = False
        self._idle = [connect(path, read_only=True)]

    @contextlib.contextmanager
    def session(self) -> Iterator[Connection]:
        """A session for reading (`lehr.store.sql.session.OpenSession`), in any thread."""
        with translated(self._path):
            connection = self._take()
            try:
                yield connection
            except BaseException:
                # Failed or given up, maybe in the middle of a statement: no other reader must find it there.
                connection.close()
                raise
            self._give_back(connection)

    def close(self) -> None:
        """Close idle connections; the others are closed when returned."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        try:
            return self._idle.pop()  # no check before: other threads take from it
        except IndexError:
            return connect(self._path, read_only=True)

    def _give_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= _MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

"""Connections for reading. Each reader has one to itself, so that no other reader is held in its past.

A statement that has not run to its end keeps its connection at one moment of the file. It lives as long as
something refers to it: a generator that is not continued, or an error, through the frames of its traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from lehr.store.sqlite.connection import Connection, Translated, connect

_MOST_IDLE = 4


class Readers:
    """Connections to the state file at `path`.

    Raises:
        TransientError, StalledError: see `connect`.
    """

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        """`alone`: as of `connect`."""
        self._path = path
        self._translated = Translated(path)
        self._closed = False
        self._alone = alone
        self._idle = [connect(path, read_only=True, alone=alone)]

    def session(self) -> AbstractContextManager[Connection]:
        """A session for reading (`lehr.store.sql.session.OpenSession`), in any thread."""
        return _Reading(self._take, self._give_back, self._translated)

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
            return connect(self._path, read_only=True, alone=self._alone)

    def _give_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= _MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)


class _Reading:
    """A session for reading. A class for the sake of speed, as `Translated`."""

    __slots__ = ("_connection", "_give_back", "_take", "_translated")

    _connection: Connection

    def __init__(
        self, take: Callable[[], Connection], give_back: Callable[[Connection], None], translated: Translated
    ) -> None:
        self._take = take
        self._give_back = give_back
        self._translated = translated

    def __enter__(self) -> Connection:
        self._connection = self._take()
        return self._connection

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            self._give_back(self._connection)
            return
        # Failed or given up, maybe in the middle of a statement: no other reader must find it there.
        self._connection.close()
        self._translated.translate(error)

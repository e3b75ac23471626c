"""Carrying over what commits have logged into the file, beside the commits instead of within them.

SQLite does it within the commit that fills the log, which then takes many times as long as others.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from lehr.base.blocking import Background
from lehr.store.sqlite.connection import connect

_ROWS = 1000
"""Written rows after which it is time: a few MiB of log, which SQLite itself takes for a good measure."""

_MANY_ROWS = 500_000
"""Of a transaction: hundreds of MiB of log. To carry them over takes the disk for seconds, and to make the
log short again after that takes another; the transaction itself, which took longer, waits for that, and not
the small ones that come after it."""

_MOST_PAGES = 65_536
"""Of the log (256 MiB). Beyond it, commits have come too fast for it to begin anew: one of them waits."""


class Checkpoints:
    """Of one file, for its one writer.

    One that fails is tried again: nothing is lost by that, the log is only longer.
    """

    def __init__(self, path: Path, writer: sqlite3.Connection) -> None:
        """Take over from `writer`, which from now on makes none by itself.

        Raises:
            TransientError, StalledError: see `connect`.
        """
        self._connection = connect(path)
        self._background = Background("checkpoint", self._carry_over)
        self._writer = writer
        self._rows = 0
        self._behind = False
        writer.execute("PRAGMA wal_autocheckpoint = 0")

    def before_commit(self) -> None:
        """Call it before a transaction begins."""
        if self._behind:
            self._behind = False
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def after_commit(self) -> None:
        """Call it when a transaction is durable."""
        rows = self._writer.total_changes - self._rows
        if rows >= _MANY_ROWS:
            with contextlib.suppress(sqlite3.Error):  # the transaction is durable all the same
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if rows >= _ROWS and self._background.ask():
            self._rows = self._writer.total_changes

    def close(self) -> None:
        """Wait for one that is under way, and make no more."""
        self._background.close()
        self._connection.close()

    def _carry_over(self) -> None:
        try:
            row = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            self._behind = True  # whoever commits next finds out what is wrong
            return
        _busy, logged, _carried = row
        self._behind = logged > _MOST_PAGES

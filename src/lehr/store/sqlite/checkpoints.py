"""Checkpoints: move logged commits into the file, outside the commits themselves.

SQLite itself does it within the commit that fills the log, which then takes many times as long as others.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from lehr.base.blocking import Background
from lehr.store.sqlite.connection import connect

_ROWS = 1000
"""Rows written between checkpoints: a few MiB of log, about SQLite's own default."""

_MANY_ROWS = 500_000
"""Rows of a large transaction: hundreds of MiB of log. Its checkpoint takes the disk for seconds, and
truncating the log afterwards takes another; the transaction itself, which took longer, waits for that,
instead of the small ones after it."""

_MOST_PAGES = 65_536
"""Size of the log (256 MiB). Beyond it, commits were too fast for the log to restart: one of them waits."""


class Checkpoints:
    """Checkpoints of one file, for its one writer.

    A failed one is tried again: nothing is lost, the log is only longer.
    """

    def __init__(self, path: Path, writer: sqlite3.Connection) -> None:
        """Take over from `writer`, which makes no checkpoints from now on.

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
        """Call before a transaction begins."""
        if self._behind:
            self._behind = False
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def after_commit(self) -> None:
        """Call when a transaction is durable."""
        rows = self._writer.total_changes - self._rows
        if rows >= _MANY_ROWS:
            with contextlib.suppress(sqlite3.Error):  # the transaction is durable anyway
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if rows >= _ROWS and self._background.ask():
            self._rows = self._writer.total_changes

    def close(self) -> None:
        """Wait for a running checkpoint, and make no more."""
        self._background.close()
        self._connection.close()

    def _carry_over(self) -> None:
        try:
            row = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            self._behind = True  # the next commit reports what is wrong
            return
        _busy, logged, _carried = row
        self._behind = logged > _MOST_PAGES

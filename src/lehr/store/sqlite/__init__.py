"""The embedded store: one SQLite file, written by one connection, read by others."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from lehr.base.errors import StalledError
from lehr.model.damage import RESTORE, Advance, Damage, TypesOf
from lehr.model.writes import Prune, Write
from lehr.store.sql.carriers import carriers, carry_out
from lehr.store.sql.record_queries import SqlRecords
from lehr.store.sqlite import publication
from lehr.store.sqlite.buckets import Buckets
from lehr.store.sqlite.checkpoints import Checkpoints
from lehr.store.sqlite.connection import Translated, connect
from lehr.store.sqlite.intent import SqliteIntent
from lehr.store.sqlite.readers import Readers

__all__ = ["SqliteStore"]


_PAGES = 2000
"""Pages returned to the file system after each share of pruning: 8 MB, some tens of milliseconds."""


class SqliteStore:
    """`lehr.sdk.store.Store` in a SQLite file.

    Reads may run in any thread; `commit` may run in another, but in one thread at a time.
    """

    def __init__(
        self, path: Path, *, read_only: bool = False, background: bool = False, alone: bool = False
    ) -> None:
        """Open `path`; unless `read_only`, create it if it is missing.

        Args:
            background: make checkpoints in a thread, so that no commit waits for one.
            alone: no other process opens the file while this store does.

        Raises:
            TransientError, StalledError: see `connect`.
        """
        self._path = path
        self._alone = alone
        self._checkpoints: Checkpoints | None = None
        buckets = Buckets()
        self._carriers = carriers(lambda db, write: publication.publish(buckets, db, write))
        with contextlib.ExitStack() as opened:
            self._writer = None if read_only else opened.enter_context(closing(connect(path, alone=alone)))
            self._readers = opened.enter_context(closing(Readers(path, alone=alone)))
            if self._writer is not None and background:
                self._checkpoints = opened.enter_context(closing(Checkpoints(path, self._writer)))
            self._opened = opened.pop_all()
        self.intent = SqliteIntent(self._readers.session, self._readers.session)
        self.records = SqlRecords(self._readers.session)

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        db = self._writer
        if db is None:
            raise StalledError(f"state file {self._path} was opened read-only", code="STO139")
        with Translated(self._path):
            if self._checkpoints is not None:
                self._checkpoints.before_commit()
            db.begin()
            try:
                answers = carry_out(db, self._carriers, writes)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        if any(isinstance(write, Prune) for write in writes):
            with contextlib.suppress(sqlite3.Error):  # pruning is done; the space is freed later
                # As a script, which runs to its end: a statement without columns does not.
                db.executescript(f"PRAGMA incremental_vacuum({_PAGES})")
        if self._checkpoints is not None:
            self._checkpoints.after_commit()
        return answers

    def check(
        self, types: TypesOf, began: Advance = lambda rows: None, advance: Advance = lambda rows: None
    ) -> Iterator[Damage]:
        # Few commands check, and start-up time counts.
        from lehr.store.sql.check import check, rows  # noqa: PLC0415

        with Translated(self._path):
            # A connection of its own, so that all reads are from one snapshot, despite concurrent writes.
            db = connect(self._path, read_only=True, alone=self._alone)
        # A text that is not UTF-8 is damage of its row only; the others can still be checked.
        db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        with closing(db):
            db.execute("BEGIN")
            with contextlib.suppress(sqlite3.Error):  # a damaged file is not counted, but checked
                began(rows(db))
            yield from _structure(db)
            yield from check(db, types, advance, (sqlite3.Error,))

    def close(self) -> None:
        self._opened.close()


_PROBLEMS = 1000
"""Beyond this number, further errors add nothing new."""


def _structure(db: sqlite3.Connection) -> Iterator[Damage]:
    """Damage of the file itself: SQLite's own check of its pages and indexes."""
    try:
        for (problem,) in db.execute(f"PRAGMA integrity_check({_PROBLEMS})"):
            if problem != "ok":
                yield Damage("the state file is damaged", problem.replace("\n", "; "), RESTORE)
    except sqlite3.Error as error:
        yield Damage("the structure of the file could not be read", str(error), RESTORE)

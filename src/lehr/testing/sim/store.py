"""A store that fails, lags and dies on demand, over the real one."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lehr.base.errors import LehrError, TransientError
from lehr.model.damage import Advance, Damage, TypesOf
from lehr.model.writes import LeaseLostError, Write
from lehr.store.sqlite import SqliteStore
from lehr.testing.world import Crash

Committed = Callable[[Sequence[Write], Sequence[Any]], None]


class SimulatedStore:
    """One control plane's `lehr.sdk.store.Store` in the state file that they share.

    Attributes:
        out_of_order: commits raise `TransientError`.
        unreadable: reads do.
        misreads: asked at each read; True lets this one raise `TransientError`.
        fails: asked at each commit, of what; True lets it raise `TransientError`.
        gets_to: after how many statements a commit that fails does so: SQLite itself takes them back. Where
            it has no more of them, it does not fail. None: before the first.
        dies: None, or "before", "within" or "after" the next commit.
        died: set when the control plane has died at a commit, or was killed.
        commits: how many there were.
        deposed: True once a commit learned that the lease is lost; broken: what it did against
            that.
    """

    def __init__(self, path: Path, committed: Committed) -> None:
        """`committed` is called with everything that has become durable."""
        self._path = path
        self._store = SqliteStore(path)
        assert self._store._writer is not None
        self._store._writer.execute("PRAGMA busy_timeout = 0")  # others wait with this one
        self._committed = committed
        self._lagging: SqliteStore | None = None
        self.out_of_order = False
        self.unreadable = False
        self.misreads: Callable[[], bool] = lambda: False
        self.fails: Callable[[Sequence[Write]], bool] = lambda writes: False
        self.gets_to: Callable[[], int | None] = lambda: None
        self.dies: str | None = None
        self.died = asyncio.Event()
        self.commits = 0
        self.deposed = False
        self.broken: list[str] = []
        self.before: Callable[[int, Sequence[Write]], None] = lambda number, writes: None
        self.intent: Any = _Reads("intent", self)
        self.records: Any = _Reads("records", self)

    @property
    def read_from(self) -> SqliteStore:
        """The store as reads find it now."""
        return self._lagging or self._store

    def lag(self) -> None:
        """From now on, reads find the store as it is now, whatever is written."""
        self.catch_up()
        self._lagging = _copied(self._path)

    def catch_up(self) -> None:
        """Reads find the store as it is again."""
        if self._lagging is not None:
            self._lagging.close()
            self._lagging = None

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        if self.died.is_set():
            raise Crash
        self.before(self.commits, writes)
        self.commits += 1
        fails, statements = self.fails(writes), self.gets_to()
        if self.out_of_order or (fails and statements is None):
            raise TransientError("the disk is full")
        if self.dies == "before":
            self.die()
        if self.dies == "within":
            self._tear(writes)
            self.die()
        if self.deposed:
            self.broken.append("I5: a process goes on writing after it was told that its lease is lost")
        try:
            with self._full(statements if fails else None):
                answers = self._store.commit(writes)
        except LeaseLostError:
            self.deposed = True
            raise
        self._committed(writes, answers)
        if self.dies == "after":
            self.die()
        return answers

    @contextlib.contextmanager
    def _full(self, statements: int | None) -> Iterator[None]:
        """The disk is full after so many statements."""
        writer = self._store._writer
        if statements is not None:
            self._store._writer = _Full(writer, statements)  # type: ignore[assignment]
        try:
            yield
        finally:
            self._store._writer = writer

    def _tear(self, writes: Sequence[Write]) -> None:
        """Carry out `writes`, and break off before they are committed: none may stay."""
        torn: list[Any] = [*writes, None]  # which is not a write
        with contextlib.suppress(KeyError, LehrError):
            self._store.commit(torn)

    def die(self) -> None:
        """The control plane ends here.

        Raises:
            Crash: always.
        """
        self.died.set()
        raise Crash

    def check(
        self, types: TypesOf, began: Advance = lambda rows: None, advance: Advance = lambda rows: None
    ) -> Iterator[Damage]:
        return self._store.check(types, began, advance)

    def close(self) -> None:
        self.catch_up()
        self._store.close()


class _Full:
    """A connection on which every statement fails after some, as where the disk is full."""

    def __init__(self, db: Any, statements: int) -> None:
        self._db = db
        self._left = statements

    def execute(self, statement: str, *values: Any) -> Any:
        self._count(statement)
        return self._db.execute(statement, *values)

    def executemany(self, statement: str, *values: Any) -> Any:
        self._count(statement)
        return self._db.executemany(statement, *values)

    def _count(self, statement: str) -> None:
        if statement.startswith(("BEGIN", "ROLLBACK")):
            return
        self._left -= 1
        if self._left < 0:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


class _Reads:
    """One part of the reads of a store that sometimes cannot be read, or lags."""

    def __init__(self, part: str, store: SimulatedStore) -> None:
        self._part = part
        self._store = store

    def __getattr__(self, name: str) -> Any:
        store, part = self._store, self._part

        def reading(*args: object, **named: object) -> Any:
            if store.unreadable or store.misreads():
                raise TransientError("the state file is locked")
            return getattr(getattr(store.read_from, part), name)(*args, **named)

        setattr(self, name, reading)
        return reading


def damage(path: Path, id: str) -> None:
    """Change one byte of the newest body of an asset in the state file at `path`, as a failing disk does."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        [(number, body)] = db.execute(
            "SELECT number, body FROM asset_version WHERE id = ? ORDER BY number DESC LIMIT 1", (id,)
        )
        changed = body.replace(b'"value":"1"', b'"value":"9"')
        db.execute("UPDATE asset_version SET body = ? WHERE number = ?", (changed, number))


def _copied(path: Path) -> SqliteStore:
    """The store at `path` as it is now, in its own file."""
    copy = path.with_suffix(".lagging")
    for suffix in ("", "-wal", "-shm"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    return SqliteStore(copy, read_only=True)

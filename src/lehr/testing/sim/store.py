"""A store that fails, lags and dies on demand, over the real one."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lehr.base.errors import LehrError, TransientError
from lehr.model.damage import Advance, Damage, TypesOf
from lehr.model.writes import LeaseLostError, Refused, TakeLease, Write
from lehr.sdk.store import Records
from lehr.store.sqlite import SqliteStore
from lehr.testing.world import Crash

Committed = Callable[[Sequence[Write], Sequence[Any]], None]


@contextlib.contextmanager
def altered(thing: object, **values: object) -> Iterator[None]:
    """Give attributes of `thing` other values for the time of the block."""
    before = {name: getattr(thing, name) for name in values}
    try:
        for name, value in values.items():
            setattr(thing, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(thing, name, value)


class SimulatedStore:
    """One control plane's `lehr.sdk.store.Store` in the state file that they share.

    Attributes:
        read_from: the store as reads find it now.
        out_of_order: commits raise `TransientError`.
        unreadable: reads do.
        misreads: asked at each read; True lets this one raise `TransientError`.
        misread: names of reads, the next of each of which raises `TransientError`.
        fails: asked at each commit, of what; True lets it raise `TransientError`.
        gets_to: after how many statements a commit that fails does so: SQLite itself takes them back. Where
            it has no more of them, it does not fail. None: before the first.
        dies: None, or "before", "within" or "after" the next commit.
        died: set when the control plane has died at a commit, or was killed.
        commits: how many there were.
        read_by_watchers: called after each commit, with the records as they are then.
        epoch: of the lease that was taken here last; newest_epoch: of the lease, of any process.
        deposed: True once a commit learned that the lease is lost; broken: what it did against
            that.
    """

    def __init__(self, path: Path, committed: Committed) -> None:
        """`committed` is called with everything that has become durable."""
        self._path = path
        self._store = SqliteStore(path, alone=True)
        assert self._store._writer is not None
        self._store._writer.execute("PRAGMA busy_timeout = 0")  # others wait with this one
        self._committed = committed
        self.read_by_watchers: Callable[[Records, Sequence[Write], Sequence[Any]], object] = (
            lambda records, writes, answers: None
        )
        self.read_from = self._store
        self.out_of_order = False
        self.unreadable = False
        self.misreads: Callable[[], bool] = lambda: False
        self.misread: set[str] = set()
        self.fails: Callable[[Sequence[Write]], bool] = lambda writes: False
        self.gets_to: Callable[[], int | None] = lambda: None
        self.dies: str | None = None
        self.died = asyncio.Event()
        self.commits = 0
        self.deposed = False
        self.broken: list[str] = []
        self.epoch = 0
        self.newest_epoch: Callable[[], int] = lambda: 0
        self.before: Callable[[int, Sequence[Write]], None] = lambda number, writes: None
        self.intent: Any = _Reads("intent", self)
        self.records: Any = _Reads("records", self)

    def lag(self) -> None:
        """From now on, reads find the store as it is now, whatever is written."""
        self.catch_up()
        self.read_from = _copied(self._path)

    @property
    def lags(self) -> bool:
        """Whether reads find the store as it was."""
        return self.read_from is not self._store

    def catch_up(self) -> None:
        """Reads find the store as it is again."""
        if self.lags:
            self.read_from.close()
            self.read_from = self._store

    @contextlib.contextmanager
    def lagging(self) -> Iterator[None]:
        """Within the block, reads find the store as it is now."""
        self.lag()
        try:
            yield
        finally:
            self.catch_up()

    def fail_once(self, kind: type) -> None:
        """Let the next commit with a write of this kind fail, and no other."""

        def fails(writes: Sequence[Write]) -> bool:
            found = any(isinstance(write, kind) for write in writes)
            if found:
                self.fails = lambda writes: False
            return found

        self.fails = fails

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
        if self.deposed and not _takes_lease(writes):
            self.broken.append("I5: a process continues writing after it learned that its lease is lost")
        try:
            full = _Full(self._store._writer, statements or 0)
            with altered(self._store, _writer=full) if fails else contextlib.nullcontext():
                answers = self._store.commit(writes)
        except TransientError as error:
            if not fails:
                raise
            # Without the folder, whose name differs each time and would become part of evidence.
            raise TransientError("the disk is full") from error
        except LeaseLostError:
            self.deposed = True
            raise
        self._led(writes, answers)
        self._committed(writes, answers)
        self.read_by_watchers(self._store.records, writes, answers)
        if self.dies == "after":
            self.die()
        return answers

    def _led(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """I5: a process that writes has the lease."""
        for write, answer in zip(writes, answers, strict=True):
            if isinstance(write, TakeLease):
                if not isinstance(answer, Refused):
                    self.epoch, self.deposed = answer, False
                return
        if self.epoch < self.newest_epoch():
            self.broken.append("I5: a process writes although another one has taken the lease")

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

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._db, name)
        return partial(self._counted, attribute) if name in ("execute", "executemany") else attribute

    def _counted(self, execute: Callable[..., Any], statement: str, *values: Any) -> Any:
        if not statement.startswith(("BEGIN", "ROLLBACK")):
            self._left -= 1
            if self._left < 0:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
        return execute(statement, *values)


class _Reads:
    """One part of the reads of a store that sometimes cannot be read, or lags."""

    def __init__(self, part: str, store: SimulatedStore) -> None:
        self._part = part
        self._store = store

    def __getattr__(self, name: str) -> Any:
        store, part = self._store, self._part

        def reading(*args: object, **named: object) -> Any:
            once = name in store.misread
            store.misread.discard(name)
            if once or store.unreadable or store.misreads():
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
    return SqliteStore(copy, read_only=True, alone=True)


def _takes_lease(writes: Sequence[Write]) -> bool:
    return bool(writes) and isinstance(writes[0], TakeLease)

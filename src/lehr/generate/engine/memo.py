"""Outputs on disk, so that a restarted worker rebuilds only what has changed.

One SQLite file, which only the worker of a control plane writes; others read it, or a copy. An output is
found by a digest of everything that it was made from: the unit, its inputs, and the installed software
(`engine.installed`). A damaged file only costs time: an unreadable row counts as missing, and an unusable
file is ignored. For the same reason nothing is flushed to disk; rows half written in a crash fail their
checksum.

Outputs with errors are not kept: users wait for them to be rebuilt, and the next attempt may succeed.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lehr.base.diagnostics import errors
from lehr.base.digest import canonical, digest_all
from lehr.generate.engine.assembly import Unit
from lehr.generate.engine.memory import Origins
from lehr.generate.outcome.output import Output

MOST_BYTES = 1 << 30
"""Maximum size of the file."""

_FORMAT = "2"  # increment when the format of outputs changes
_SLICE_BYTES = 1 << 18  # size of outputs written at a time: a commit that arrives in between waits that long
_SLICE_ROWS = 500
_CHECK_BYTES = 4
_LEVEL = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS output (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    maker TEXT NOT NULL,
    item TEXT NOT NULL,
    content BLOB NOT NULL
)
"""

T = TypeVar("T")

InForce = Callable[[Unit], Output | None]
"""The output in force of a unit."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Output)


def copied(path: Path, copy: Path) -> bool:
    """Copy the file in its current state for a separate worker. False if it cannot be read."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            contextlib.closing(_read_only(path)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error:
        return False
    return True


class Memo:
    """Outputs of units, from this process and earlier ones. Nothing here raises.

    Args:
        path: of the file; None to keep nothing.
        installed: digest of everything but its inputs that an output depends on.
        most_bytes: maximum size of the file.
        writes: whether outputs are kept. Without it, the file is only read, if there is one.
    """

    def __init__(
        self,
        path: Path | None = None,
        installed: str = "",
        most_bytes: int = MOST_BYTES,
        *,
        writes: bool = True,
    ) -> None:
        self._path = path
        self._writes = writes
        self._installed = installed
        self._most_bytes = most_bytes
        self._pending: dict[Unit, Output] = {}
        self._problem = ""
        self._closed = False

    def get(self, unit: Unit, inputs: str) -> Output | None:
        """The output for these inputs; None if unknown."""
        if self._database is None:
            return None
        key = self._key(unit, inputs)
        packed = self._ask(functools.partial(_content, key=key))
        return None if packed is None else _unpacked(key, packed, inputs)

    def note(self, unit: Unit, output: Output, *, with_errors: bool = False) -> None:
        """Queue `output` to be written when there is time; one with errors only if so requested."""
        sound = output.repeatable and (with_errors or not errors(output.diagnostics))
        if self._database is not None and self._writes and sound:
            self._pending[unit] = output

    def write(self, in_force: InForce) -> Iterator[None]:
        """Write the queued outputs, a few before each `yield`."""
        while self._pending:
            rows = self._next_rows()
            self._ask(functools.partial(_insert, rows=rows))
            yield
            if self._filled(1.0):
                yield from self._make_room(in_force)

    def take_problem(self) -> str:
        """Why nothing is kept, returned once; else empty."""
        problem, self._problem = self._problem, ""
        return problem

    def close(self) -> None:
        """Close the file. Unwritten outputs are lost."""
        self._pending.clear()
        self._closed = True
        database = self.__dict__.get("_open")
        if database is not None:
            with contextlib.suppress(sqlite3.Error):
                database.close()

    @property
    def _database(self) -> sqlite3.Connection | None:
        return None if self._closed or self._path is None else self._open

    @functools.cached_property
    def _open(self) -> sqlite3.Connection | None:
        """Opened at first use: a worker may start before the folder of the file is created."""
        assert self._path is not None
        try:
            return _opened(self._path) if self._writes else _read_only(self._path)
        except (sqlite3.Error, OSError) as error:
            self._give_up(str(error))
            return None

    def _next_rows(self) -> list[_Row]:
        rows: list[_Row] = []
        size = 0
        while self._pending and size < _SLICE_BYTES:
            unit = next(iter(self._pending))
            output = self._pending.pop(unit)
            key = self._key(unit, output.inputs)
            plain = _encoder.encode(_plain(output))
            rows.append((key, unit.maker, unit.item, _packed(key, plain)))
            size += len(plain)
        return rows

    def _filled(self, share: float) -> bool:
        return (self._ask(_used_bytes) or 0) > share * self._most_bytes

    def _make_room(self, in_force: InForce) -> Iterator[None]:
        """Delete outputs that are not in force, oldest first, until a quarter is free."""
        last = 0
        while self._filled(0.75):
            rows = self._ask(functools.partial(_rows_after, id=last))
            if not rows:
                self._give_up(
                    f"the outputs in force fill more than three quarters of {self._most_bytes:,} bytes"
                )
                return
            last = rows[-1][0]
            old = [id for id, key, *unit in rows if not self._is_in_force(key, Unit(*unit), in_force)]
            self._ask(functools.partial(_delete_rows, ids=old))
            yield

    def _is_in_force(self, key: bytes, unit: Unit, in_force: InForce) -> bool:
        output = in_force(unit)
        return output is not None and self._key(unit, output.inputs) == key

    def _key(self, unit: Unit, inputs: str) -> bytes:
        return bytes.fromhex(digest_all((_FORMAT, self._installed, *unit, inputs)))

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result; None without a file. A file that turns out unusable is ignored from now on."""
        if self._database is None:
            return None
        try:
            return question(self._database)
        except (sqlite3.Error, OSError) as error:
            self._give_up(str(error))
            if _is_damage(error) and self._path is not None and self._writes:
                with contextlib.suppress(OSError):
                    _delete(self._path)
            return None

    def _give_up(self, problem: str) -> None:
        if self._writes:
            self._problem = problem
        self.close()


_Row = tuple[bytes, str, str, bytes]


def _content(database: sqlite3.Connection, key: bytes) -> bytes | None:
    row = database.execute("SELECT content FROM output WHERE key = ?", (key,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], bytes) else None


def _insert(database: sqlite3.Connection, rows: list[_Row]) -> None:
    statement = "INSERT OR REPLACE INTO output (key, maker, item, content) VALUES (?, ?, ?, ?)"
    with database:
        database.execute("BEGIN")
        database.executemany(statement, rows)


def _used_bytes(database: sqlite3.Connection) -> int:
    pages, free, size = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _rows_after(database: sqlite3.Connection, id: int) -> list[tuple[int, bytes, str, str]]:
    query = "SELECT id, key, maker, item FROM output WHERE id > ? ORDER BY id LIMIT ?"
    return database.execute(query, (id, _SLICE_ROWS)).fetchall()


def _delete_rows(database: sqlite3.Connection, ids: list[int]) -> None:
    with database:
        database.execute("BEGIN")
        database.executemany("DELETE FROM output WHERE id = ?", [(id,) for id in ids])


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return _connected(path)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        _delete(path)
        return _connected(path)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        database.execute(_SCHEMA)
        database.execute("SELECT id, key, maker, item, content FROM output LIMIT 1").fetchone()
    except sqlite3.Error:
        database.close()
        raise
    return database


def _is_damage(error: Exception) -> bool:
    """Whether the file's content is damaged, rather than just inaccessible."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _plain(output: Output) -> Output:
    """`output` with addon values as plain data, the form in which they are put on assets."""
    if not output.additions:
        return output
    plain = [replace(item, value=msgspec.json.decode(canonical(item.value))) for item in output.additions]
    return replace(output, additions=tuple(plain))


def _packed(key: bytes, plain: bytes) -> bytes:
    content = zlib.compress(plain, _LEVEL)
    return _check(key, content) + content


def _unpacked(key: bytes, packed: bytes, inputs: str) -> Output | None:
    content = packed[_CHECK_BYTES:]
    if packed[:_CHECK_BYTES] != _check(key, content):
        return None
    try:
        output = _decoder.decode(zlib.decompress(content))
    except (zlib.error, msgspec.MsgspecError):
        return None
    Origins().share(output.assets)
    return output if output.inputs == inputs else None


def _check(key: bytes, content: bytes) -> bytes:
    return zlib.crc32(content, zlib.crc32(key)).to_bytes(_CHECK_BYTES, "big")

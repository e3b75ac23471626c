"""State files that are broken, locked, full or out of reach: our errors, and the last good state kept."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import Partition
from lehr.model.control import Control, ControlKind
from lehr.model.selector import Selector
from lehr.model.writes import Adopt, LiftControl, RecordDecision, SetControl, TakeLease
from lehr.store.claims import Owner
from lehr.store.sqlite import SqliteStore, connection
from lehr.store.sqlite.claims import ClaimFile
from lehr.testing.conformance.store.subject import (
    PARTITION,
    asset,
    contents,
    control,
    decision,
    entry,
    governed,
    key,
    publication,
    published,
    request,
)
from tests.codes import raises

NOBODY = 65_534


def explained(error: LehrError, path: Path) -> None:
    """It says what, why and how to mend it, and names the file."""
    assert str(path) in error.what
    assert error.why
    assert error.fix


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state file with something of everything in it, nothing of it left in the write-ahead log."""
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    governed(store)
    published(store, 1, *(asset(f"x{number}", "y" * 500, {"test.Addon": {}}) for number in range(40)))
    store.commit([request(store, "o1"), RecordDecision(decision("a")), Adopt(entry("b"))])
    store.commit([SetControl(control("c1"))])
    store.close()
    assert not path.with_name("state.sqlite-wal").exists()
    return path


def read_everything(store: SqliteStore) -> None:
    for sequence in (1, 2):
        contents(store, sequence)
    list(store.intent.changes(PARTITION, 1, 2))
    list(store.intent.heads(PARTITION))
    store.intent.incarnations(PARTITION, 10)
    store.intent.addon_since(key("x1"), "test.Addon")
    store.intent.last(key("x2"))
    store.records.controls(PARTITION, 0.0)
    store.records.operations(PARTITION)
    store.records.open_operations(PARTITION)
    store.records.decisions(PARTITION)
    list(store.records.ledgers(PARTITION))
    list(store.records.standings(PARTITION))


# --- broken ------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "content", [b"not a database at all, " * 100, b"\x00" * 8192, b"SQLite format 3\x00oops"]
)
def test_what_is_no_state_file_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, read_only: bool
) -> None:
    path = tmp_path / "state.sqlite"
    path.write_bytes(content)
    with raises("STO153", StalledError) as caught:
        SqliteStore(path, read_only=read_only)
    explained(caught.value, path)
    assert path.read_bytes() == content


def test_a_state_file_of_another_version_is_refused_and_left_alone(state: Path) -> None:
    with contextlib.closing(sqlite3.connect(state)) as db:
        db.execute("PRAGMA user_version = 99")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = state.read_bytes()
    with raises("STO147", StalledError, match="version 99") as caught:
        SqliteStore(state)
    assert caught.value.fix
    assert state.read_bytes() == before


@pytest.mark.parametrize("kept", [0.99, 0.9, 0.7, 0.5, 0.3, 0.1, 0.02])
def test_a_truncated_state_file_is_told_in_our_words(state: Path, kept: float) -> None:
    os.truncate(state, int(state.stat().st_size * kept))
    with raises("STO153", StalledError) as caught, contextlib.closing(SqliteStore(state)) as store:
        read_everything(store)
    explained(caught.value, state)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_state_file_is_read_or_told_in_our_words(state: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(state.read_bytes())
    for _ in range(10):
        place = (
            chance.randrange(len(content) // 2, len(content)) if seed % 2 else chance.randrange(len(content))
        )
        content[place : place + 16] = chance.randbytes(16)
    state.write_bytes(content)
    with contextlib.suppress(LehrError), contextlib.closing(SqliteStore(state)) as store:
        read_everything(store)
        store.commit([TakeLease(PARTITION, "one", 1.0), publication(2, asset("a", "9"), asset("x3", "9"))])


def test_rows_that_hold_nonsense_are_told_as_corrupt(state: Path) -> None:
    with contextlib.closing(sqlite3.connect(state)) as db:
        for table, column in (
            ("incarnation", "header"),
            ("asset_version", "origin"),
            ("operation", "body"),
            ("decision", "body"),
            ("control", "body"),
            ("ledger", "body"),
            ("standing", "condition"),
        ):
            db.execute(f"UPDATE {table} SET {column} = '{{\"odd' WHERE {column} IS NOT NULL")
        db.commit()
    with contextlib.closing(SqliteStore(state)) as store:
        intent, records = store.intent, store.records
        questions: list[Callable[[], object]] = [
            lambda: intent.newest(PARTITION),
            lambda: intent.incarnation(PARTITION, 1),
            lambda: intent.incarnations(PARTITION, 3),
            lambda: intent.asset(key("a"), 1),
            lambda: intent.last(key("a")),
            lambda: list(intent.assets(PARTITION, 1)),
            lambda: list(intent.assets(PARTITION, 2)),
            lambda: list(intent.changes(PARTITION, 0, 2)),
            lambda: intent.addon_since(key("x1"), "test.Addon"),
            lambda: records.controls(PARTITION, 0.0),
            lambda: records.operations(PARTITION),
            lambda: records.ledger(key("b")),
            lambda: list(records.ledgers(PARTITION)),
            lambda: records.standing(key("a")),
            lambda: list(records.standings(PARTITION)),
            lambda: records.decisions(PARTITION),
            lambda: store.commit([publication(2, asset("a", "9"))]),
        ]
        for question in questions:
            with raises("MOD101", StalledError) as caught:
                question()
            explained(caught.value, state)
        assert records.open_operations(PARTITION) == []
        assert records.damaged_operations(PARTITION), "told apart from those that are not there"


# --- full --------------------------------------------------------------------


@contextlib.contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_writes_nothing_loses_nothing_and_is_over_when_there_is_room(state: Path) -> None:
    large = publication(2, *(asset(f"large{number}", "z" * 10_000) for number in range(100)))
    with contextlib.closing(SqliteStore(state)) as store:
        before = contents(store, 2)
        with files_limited_to(200_000):
            for _ in range(2):
                with pytest.raises(TransientError) as caught:
                    store.commit([TakeLease(PARTITION, "one", 1.0), large])
                explained(caught.value, state)
            assert contents(store, 2) == before, "what is there can be read"
            assert store.records.open_operations(PARTITION), "no started operation is forgotten"
        assert store.commit([TakeLease(PARTITION, "one", 1.0), large])[0] == 2, "no lease was taken meanwhile"
        assert len(contents(store, 3)) == len(before) + 100


def test_a_database_that_may_not_grow_is_told_as_full(state: Path) -> None:
    with contextlib.closing(SqliteStore(state)) as store:
        assert store._writer is not None
        store._writer.execute("PRAGMA max_page_count = 1")
        with raises("STO149", TransientError) as caught:
            store.commit([publication(2, *(asset(f"n{number}", "z" * 5000) for number in range(50)))])
        explained(caught.value, state)
        assert len(store.intent.incarnations(PARTITION, 10)) == 2


@pytest.mark.parametrize("size", [0, 1000, 5000, 20_000, 60_000])
def test_a_disk_that_is_full_from_the_start_is_told_and_a_later_start_succeeds(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "state.sqlite"
    with files_limited_to(size), pytest.raises(TransientError) as caught:
        SqliteStore(path)
    explained(caught.value, path)
    with contextlib.closing(SqliteStore(path)) as store:
        published(store, 0, asset("a"))


# --- locked ------------------------------------------------------------------

HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def locked_by_another_process(path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield


def test_while_another_process_writes_reading_goes_on_and_writing_is_refused(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    with contextlib.closing(SqliteStore(state)) as store:
        with locked_by_another_process(state):
            with raises("STO148", TransientError) as caught:
                store.commit([TakeLease(PARTITION, "one", 1.0)])
            explained(caught.value, state)
            assert len(contents(store, 1)) == 4
            with contextlib.closing(SqliteStore(state, read_only=True)) as other:
                assert len(contents(other, 1)) == 4
        assert store.commit([TakeLease(PARTITION, "one", 1.0)]) == [2]


OPEN = """
import sys
from pathlib import Path
from lehr.store.sqlite import SqliteStore
from lehr.model.writes import Adopt, RecordDecision, SetControl, TakeLease
store = SqliteStore(Path(sys.argv[1]))
print(store.commit([TakeLease("one", "one", 1.0)])[0])
store.close()
"""


def test_processes_that_make_the_state_file_at_once_share_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPEN, str(tmp_path / "state.sqlite")]
    with contextlib.ExitStack() as ended:
        started = [
            ended.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            for _ in range(4)
        ]
        printed = [process.communicate(timeout=150)[0] for process in started]
    assert sorted(printed) == ["1\n", "2\n", "3\n", "4\n"], "each lease is somebody's own"


@contextlib.contextmanager
def written_for_a_moment(path: Path) -> Iterator[None]:
    """Another writer has begun to write `path`, which has no log yet, and ends soon."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.closing(other):
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, other.execute, ["ROLLBACK"])
        ending.start()
        try:
            yield
        finally:
            ending.join()


@pytest.fixture
def restored(state: Path) -> Path:
    """A state file as a backup leaves it: without a log."""
    with contextlib.closing(sqlite3.connect(state)) as db:
        assert db.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    return state


@pytest.mark.parametrize("new", [False, True])
def test_a_process_that_opens_the_state_file_at_the_same_time_is_waited_for(
    new: bool, restored: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new.sqlite" if new else restored
    with written_for_a_moment(path), contextlib.closing(SqliteStore(path)) as store:
        published(store, 0 if new else 2, asset("a"))


@pytest.mark.parametrize("new", [False, True])
def test_a_process_that_does_not_let_go_of_the_state_file_is_told(
    new: bool, restored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    path = tmp_path / "new.sqlite" if new else restored
    with locked_by_another_process(path), raises("STO148", TransientError) as caught:
        SqliteStore(path)
    explained(caught.value, path)


def test_a_register_of_claims_that_another_process_creates_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "claims.sqlite"
    with written_for_a_moment(path):
        assert not ClaimFile(path, lambda _state: True).known(Owner("store", PARTITION, "state"))


# --- out of reach ----------------------------------------------------------------


@pytest.fixture
def folder_of_nobody() -> Iterator[Path]:
    """A folder in which an ordinary user may read and not write; the test runs as that user."""
    folder = Path(tempfile.mkdtemp(prefix="lehr-test-"))
    with contextlib.closing(SqliteStore(folder / "state.sqlite")) as store:
        published(store, 0, asset("a"))
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(stat.S_IRWXU)
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["state.sqlite", "new.sqlite"])
def test_a_folder_that_may_not_be_written_to_is_named(folder_of_nobody: Path, name: str) -> None:
    path = folder_of_nobody / name
    with raises("STO151", StalledError) as caught:
        SqliteStore(path)
    explained(caught.value, path)


@pytest.mark.parametrize("path", ["missing/state.sqlite", "folder"])
def test_a_path_that_leads_nowhere_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StalledError) as caught:
        SqliteStore(tmp_path / path)
    explained(caught.value, tmp_path / path)


def test_for_reading_only_nothing_is_made_and_nothing_is_written(state: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.sqlite"
    with raises("STO142", StalledError):
        SqliteStore(missing, read_only=True)
    assert not missing.exists()
    with contextlib.closing(SqliteStore(state, read_only=True)) as store:
        assert len(contents(store, 1)) == 4
        with raises("STO139", StalledError):
            store.commit([TakeLease(PARTITION, "one", 1.0)])


def test_an_empty_file_has_no_state_to_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    path.touch()
    with raises("STO144", StalledError) as caught:
        SqliteStore(path, read_only=True)
    assert caught.value.fix


# --- killed ------------------------------------------------------------------

PUBLISH = """
import sys
from pathlib import Path
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import asset, published
store = SqliteStore(Path(sys.argv[1]))
for number in range(100_000):
    published(store, number, asset("a", str(number)))
    print(number + 1, flush=True)
"""


def test_what_was_answered_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", PUBLISH, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        answered = [int(process.stdout.readline()) for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        answered += [int(line) for line in process.stdout if line.endswith("\n")]
    with contextlib.closing(SqliteStore(path)) as store:
        newest = store.intent.newest(PARTITION)
        assert newest is not None
        assert newest.sequence in (answered[-1], answered[-1] + 1)
        assert contents(store, answered[-1]) == [asset("a", str(answered[-1] - 1))]


def test_a_write_that_breaks_a_rule_of_the_file_is_not_tried_for_ever(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    control = Control(
        id="one",
        kind=ControlKind.PAUSE,
        partition=Partition("p"),
        selector=Selector(all=True),
        reason="r",
        actor="a",
        at=1.0,
    )
    store.commit([SetControl(control)])
    with raises("STO150", StalledError):
        store.commit([SetControl(control)])
    store.commit([LiftControl(Partition("p"), "one", 2.0)])
    store.close()

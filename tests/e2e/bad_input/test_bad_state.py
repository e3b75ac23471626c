"""Given a state that is damaged, held or out of reach, when it is used, then that is said, without harm."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, strict, until


@pytest.fixture(scope="module")
def converged(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("state"))
    workspace.declare_file("motd", "welcome\n")
    workspace.commit()
    done = workspace.once()
    assert done.code == 0, done.err
    shutil.copytree(workspace.state, workspace.folder / "good")
    return workspace


@pytest.fixture
def shop(converged: Workspace) -> Workspace:
    """A workspace that was converged once, with the state that it had then."""
    shutil.rmtree(converged.state, ignore_errors=True)
    shutil.copytree(converged.folder / "good", converged.state)
    return converged


def file(shop: Workspace) -> Path:
    return shop.state / "state.sqlite"


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def garbage(path: Path) -> None:
    path.write_bytes(b"out of cheese\n" * 1000)


def truncated(path: Path) -> None:
    os.truncate(path, 20_000)


def overwritten(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * 20_000 + content[28_192:])


def foreign(path: Path) -> None:
    path.unlink()
    with database(path) as connection:
        connection.execute("CREATE TABLE cookies (name)")
        connection.execute("PRAGMA user_version = 2")


def from_the_future(path: Path) -> None:
    with database(path) as connection:
        connection.execute("PRAGMA user_version = 99")


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (garbage, ("cannot be read", "why: file is not a database", "restore it from a backup")),
        (truncated, ("cannot be read", "why: database disk image is malformed", "without its history")),
        (overwritten, ("cannot be read", "why: database disk image is malformed", "move it away")),
        (foreign, ("is not a state file of Lehr", "a database of another program", "--state")),
        (from_the_future, ("has version 99, and this Lehr reads", "run the version of Lehr that wrote it")),
        (a_directory, ("is a directory", "fix: move it away")),
    ],
)
def test_a_state_file_that_cannot_be_read_is_left_as_it_is_and_production_too(
    damage: Callable[[Path], None], words: tuple[str, ...], shop: Workspace
) -> None:
    damage(file(shop))
    before = b"" if damage is a_directory else file(shop).read_bytes()
    motd = (shop.production / "motd.txt").stat()
    shop.once().failed(str(file(shop)), *words)
    shop.lehr("why", "motd").failed(str(file(shop)), *words)
    assert (shop.production / "motd.txt").stat() == motd
    if damage in (garbage, foreign):  # of the others it may have been seen only while it was written
        assert file(shop).read_bytes() == before


def test_without_its_state_it_starts_anew_from_git_and_from_production(shop: Workspace) -> None:
    before = (shop.production / "motd.txt").stat()
    shutil.rmtree(shop.state)
    assert shop.once().code == 0
    assert "production already matched; nothing was pushed" in shop.lehr("why", "motd").out
    assert (shop.production / "motd.txt").stat() == before


def test_two_on_one_state_is_one_too_many(shop: Workspace) -> None:
    with shop.run() as running:
        running.says("production is as intended")
        shop.once().failed(
            f"another `lehr run` uses state folder {shop.state}",
            f"process {running.pid} holds its lock",
            "--state",
        )
    assert shop.once().code == 0


def test_a_lock_left_by_a_killed_run_holds_nobody_up(shop: Workspace) -> None:
    (shop.state / "lock").write_text("4194304\n")
    (shop.state / "control.sock").touch()
    with shop.run() as running:
        running.says("production is as intended")
        assert "yes" in shop.lehr("status").out


def test_while_somebody_else_locks_the_state_pushes_wait(shop: Workspace) -> None:
    motd = shop.production / "motd.txt"
    with shop.run() as running, database(file(shop)) as other:
        running.says("production is as intended")
        other.execute("BEGIN IMMEDIATE")
        motd.unlink()
        running.says("store unavailable", "is locked: another program holds it")
        assert not motd.exists()
        assert "trouble" in shop.lehr("status").out
        assert "may be out of date" in shop.lehr("why", "motd").out
        other.execute("ROLLBACK")
        until("the push went", motd.exists, running.said)
        running.says("store available again")


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_state_that_may_not_be_written_is_said(what: str, shop: Workspace) -> None:
    place, mode = (shop.state, 0o500) if what == "folder" else (file(shop), 0o400)
    before = place.stat().st_mode
    place.chmod(mode)
    try:
        shop.once(prefix=strict()).failed(
            f"{file(shop)} cannot be opened", "readonly database", "this user may write there"
        )
    finally:
        place.chmod(before)


def test_a_state_folder_that_cannot_be_made_is_said(shop: Workspace) -> None:
    (shop.folder / "file").touch()
    done = shop.once("--state", str(shop.folder / "file" / "state"))
    done.failed("error[CTL119]", f"{shop.folder}/file/state", "Not a directory", "--state")


def test_a_path_that_is_too_long_for_a_socket_is_not_too_long_for_commands(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, state=tmp_path / ("deep" * 30) / ("deeper" * 30))
    workspace.declare_file("motd", "welcome\n")
    workspace.commit()
    with workspace.run() as running:
        running.says("production is as intended")
        assert len(str(workspace.state / "control.sock")) > 300
        assert workspace.lehr("freeze", "motd", "--reason", "because").code == 0
        assert "because" in workspace.lehr("why", "motd").out


def test_commands_with_nobody_to_carry_them_out_say_so(shop: Workspace) -> None:
    shop.lehr("freeze", "motd", "--reason", "because").failed("error[CTL101]")

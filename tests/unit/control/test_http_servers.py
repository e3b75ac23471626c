"""The token of a state, and which servers of this user answer for it."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lehr.control.http_servers import (
    TOKEN_FILE,
    TOKEN_VARIABLE,
    HttpServer,
    make_token,
    recorded,
    running_servers,
    token_for,
    token_of,
)

URL = "http://127.0.0.1:8470"


@pytest.fixture(autouse=True)
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where states are by default, and servers are recorded."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    return tmp_path / "lehr"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_token_is_made_once_and_only_its_owner_can_read_it(state: Path) -> None:
    token = make_token(state)
    assert len(token) >= 43
    assert make_token(state) == token_of(state) == token
    assert stat.S_IMODE((state / TOKEN_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_each_state_has_its_own(tmp_path: Path) -> None:
    assert make_token(tmp_path / "a") != make_token(tmp_path / "b")


def test_one_that_is_removed_is_replaced(state: Path) -> None:
    before = make_token(state)
    (state / TOKEN_FILE).unlink()
    assert token_of(state) == ""
    assert make_token(state) != before


def test_servers_that_start_together_have_the_same(state: Path) -> None:
    state.mkdir(mode=0o700)
    command = [sys.executable, "-m", "lehr", "state", "token", "--state", str(state)]
    with contextlib.ExitStack() as ended:
        started = [ended.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE)) for _ in range(4)]
        printed = {process.communicate()[0].strip() for process in started}
    assert printed == {make_token(state).encode()}


def test_a_server_is_known_while_it_answers(state: Path) -> None:
    make_token(state)
    with recorded(URL, state):
        assert running_servers() == [HttpServer(URL, str(state), os.getpid())]
        assert token_for(URL) == token_of(state)
    assert running_servers() == []
    assert token_for(URL) == ""


def test_a_server_that_ends_leaves_the_record_of_its_successor(state: Path, states: Path) -> None:
    make_token(state)
    path = states / "servers" / "127.0.0.1:8470"
    with recorded(URL, state), path.open() as file:
        successor = subprocess.Popen(["sleep", "100"], stdin=file)
        left = msgspec.structs.replace(running_servers()[0], process=successor.pid)
        path.write_bytes(msgspec.json.encode(left))
        assert running_servers() == [left]
    assert running_servers() == [left]
    successor.kill()
    successor.wait()


def test_the_token_of_the_environment_is_sent_wherever_one_is_needed(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, " given\n")
    assert token_for("https://lehr.example.org") == "given"


@pytest.mark.parametrize(
    ("listening", "url", "sent"),
    [
        (URL, "http://127.0.0.1:8470/", True),
        ("http://0.0.0.0:8470", URL, True),
        ("http://[::]:8470", "http://[::1]:8470", True),
        ("http://[::1]:8470", "http://[::1]:8470", True),
        (URL, "http://localhost:8470", False),  # may be ::1, where another program listens
        (URL, "http://[::1]:8470", False),
        (URL, "http://127.0.0.1:8471", False),
        (URL, "http://127.0.0.1", False),
        (URL, "https://127.0.0.1:8470", False),
        (URL, "http://example.org:8470", False),
        ("http://0.0.0.0:8470", "http://192.0.2.1:8470", False),
    ],
)
def test_the_token_is_sent_to_no_other_program(state: Path, listening: str, url: str, sent: bool) -> None:
    make_token(state)
    with recorded(listening, state):
        assert bool(token_for(url)) == sent


def test_a_server_that_was_killed_gets_no_token(state: Path, states: Path) -> None:
    make_token(state)
    with recorded(URL, state):
        left = (states / "servers" / "127.0.0.1:8470").read_bytes()
    ended = subprocess.Popen(["true"])
    ended.wait()
    for process in (ended.pid, os.getpid()):  # which may be another process by now
        record = msgspec.structs.replace(msgspec.json.decode(left, type=HttpServer), process=process)
        (states / "servers" / "127.0.0.1:8470").write_bytes(msgspec.json.encode(record))
        assert token_for(URL) == ""


def test_records_that_others_could_write_are_ignored(state: Path, states: Path) -> None:
    make_token(state)
    with recorded(URL, state):
        (states / "servers").chmod(0o777)
        assert running_servers() == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"url": 1}', b"\xff"])
def test_a_broken_record_is_ignored(states: Path, state: Path, content: bytes) -> None:
    make_token(state)
    with recorded(URL, state):
        (states / "servers" / "127.0.0.1:1").write_bytes(content)
        assert [item.url for item in running_servers()] == [URL]


def test_without_a_place_for_records_a_server_answers_all_the_same(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with recorded(URL, state):
        assert running_servers() == []


def test_browsers_get_an_address_that_they_can_open() -> None:
    assert HttpServer("http://0.0.0.0:8470", "", 1).local_url == URL
    assert HttpServer("http://[::]:8470", "", 1).local_url == URL
    assert HttpServer("http://192.0.2.1:8470", "", 1).local_url == "http://192.0.2.1:8470"

"""`lehr adopt`, with real production: files and databases that were there before Lehr."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lehr.base import documents
from lehr.base.errors import LehrError
from lehr.cli.adopt import adopt
from lehr.control.state_folder import default_state
from tests.ports import free_ports

PASSWORD = "hunter2" * 4
LISTEN = """import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True: server.accept()
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that declares nothing, in a directory with production in it."""
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "shop.conf").write_text("# prices\r\ncurrency=EUR\n")
    (tmp_path / "etc" / "version").write_text("1e3")
    (tmp_path / "etc" / "version").chmod(0o600)
    (tmp_path / "etc" / "logo").write_bytes(b"\x89PNG\r\n")
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT NOT NULL DEFAULT 'none');"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(adopt, arguments)


def lehr(*arguments: str) -> str:
    command = [sys.executable, "-m", "lehr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def values(text: str) -> list[Any]:
    loaded = documents.load("drafts.yaml", text.encode())
    assert not loaded.diagnostics
    return [document.value for document in loaded.documents]


def production(folder: Path) -> dict[str, object]:
    """All that adopting could touch; a file that was replaced has another inode."""
    found = [*(folder / "etc").iterdir(), folder / "shop.sqlite"]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in found}


def test_what_is_adopted_is_as_intended_at_the_first_look_and_never_pushed(shop: Path) -> None:
    before = production(shop)
    assert call("lehr.File", "etc/*", "--write", "assets").exit_code == 0
    assert call("lehr.DatabaseSchema", "sqlite:shop.sqlite", "--write", "assets").exit_code == 0
    assert "is valid: 6 assets" in lehr("validate")
    assert "4 as intended\n" in lehr("plan", "--exit-code")
    assert "production is as intended, 4 assets" in lehr("run", "--once")
    for file in (shop / "assets").iterdir():  # what holds pushes back goes first, as the file says
        head, _, rest = file.read_text().partition("---\n")
        assert "lehr.ObserveOnly" in head
        file.write_text(rest)
    assert "production is as intended, 4 assets" in lehr("run", "--once")
    assert json.loads(lehr("get", "operations", "-o", "json")) == []
    assert production(shop) == before


def test_programs_whose_intent_was_lost_are_adopted_without_a_restart(shop: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", LISTEN, "{port}"]
    ports = [{"name": "tcp", "base": free_ports(2)}]
    payload = {"command": command, "ports": ports, "replicas": 2, "environment": {"WHERE": "at {port}"}}
    (shop / "assets").mkdir()
    web = shop / "assets" / "web.json"
    web.write_text(json.dumps({"id": "shop/web", "type": "lehr.Process", "payload": payload}))
    try:
        lehr("run", "--once")
        web.unlink()
        assert call("lehr.Process", "shop/*", "--write", "assets").exit_code == 0
        assert "production is as intended" in lehr("run", "--once")
        assert len(json.loads(lehr("get", "operations", "-o", "json"))) == 1
    finally:
        for record in default_state(shop).glob("supervisor/*/supervisord.pid"):
            os.kill(int(record.read_text()), signal.SIGTERM)
    adopted = values((shop / "assets" / "adopted-process.yaml").read_text())[1]["payload"]
    assert (adopted["command"], adopted["environment"]) == (command, {"WHERE": "at {port}"})


def test_drafts_go_to_stdout_and_what_to_do_next_to_stderr(shop: Path) -> None:
    result = call("lehr.File", "etc/*")
    observed, *assets = values(result.stdout)
    assert observed["type"] == "lehr.ObserveOnly"
    assert observed["payload"]["select"] == {"ids": [item["id"] for item in assets]}
    assert {item["payload"]["path"] for item in assets} == {"etc/logo", "etc/shop.conf", "etc/version"}
    assert "lehr plan" in result.stderr
    assert sorted(path.name for path in shop.iterdir()) == ["etc", "lehr.yaml", "shop.sqlite"]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_looks_like_a_secret_is_not_told_and_its_asset_not_adopted(form: str, shop: Path) -> None:
    key = "-----BEGIN " + "PRIVATE KEY-----"
    (shop / "etc" / "key").write_text(f"{key}\n{PASSWORD}\n")
    result = call("lehr.File", "etc/key", "etc/version", "-o", form)
    assert result.exit_code == 0
    assert PASSWORD not in result.output
    assert key not in result.output
    assert "looks like a secret" in result.stdout
    if form == "yaml":
        assert [item["id"] for item in values(result.stdout)] == ["observe/adopted-file", "file/etc/version"]
        assert "#   path: etc/key" in result.stdout.splitlines()
    else:
        assert [bool(item["obstacle"]) for item in json.loads(result.stdout)] == [True, False]


@pytest.mark.parametrize(
    "line",
    [
        "password: correct",
        "  DB_PASSWORD='correct'",
        "export PGPASSWD=correct",
        '"passphrase": "correct"',
        "#pwd = correct",
    ],
)
def test_a_line_that_assigns_a_password_makes_its_file_a_comment(line: str, shop: Path) -> None:
    (shop / "etc" / "db.conf").write_text(f"host: db\n{line}\nport: 5432\n")
    result = call("lehr.File", "etc/db.conf")
    assert values(result.stdout) == []
    assert "correct" not in result.stdout
    assert "looks like a secret" in result.stdout


@pytest.mark.parametrize(
    "line", ["password_file: /run/secrets/db", "monkey: business", "password:", "pass: $DB_PASS"]
)
def test_a_line_that_tells_no_secret_is_adopted(line: str, shop: Path) -> None:
    (shop / "etc" / "db.conf").write_text(f"{line}\nport: 5432\n")
    assert len(values(call("lehr.File", "etc/db.conf").stdout)) == 2


def test_passwords_on_command_lines_are_not_told(shop: Path) -> None:
    port = free_ports(1)
    command = [
        sys.executable,
        "-c",
        LISTEN,
        str(port),
        "--db-password",
        "correct",
        "--passphrase=horse",
        "staple",
    ]
    with subprocess.Popen(command) as started:
        try:
            while isinstance((result := call("lehr.Process", str(port))).exception, LehrError):
                assert started.poll() is None
        finally:
            started.kill()
    assert "correct" not in result.stdout
    assert "horse" not in result.stdout
    assert "staple" in result.stdout
    assert values(result.stdout) == []


def test_where_nothing_can_be_adopted_there_are_comments_alone(shop: Path) -> None:
    (shop / "etc" / "link").symlink_to("shop.conf")
    result = call("lehr.File", "etc/link")
    assert values(result.stdout) == []
    assert "Not adopted: " in result.stdout
    assert "symbolic link" in result.stderr
    assert "(file/etc/link)" in result.stderr
    assert "lehr plan" not in result.stderr


def test_nothing_is_overwritten(shop: Path) -> None:
    assert call("lehr.File", "etc/*", "--write", "assets").exit_code == 0
    written = (shop / "assets" / "adopted-file.yaml").read_bytes()
    again = call("lehr.File", "etc/logo", "--write", "assets")
    assert isinstance(again.exception, LehrError)
    assert again.exception.code == "CLI102"
    assert (shop / "assets" / "adopted-file.yaml").read_bytes() == written
    assert call("lehr.File", "etc/logo", "--write", "assets", "--name", "logo").exit_code == 0
    assert "id: observe/logo\n" in (shop / "assets" / "logo.yaml").read_text()


def test_a_file_that_the_workspace_does_not_read_is_said_to_be_none(shop: Path) -> None:
    assert "does not include it" in call("lehr.File", "etc/*", "--write", "elsewhere").stderr
    assert "does not include it" not in call("lehr.File", "etc/*", "--write", "assets").stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["lehr.Command", "x"], "SDK102"),
        (["lehr.File", "none/*"], "FIL102"),
        (["lehr.File", "etc/*", "--workspace", "etc"], "CLI101"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: list[str], code: str, shop: Path) -> None:
    result = call(*arguments)
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == code


def test_a_name_that_no_id_can_have_is_a_wrong_call(shop: Path) -> None:
    result = call("lehr.File", "etc/*", "--name", "../x")
    assert result.exit_code == 2
    assert "is not valid in an asset id" in result.output


def test_a_type_that_nobody_serves_is_a_wrong_call(shop: Path) -> None:
    result = call("lehr.Files", "etc/*")
    assert result.exit_code == 2
    assert "lehr.Command, lehr.DatabaseSchema, lehr.Directory, lehr.File" in result.output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said_to_be_so(shop: Path) -> None:
    (shop / "assets").mkdir(mode=0o500)
    result = call("lehr.File", "etc/*", "--write", "assets")
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "CLI103"

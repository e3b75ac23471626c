"""`lehr secret`: plain text comes in unseen, and nothing but ciphertext goes into the workspace."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import stat
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.secret import secret
from lehr.control.state_folder import default_state
from lehr.secrets import IDENTITY_FILE, age
from lehr.secrets.encrypted_files import EncryptedFiles
from lehr.secrets.memory import memory_folder

CANARY = "canary-4711-canary"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in git, which is the current directory."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "LEHR_"))]:
        monkeypatch.delenv(name)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "lehr.yaml").write_text("partition: shop\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    monkeypatch.chdir(workspace)
    return workspace


def run(*arguments: str, given: str | bytes | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(secret, arguments, input=given)
    assert result.exit_code == code, result.output + repr(result.exception)
    assert CANARY not in result.output + str(result.exception)
    return result


def refused(*arguments: str, given: str | bytes | None = None) -> str:
    """The code of the error."""
    error = run(*arguments, given=given, code=1).exception
    assert isinstance(error, LehrError)
    return error.code


def decrypted(path: str) -> bytes:
    return EncryptedFiles(Path(), default_state(Path()), os.environ).read(path)


def holding_canary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


@pytest.fixture
def keys(workspace: Path) -> str:
    """The public key of a key pair that was made and added."""
    return run("keygen", "--add", "--name", "here").stdout.strip()


def test_a_key_pair_is_made_with_a_private_key_for_its_owner_alone(workspace: Path) -> None:
    made = run("keygen", "--add", "--name", "build server")
    identity = default_state(workspace) / "age-identity.txt"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    assert "AGE-SECRET-KEY" not in made.output
    recipient = made.stdout.strip()
    assert (workspace / "secrets/recipients.txt").read_text() == f"# build server\n{recipient}\n"
    found = json.loads(run("show-recipients", "-o", "json").stdout)
    assert found == [{"name": "build server", "key": recipient, "here": True}]


def test_a_private_key_is_never_overwritten_nor_put_where_git_takes_it(workspace: Path, keys: str) -> None:
    before = (default_state(workspace) / "age-identity.txt").read_text()
    assert refused("keygen") == "CLI145"
    assert (default_state(workspace) / "age-identity.txt").read_text() == before
    assert refused("keygen", "--output", "secrets/key.txt") == "CLI144"
    assert not (workspace / "secrets/key.txt").exists()


def test_a_private_key_for_a_person_needs_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("keygen", "--output", "ada.txt")
    assert (tmp_path / "ada.txt").read_text().count("AGE-SECRET-KEY-1") == 1


def test_a_value_is_kept_beside_the_others_and_its_reference_told(workspace: Path, keys: str) -> None:
    first = run("encrypt", "secrets/db.yaml.age#db.password", given=f"{CANARY}\n")
    assert yaml.safe_load(first.stdout) == {"secret": "age:secrets/db.yaml.age#db.password"}
    run("encrypt", "secrets/db.yaml.age#other", given="no")
    run("encrypt", "secrets/db.json.age#a", given="1")
    assert yaml.safe_load(decrypted("secrets/db.yaml.age")) == {"db": {"password": CANARY}, "other": "no"}
    assert json.loads(decrypted("secrets/db.json.age")) == {"a": "1"}
    assert holding_canary(workspace) == []


def test_a_whole_file_is_kept_byte_by_byte_and_replaced_only_on_demand(keys: str) -> None:
    run("encrypt", "tls.key.age", given=b"\x00\xff\n")
    assert decrypted("tls.key.age") == b"\x00\xff\n"
    assert refused("encrypt", "tls.key.age", given="x") == "CLI135"
    run("encrypt", "tls.key.age", "--replace", given="x")
    assert decrypted("tls.key.age") == b"x"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("secrets/db.yaml", "SEC111"),
        ("../db.age", "CLI147"),
        ("a.age#a..b", "CLI134"),
        ("a.age#", "CLI134"),
        ("a.toml.age#a", "SEC117"),
    ],
)
def test_what_cannot_be_referred_to_is_not_made(workspace: Path, keys: str, target: str, code: str) -> None:
    assert refused("encrypt", target, given=CANARY) == code
    assert not list(workspace.rglob("*.age"))


def test_nothing_is_encrypted_for_nobody(workspace: Path) -> None:
    assert refused("encrypt", "a.age", given=CANARY) == "SEC112"


def test_an_empty_secret_is_a_mistake(keys: str) -> None:
    assert refused("encrypt", "a.age#b", given="\n") == "CLI138"
    assert refused("encrypt", "a.age", given="") == "CLI138"


def test_what_is_not_encrypted_is_never_replaced(workspace: Path, keys: str) -> None:
    (workspace / "a.age").write_text(f"password: {CANARY}")
    assert refused("encrypt", "a.age#b", given="x") == "SEC116"
    assert refused("encrypt", "a.age", "--replace", given="x") == "SEC116"
    assert refused("edit", "a.age") == "SEC116"
    (workspace / "b.age").symlink_to(workspace.parent / "outside")
    assert refused("encrypt", "b.age", "--replace", given="x") == "SEC114"


def test_plain_text_that_lies_beside_the_file_is_pointed_at(workspace: Path, keys: str) -> None:
    (workspace / "db.yaml").write_text("password: x\n")
    assert "note: db.yaml contains it in plain text" in run("encrypt", "db.yaml.age#a", given="x").stderr


def test_every_line_that_is_no_public_key_is_shown_and_a_private_one_is_not(workspace: Path) -> None:
    private = age.generate().line
    (workspace / "secrets").mkdir()
    (workspace / "secrets/recipients.txt").write_text(f"# a\nnonsense\n\n{private}\n")
    for arguments in (("show-recipients",), ("encrypt", "a.age"), ("rotate",), ("keygen", "--add")):
        said = run(*arguments, code=1).output
        assert "secrets/recipients.txt:2:1" in said
        assert "secrets/recipients.txt:4:1" in said
        assert private not in said
    assert not default_state(workspace).exists()


def test_rotating_encrypts_for_those_who_are_recipients_then(
    workspace: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("encrypt", "a.yaml.age#x", given=CANARY)
    run("encrypt", "secrets/b.age", given=CANARY)
    other = age.generate()
    (workspace / "secrets/recipients.txt").write_text(other.recipient + "\n")
    assert run("rotate", "--dry-run", "-o", "name").stdout.split() == ["a.yaml.age", "secrets/b.age"]
    assert decrypted("a.yaml.age")
    run("rotate")
    key = workspace.parent / "other.txt"
    key.write_text(other.line)
    key.chmod(0o600)
    monkeypatch.setenv(IDENTITY_FILE, str(key))
    assert decrypted("secrets/b.age") == CANARY.encode()
    monkeypatch.delenv(IDENTITY_FILE)
    said = run("rotate", code=1).stderr
    assert said.count("encrypted for keys") == 2
    assert "nothing was written" in said


# --- editing --------------------------------------------------------------------------------


def editor(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(program))


def test_a_file_is_edited_in_memory_and_no_trace_is_left(
    workspace: Path, tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("encrypt", "db.yaml.age#a", given=CANARY)
    editor(tmp_path, f'stat -f -c "%T" "$1" > {tmp_path}/kind; stat -c "%a %n" "$1" > {tmp_path}/file; '
           'echo "b: 2 # why" >> "$1"; cp "$1" "$1~"', monkeypatch)  # fmt: skip
    run("edit", "db.yaml.age")
    assert decrypted("db.yaml.age") == f"a: {CANARY}\nb: 2 # why\n".encode()
    mode, path = (tmp_path / "file").read_text().split()
    assert ((tmp_path / "kind").read_text().strip(), mode) == ("tmpfs", "600")
    assert not Path(path).parent.exists()
    assert holding_canary(workspace) == []


def test_an_edit_that_changes_nothing_fails_or_cannot_be_read_writes_nothing(
    workspace: Path, tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("encrypt", "db.yaml.age#a", given=CANARY)
    before = (workspace / "db.yaml.age").read_bytes()
    for script, code in (("exit 1", "CLI143"), ('echo "[" > "$1"', "CLI141")):
        editor(tmp_path, script, monkeypatch)
        assert refused("edit", "db.yaml.age") == code
    editor(tmp_path, "true", monkeypatch)
    run("edit", "db.yaml.age")
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    assert refused("edit", "db.yaml.age") == "CLI142"
    assert (workspace / "db.yaml.age").read_bytes() == before


def test_a_file_that_is_not_there_is_made_by_editing(
    tmp_path: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, f'echo "a: {CANARY}" > "$1"', monkeypatch)
    run("edit", "new.yaml.age")
    assert decrypted("new.yaml.age") == f"a: {CANARY}\n".encode()


@pytest.mark.usefixtures("default_signals")
def test_plain_text_goes_when_the_terminal_does() -> None:
    folders = []

    def edit() -> None:
        with memory_folder(os.environ) as folder:
            folders.append(folder)
            (folder / "plain").write_text(CANARY)
            signal.raise_signal(signal.SIGHUP)

    with pytest.raises(SystemExit):
        edit()
    assert not folders[0].exists()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def seen(terminal: int, rest: bytes = b"") -> bytes:
    """What the terminal shows now, after `rest`."""
    while select.select([terminal], [], [], 0.02)[0]:
        try:
            rest += os.read(terminal, 4096)
        except OSError:  # the other end is gone
            break
    return rest


@pytest.mark.parametrize("redirected", [False, True], ids=["terminal", "messages to a file"])
def test_a_person_is_asked_twice_and_what_is_typed_is_not_seen(
    workspace: Path, keys: str, redirected: bool
) -> None:
    command = [sys.executable, "-m", "lehr", "secret", "encrypt", "typed.yaml.age#a"]
    log = workspace.parent / "log"
    log.touch()
    pid, terminal = pty.fork()
    if pid == 0:
        if redirected:
            os.dup2(os.open(log, os.O_WRONLY), 2)
        os.execv(command[0], command)
    shown, questions = b"", log.read_bytes
    for question in (b"Secret:", b"Repeat for confirmation:"):
        # What is typed before the echo is off is thrown away.
        while question not in shown + questions() or termios.tcgetattr(terminal)[3] & termios.ECHO:
            shown = seen(terminal, shown)
            assert os.waitpid(pid, os.WNOHANG) == (0, 0), shown + questions()
        os.write(terminal, f"{CANARY}\n".encode())
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        shown = seen(terminal, shown)
    shown = seen(terminal, shown)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(ended[1]) == 0, shown + questions()
    assert CANARY.encode() not in shown + questions()
    assert yaml.safe_load(decrypted("typed.yaml.age")) == {"a": CANARY}


def test_the_doctor_says_whether_a_private_key_can_be_used(
    workspace: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lehr.cli.doctor import doctor

    def said() -> dict[str, str]:
        result = CliRunner().invoke(doctor, ["-o", "json", "--state", str(default_state(workspace))])
        return next(item for item in json.loads(result.stdout) if item["name"] == "secrets")

    assert "age private keys: 1" in said()["detail"]
    (default_state(workspace) / "age-identity.txt").chmod(0o644)
    assert said()["level"] == "WARN"
    (default_state(workspace) / "age-identity.txt").unlink()
    assert "no age private key" in said()["detail"]

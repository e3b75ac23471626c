"""Given secrets in encrypted files, when production gets them, then they are there and nowhere else."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from lehr.control.state_folder import default_state
from lehr.plugins.process import procfs
from tests.e2e.bad_input.workspace import Workspace, until
from tests.said import address

pytestmark = pytest.mark.timeout(180)  # some thirty calls of the program

FIRST, SECOND = "canary-first-4711", "canary-second-4712"
CANARIES = (FIRST, SECOND)
TOKEN = {"secret": "age:secrets/app.yaml.age#app.token"}
PROGRAM = """
import os, sys, time
with open("program", "w") as file:
    file.write(os.environ["TOKEN"])
print("I was started with", os.environ["TOKEN"], file=sys.stderr, flush=True)
if os.path.exists("fail"):
    sys.exit(1)
time.sleep(1000)
"""


class Stage(NamedTuple):
    """A workspace, and all that was said about it so far."""

    workspace: Workspace
    said: list[str]

    def lehr(self, *arguments: str, given: str = "", code: int = 0) -> str:
        """Run a command in the workspace; its standard output."""
        done = subprocess.run(
            [sys.executable, "-m", "lehr", *arguments],
            cwd=self.workspace.repository,
            env=self.workspace.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=150,
        )
        self.said.extend((done.stdout, done.stderr))
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def declare(self, *, token: object = TOKEN) -> None:
        """A file, a script and a program that get the token."""
        assets = [
            {
                "id": "token",
                "type": "lehr.File",
                "payload": {"path": "production/token", "mode": "0600", "content_secret": token},
            },
            {
                "id": "script",
                "type": "lehr.Command",
                "payload": {
                    "check": 'echo "is it $TOKEN?"; test "$(cat production/script)" = "$TOKEN"',
                    "apply": 'printf %s "$TOKEN" > production/script; ! test -e production/fail || '
                    '{ echo "cannot use $TOKEN" >&2; exit 1; }',
                    "environment": {"TOKEN": token},
                },
                "addons": {"lehr.DependsOn": {"assets": ["token"]}},
            },
            {
                "id": "program",
                "type": "lehr.Process",
                "payload": {
                    "command": [sys.executable, "-I", "-S", "-c", PROGRAM],
                    "directory": "production",
                    "environment": {"TOKEN": token},
                },
                "addons": {"lehr.DependsOn": {"assets": ["script"]}},
            },
        ]
        self.workspace.write("assets/app.yaml", yaml.safe_dump(assets, sort_keys=False))

    def production(self) -> list[str]:
        """What the three have made of the token."""
        folder = self.workspace.repository / "production"
        return [(folder / name).read_text() for name in ("token", "script", "program")]

    def ask_everything(self) -> None:
        """Have the program say all that it knows."""
        asked = (
            "status",
            "why --all",
            "why token",
            "describe program",
            "blame token",
            "plan",
            "plan -o json",
        )
        for question in (*asked, *(f"get {what} -o json" for what in WHAT)):
            self.lehr(*question.split())


WHAT = ("assets", "incarnations", "decisions", "operations")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    workspace = Workspace(tmp_path, state=default_state(tmp_path / "intent"))
    shutil.rmtree(workspace.repository)
    del workspace.environment["LEHR_STATE"]  # which is what it would be anyway
    stage = Stage(workspace, [])
    subprocess.run(
        [sys.executable, "-m", "lehr", "init", str(workspace.repository)],
        env=workspace.environment,
        check=True,
        capture_output=True,
    )
    yield stage
    while left := list(procfs.marked(workspace.state.resolve() / "supervisor")):
        # supervisord first, or it would start its programs again
        for process, _ in sorted(left, key=lambda item: procfs.REPLICA in item[1]):
            procfs.send(process, signal.SIGKILL)


def objects(repository: Path) -> bytes:
    """Everything that is in a git repository, decompressed."""
    command = ["git", "-c", "safe.directory=*", "-C", str(repository)]
    command += ["cat-file", "--batch", "--batch-all-objects"]
    return subprocess.run(command, capture_output=True, check=True).stdout


def contents(stage: Stage) -> Iterator[tuple[str, bytes]]:
    """Everything that Lehr and git keep; production itself left out."""
    state = stage.workspace.state
    for path in (*state.rglob("*"), *(stage.workspace.repository / "secrets").rglob("*")):
        if path.is_file() and not is_production(path):
            content = path.read_bytes()
            yield str(path), gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    for repository in (stage.workspace.repository, *(state / "sources").glob("*.git")):
        yield str(repository), objects(repository)


def is_production(path: Path) -> bool:
    """What starts the program, and what it has written to its log: the program's own."""
    return path.match("supervisor/*/assets/*/0.*")


def assert_nowhere_else(stage: Stage) -> None:
    launchers = list(stage.workspace.state.rglob("0.json"))
    assert launchers, "the program was started, and what starts it is where this test takes it to be"
    assert b'"secret":"age:' in b"".join(content for _, content in contents(stage)), "references are found"
    for text in stage.said:
        assert not any(canary in text for canary in CANARIES), text
    for place, content in contents(stage):
        assert not any(canary.encode() in content for canary in CANARIES), place


def told(workspace: Workspace, id: str, words: str) -> bool:
    """Whether some push of the asset ended with these words."""
    return any(words in item["message"] for item in workspace.operations(id))


def test_a_secret_is_in_production_and_nowhere_else(stage: Stage) -> None:
    workspace = stage.workspace
    # given a secret in an encrypted file, and assets that refer to it
    stage.lehr("secret", "keygen", "--add")
    stage.lehr("secret", "encrypt", "secrets/app.yaml.age#app.token", given=f"{FIRST}\n")
    stage.declare()
    stage.lehr("validate")
    workspace.commit()
    # when production is made so
    stage.lehr("run", "--once", "--verbose")
    # then it has the secret
    assert stage.production() == [FIRST] * 3
    # and when the secret is another, so is production
    stage.lehr("secret", "encrypt", "secrets/app.yaml.age#app.token", given=f"{SECOND}\n")
    workspace.commit()
    stage.lehr("run", "--once", "--verbose", "--log-format", "json")
    assert stage.production() == [SECOND] * 3
    changed = json.loads(stage.lehr("diff", "previous", "latest", "-o", "json"))
    assert "digest" in json.dumps(changed)
    # and drift is seen and mended without being told
    (workspace.repository / "production/token").write_text("edited")
    stage.lehr("run", "--once")
    assert stage.production() == [SECOND] * 3
    # and what was told, kept and exported has neither secret
    stage.lehr("store", "export", "latest", str(workspace.state / "latest.incarnation.gz"))
    stage.ask_everything()
    assert_nowhere_else(stage)


def test_dry_runs_over_http_tell_no_secret(stage: Stage) -> None:
    workspace = stage.workspace
    stage.lehr("secret", "keygen", "--add")
    stage.lehr("secret", "encrypt", "secrets/app.yaml.age#app.token", given=f"{FIRST}\n")
    stage.declare()
    workspace.commit()
    stage.lehr("run", "--once")
    # when production differs from the secret
    (workspace.repository / "production/token").write_text(SECOND)
    (workspace.repository / "production/script").write_text("edited")
    partition = yaml.safe_load((workspace.repository / "lehr.yaml").read_text())["partition"]
    token = stage.lehr("state", "token").strip()
    with serving(stage) as url:
        for path in ("what-if?asset=token&if=retry", "unblock?asset=token", "plan?selector=all"):
            headers = {"Authorization": f"Bearer {token}"}
            request = urllib.request.Request(f"{url}/v1/partitions/{partition}/{path}", headers=headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                stage.said.append(answer.read().decode())
            assert "content" in stage.said[-1]
            assert "will be pushed" in stage.said[-1]
    # then no answer has it, nor the one in production
    assert_nowhere_else(stage)


@contextlib.contextmanager
def serving(stage: Stage) -> Iterator[str]:
    """A server of the state."""
    command = [sys.executable, "-m", "lehr", "serve", "--listen", "127.0.0.1:0"]
    place, given = stage.workspace.repository, stage.workspace.environment
    with subprocess.Popen(command, cwd=place, env=given, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield address(process)
        finally:
            process.terminate()
            process.wait(timeout=30)


def test_a_secret_is_not_told_when_everything_fails(stage: Stage) -> None:
    workspace = stage.workspace
    stage.lehr("secret", "keygen", "--add")
    stage.lehr("secret", "encrypt", "secrets/app.yaml.age#app.token", given=FIRST)
    # when somebody writes the secret itself down
    stage.declare(token={"secret": FIRST})
    stage.lehr("validate", "-o", "json", code=1)
    stage.declare(token=FIRST)
    stage.lehr("validate", code=1)
    # when the file that is referred to is not there
    stage.declare(token={"secret": "age:secrets/gone.age"})
    assert "VAL042" in stage.lehr("validate", "-o", "json", code=1)
    # when scripts and programs fail, and tell their secret
    stage.declare()
    workspace.commit()
    (workspace.repository / "production").mkdir(exist_ok=True)
    (workspace.repository / "production/fail").touch()
    workspace.environment["LEHR_STATE"] = str(workspace.state)
    with workspace.run("--verbose") as running:
        running.says("published")
        until("the program is started, and ends", lambda: told(workspace, "program", "started with [secret]"))
        assert told(workspace, "script", "cannot use [secret]")
        stage.ask_everything()
        # when the private key is gone
        (workspace.state / "age-identity.txt").rename(workspace.state / "another.txt")
        (workspace.repository / "production/token").unlink()
        stage.said.append(workspace.stands("token", "lehr secret keygen"))
        stage.said.append(running.said())
    assert_nowhere_else(stage)

"""`lehr events` and `lehr audit`: what happened, and who commanded what."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr import wiring
from lehr.cli.main import cli
from lehr.model.asset import Partition
from lehr.model.control import AuditEntry
from lehr.model.writes import Audit
from tests.interruptible import interruptible

HELLO = Partition("hello")


def lehr(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(
        "- {id: motd, type: lehr.File, payload: {path: motd, content: hello}}\n"
    )
    monkeypatch.setenv("LEHR_STATE", str(tmp_path / "state"))
    lehr("run", str(folder), "--once")
    return folder


def test_events_are_shown_oldest_first_and_followed(folder: Path) -> None:
    first, *_, last = lehr("events").stdout.splitlines()
    assert first.endswith("hello@1 published: 1 added, 0 changed, 0 removed")
    assert last.endswith("Converged (AsIntended): production is as intended")
    command = interruptible("events", "motd", "-f", "-o", "json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        shown = [json.loads(following.stdout.readline()) for _ in lehr("events", "motd").stdout.splitlines()]
        assert {event["asset"] for event in shown} == {"motd"}
        (folder / "motd").write_text("changed by hand")
        lehr("run", str(folder), "--once")
        kinds = [json.loads(following.stdout.readline())["kind"] for _ in range(2)]
        assert set(kinds) == {"operation-started", "decision"}
        following.send_signal(signal.SIGINT)
        following.stdout.read()
        assert following.wait(30) == 130


def test_the_status_of_production_that_nobody_keeps_has_exit_code_3(folder: Path) -> None:
    assert "assets      1 Converged" in lehr("status").stdout
    assert "assets      1 Converged" in lehr("status", "--exit-code", code=3).stdout


def test_the_audit_shows_who_commanded_what(folder: Path, tmp_path: Path) -> None:
    assert "no commands" in lehr("audit").stderr
    entry = AuditEntry(
        at=1.0,
        actor="ana",
        command="freeze",
        arguments={"selector": "motd", "reason": "a busy day", "seconds": None},
        result="freeze set on 1 asset (id=motd)",
    )
    store = wiring.open_store(tmp_path / "state", None, read_only=False)
    store.commit([Audit(HELLO, entry)])
    store.close()
    [_titles, line] = lehr("audit", "-o", "wide").stdout.splitlines()
    assert line.split() == [
        *("1970-01-01T00:00:01Z", "ana", "freeze", "selector=motd", 'reason="a', "busy", 'day"'),
        *("freeze", "set", "on", "1", "asset", "(id=motd)"),
    ]
    [document] = json.loads(lehr("audit", "-o", "json").stdout)
    assert (document["actor"], document["arguments"]["reason"]) == ("ana", "a busy day")

"""The log of `lehr run`: what a person reads on stderr, and what a program does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: hello\n")
    files = (f"- {{id: f{n}, type: lehr.File, payload: {{path: f{n}, content: hello}}}}\n" for n in range(20))
    (folder / "assets/all.yaml").write_text("".join(files))
    monkeypatch.setenv("LEHR_STATE", str(tmp_path / "state"))
    return folder


def run(folder: Path, *options: str) -> list[str]:
    """Lines on stderr of `lehr run --once`."""
    command = [sys.executable, "-m", "lehr", "run", str(folder), "--once", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=150).stderr.splitlines()


def test_one_cause_has_one_line_and_a_count(folder: Path) -> None:
    lines = run(folder)
    assert all(re.match(r"\S+T\S+Z (info|warning|error) ", line) for line in lines)
    pushes = [line for line in lines if "(lehr.File, forward): pushing hello@1; differs: content" in line]
    [_first, *counted] = pushes
    assert len(counted) == 1
    assert "push 19 times since" in counted[0]
    assert any("hello@1 published: 20 assets changed" in line for line in lines)


def test_drift_names_what_differs(folder: Path) -> None:
    run(folder)
    (folder / "f3").write_text("changed by hand")
    assert any(
        " warning f3 (lehr.File, repair): drift: pushing hello@1; differs: content" in line
        for line in run(folder)
    )


def test_with_json_stderr_holds_nothing_else(folder: Path) -> None:
    events = [json.loads(line) for line in run(folder, "--log-format", "json", "--verbose")]
    assert {"published", "push", "pushed", "turn"} <= {event["event"] for event in events}
    (folder / "assets/all.yaml").write_text("- {id: f1, type: lehr.Fyle}\n")
    refused = [json.loads(line) for line in run(folder, "--log-format", "json")]
    assert "GEN005" in next(event["details"] for event in refused if event["event"] == "refused")
    (folder / "lehr.yaml").unlink()
    assert [json.loads(line)["level"] for line in run(folder, "--log-format", "json")][-1] == "error"


def test_turns_are_logged_on_request_only(folder: Path) -> None:
    assert not any(" turn of " in line for line in run(folder))
    assert any(re.search(r"debug +turn of f3 in [\d.]+ms: start", line) for line in run(folder, "--verbose"))

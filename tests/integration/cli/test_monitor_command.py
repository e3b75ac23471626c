"""A monitor from the workspace to a push that waits and then starts, with the file of `--metrics`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ASSETS = """\
id: monitors/errors
type: lehr.Monitor
payload: {select: {ids: [config]}, source: errors, value: /rate, at_most: 0.05}
---
id: config
type: lehr.File
payload: {path: out/app.conf, content: one}
"""
RATE = Path("rate.json")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "assets" / "all.yaml").write_text(ASSETS)
    (tmp_path / "metrics.yaml").write_text("sources: {errors: {type: command, command: [cat, rate.json]}}\n")
    return tmp_path


def lehr(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "lehr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_push_waits_while_a_value_is_out_of_bounds(workspace: Path) -> None:
    RATE.write_text('{"rate": 0.5}')
    lehr("run", "--once", "--metrics", "metrics.yaml", code=1)
    why = lehr("why", "config")
    assert "MonitorHolds" in why
    assert "0.5, must be at most 0.05" in why
    assert "MonitorHolds" in lehr("plan", "--metrics", "metrics.yaml", "-o", "json")
    assert not (workspace / "out" / "app.conf").exists()
    RATE.write_text('{"rate": 0.01}')
    lehr("run", "--once", "--metrics", "metrics.yaml")
    assert (workspace / "out" / "app.conf").read_text() == "one"


def test_a_program_gets_few_variables(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hush")
    monkeypatch.setenv("LEHR_METRICS", "metrics.yaml")
    program = "import json, os; print(json.dumps({'rate': sum(name != 'LC_CTYPE' for name in os.environ)}))"
    definition = {"type": "command", "command": [sys.executable, "-c", program], "timeout": 120}
    (workspace / "metrics.yaml").write_text(json.dumps({"sources": {"errors": definition}}))
    lehr("run", "--once", code=1)
    assert "read just now from errors: 3, must be at most 0.05" in lehr("why", "config")


def test_a_push_waits_for_a_source_that_is_not_configured(workspace: Path) -> None:
    lehr("run", "--once", code=1)
    assert "MonitorUnknown" in lehr("why", "config")


@pytest.mark.parametrize(
    "content",
    [
        "sources: {errors: {type: command, command: []}}",
        "sources: {errors: {type: http, address: ftp://localhost}}",
        "sources: {errors: {type: http, address: http://me:hush@localhost}}",
        "sources: {errors: {type: oracle}}",
        "sources: {errors: {type: prometheus, address: http://localhost, token: hush}}",
        "sources: [",
        "[]",
        "",
    ],
)
def test_a_file_of_sources_that_cannot_be_used_is_reported(workspace: Path, content: str) -> None:
    (workspace / "metrics.yaml").write_text(content)
    said = lehr("plan", "--metrics", "metrics.yaml", code=1)
    assert "WIR105" in said
    assert "hush" not in said


def test_a_source_that_is_not_installed_is_reported(workspace: Path) -> None:
    (workspace / "metrics.yaml").write_text("sources: {errors: {type: installed, name: none}}")
    assert "WIR106" in lehr("plan", "--metrics", "metrics.yaml", code=1)

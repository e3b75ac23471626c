"""Every template comes up: a workspace, valid without a word, whose first run ends with all as intended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.control.state_folder import default_state
from lehr.templates import TEMPLATES
from tests.ports import free_ports

_PORTS = re.compile(r"\bport: (8\d\d\d)\b")
_EACH = 4  # replicas of one place that there is room for

ALONE = [name for name, template in TEMPLATES.items() if not template.needs]
"""Those that need nothing beside Lehr; `tests/docs` plays the others."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the workspace is made; what was started there is ended."""
    yield tmp_path / "new"
    for record in default_state(tmp_path / "new").glob("supervisor/*/supervisord.pid"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(record.read_text()), signal.SIGTERM)


def lehr(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "lehr", *arguments],
        cwd=cwd,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "HOME": str(cwd),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def with_free_ports(text: str) -> str:
    """`text` with ports that are free, `_EACH` in a row for every one that is named."""
    named = sorted(set(_PORTS.findall(text)))
    first = free_ports(_EACH * len(named)) if named else 0
    ports = {port: str(first + _EACH * place) for place, port in enumerate(named)}
    return _PORTS.sub(lambda match: f"port: {ports[match[1]]}", text)


@pytest.mark.parametrize("template", ALONE)
def test_a_template_comes_up_and_stays(template: str, folder: Path) -> None:
    lehr("init", "--no-git", "--template", template, str(folder), cwd=folder.parent)
    for path in folder.rglob("*.yaml"):
        path.write_text(with_free_ports(path.read_text()))
    validated = lehr("validate", "--clean", cwd=folder)
    assert "warning" not in validated
    assert "is valid" in validated
    assert "production is as intended" in lehr("run", "--once", cwd=folder)
    planned = lehr("plan", "--exit-code", cwd=folder)
    assert re.fullmatch(r"\d+ as intended\n", planned), planned

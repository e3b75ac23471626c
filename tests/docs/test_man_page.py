"""The man page is written from the help of the commands, and man has no complaint about it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

from lehr.cli.command import commands_of
from lehr.cli.main import cli
from tests.installed import installed

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "man" / "lehr.1"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("man_page", ROOT / "scripts" / "man_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == script().page(), "write it with scripts/cli_reference.py"


def test_the_package_puts_it_where_man_looks() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {"docs/man": "share/man/man1"}
    assert [path.name for path in PAGE.parent.iterdir()] == ["lehr.1"]


def test_man_shows_every_command_without_a_warning() -> None:
    shown = subprocess.run(
        [installed("man"), "--warnings", "-l", PAGE],
        env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert [name for name, _ in commands_of(cli) if f"\n   lehr {name}\n" not in shown.stdout] == []
    assert 'lehr get assets --filter "payload.replicas == 3"' in shown.stdout

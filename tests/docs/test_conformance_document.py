"""The page about conformance suites: its examples keep the contracts, and it names every rule."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lehr.testing.conformance import asset_plugin, check_plugin, source, validator

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "test-a-plugin.md").read_text()
SUBJECTS_OF_THE_CHECK = 4


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (folder / block.partition("\n")[0].removeprefix("# ")).write_text(block)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *arguments, "."]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=150)


def test_the_examples_keep_their_contracts(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rules = len(asset_plugin.RULES) + SUBJECTS_OF_THE_CHECK * len(check_plugin.RULES) + len(source.RULES)
    assert f"{rules} passed" in done.stdout


@pytest.mark.parametrize(
    ("heading", "suite"),
    [
        ("A plugin", asset_plugin),
        ("A check", check_plugin),
        ("A validator", validator),
        ("A source", source),
    ],
)
def test_every_rule_is_named_as_it_is_documented(heading: str, suite: ModuleType) -> None:
    told = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", section(heading), re.MULTILINE)
    assert sorted(told) == sorted((rule.__name__, " ".join(rule.__doc__.split())) for rule in suite.RULES)

"""What builds and locks the project is pinned to one version each; the lock files pin the rest."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*")


def test_build_requirements_are_pinned() -> None:
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert requires
    assert [item for item in requires if not PIN.fullmatch(item)] == []


def test_what_make_and_scripts_install_is_pinned() -> None:
    lines = [
        line
        for path in (ROOT / "Makefile", *(ROOT / "scripts").glob("*.sh"))
        for line in path.read_text().replace("\\\n", " ").splitlines()
        if "pip install" in line and "--require-hashes" not in line and "--no-deps -e ." not in line
    ]
    assert len(lines) == 1, "make lock installs uv"
    words = shlex.split(lines[0].partition("pip install")[2])
    assert [word for word in words if not word.startswith("-") and not PIN.fullmatch(word)] == []

"""What decides loads nothing that does I/O: not even by a parent package, which no linter follows."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPURE = {"asyncio", "psycopg", "socket", "sqlite3", "subprocess", "threading"}

FACADES = ("lehr.editing.*",)
"""Packages that export code that does I/O next to code that decides."""


def contract() -> dict[str, list[str]]:
    """The linter's contract of the pure modules."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(item for item in contracts if item["id"] == "pure")


def matches(module: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(module, pattern) or module.startswith(f"{pattern}.") for pattern in patterns
    )


def pure() -> list[str]:
    """The modules that the contract names, but those that it calls a shell."""
    shells = [line.partition(" -> ")[0] for line in contract()["ignore_imports"]]
    files = (ROOT / "src" / "lehr").rglob("*.py")
    names = (".".join(file.relative_to(ROOT / "src").with_suffix("").parts) for file in files)
    return sorted(
        name
        for name in (name.removesuffix(".__init__") for name in names)
        if matches(name, contract()["source_modules"]) and not matches(name, [*shells, *FACADES])
    )


def loaded(modules: Sequence[str]) -> set[str]:
    """What of `IMPURE` a fresh interpreter has loaded once it has imported `modules`."""
    code = (
        "import jsonschema_rs, msgspec, sys\n"  # what these load for themselves is not ours
        f"for name in {sorted(IMPURE)}: sys.modules.pop(name, None)\n"
        f"import {', '.join(modules)}\n"
        f"print(*set(sys.modules) & {IMPURE})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_what_decides_loads_nothing_that_does_io() -> None:
    modules = pure()
    assert "lehr.enforce.step" in modules
    assert "lehr.query.explain" in modules
    if loaded(modules):
        # Each by itself, to name those that are not pure.
        assert {name: found for name in modules if (found := loaded([name]))} == {}


@pytest.mark.parametrize("module", ["lehr.enforce.lane", "lehr.store.sqlite", "lehr.base.blocking"])
def test_what_does_io_is_seen(module: str) -> None:
    assert loaded([module])

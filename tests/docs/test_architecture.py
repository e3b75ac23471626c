"""Paths and names on the page about the architecture exist; other tests check only paths from the root."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "lehr"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.partition("### In the code")[2], re.MULTILINE)[1:]


@cache
def defined(path: Path) -> set[str]:
    """Names of functions, classes, and their members in a module."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            for part in ast.walk(node):
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.add(f"{node.name}.{part.name}")
                elif isinstance(part, ast.Attribute):
                    found.add(f"{node.name}.{part.attr}")
    return found


def test_every_module_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([a-z_/]+\.py)`", PAGE.partition("### In the code")[0]))
    modules = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    known = modules | tests | {name.rpartition("/")[2] for name in modules}
    assert sorted(named - known) == []


@pytest.mark.parametrize(("step", "way"), ROWS, ids=[step for step, _way in ROWS])
def test_the_way_through_the_code_exists(step: str, way: str) -> None:
    folder = path = SOURCE
    for code in re.findall(r"`([^`]+)`", way):
        if code.endswith("/"):
            assert (SOURCE / code).is_dir()
        elif code.endswith(".py"):
            path = SOURCE / code if "/" in code else folder / code
            folder = path.parent
            assert path.is_file(), f"{step}: {code}"
        else:
            assert code in defined(path), f"{step}: {code} is not in {path.relative_to(SOURCE)}"

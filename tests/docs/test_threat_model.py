"""The threat model names the tests that try each boundary, and there are such tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("| tried by |\n")[2].partition("\n\n")[0].splitlines()[1:]
]
BOUNDARIES = PAGE.partition("\n## Boundaries, and what holds there\n")[2].partition("\n## ")[0]
"""Each begins with its name in bold, and ends with the tests that try it."""
SECTIONS = re.split(r"\n(?=\*\*[A-Z])", BOUNDARIES)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=[section[:30] for section in SECTIONS])
def test_every_boundary_names_a_test_of_its_own(section: str) -> None:
    assert re.search(r"`tests/[\w/]+\.py::\w+`", section)


def test_every_boundary_is_found() -> None:
    assert len(SECTIONS) == BOUNDARIES.count("\n\n**") + 1 > 10


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`(tests/[\w/]+\.py)", PAGE))))
def test_the_files_of_tests_that_it_names_exist(file: str) -> None:
    assert (ROOT / file).is_file()


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_the_tests_that_it_names_exist(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:30] for row in ROWS])
def test_every_row_about_generators_names_a_test(row: list[str]) -> None:
    assert len(row) == 4
    assert re.search(r"`tests/[\w/]+\.py::\w+`", row[3])


def test_every_mechanism_of_the_kernel_has_a_row() -> None:
    from lehr.generate.sandbox.confinement import Mechanism

    assert {item.value for item in Mechanism} <= {row[0] for row in ROWS}

"""The tutorial about a rollout leads from nothing to a version that is caught, and one that replaces it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "rollout.md").read_text()


@pytest.mark.timeout(500)
def test_the_tutorial_works_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    output = run(PAGE, folder, seconds=450)
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert _happened(line, output), output
    assert "version 3" not in output, "no cluster serves it once it was taken back"
    assert "version 4" in output


def _happened(line: str, output: str) -> bool:
    """Whether `line` was printed. On a busy machine, clusters become good one after the other."""
    found = re.fullmatch(r"finds (.+) good", line)
    if found is None:
        return line in output
    return all(re.search(rf"finds [^\n]*\b{name}\b[^\n]* good", output) for name in found[1].split(", "))

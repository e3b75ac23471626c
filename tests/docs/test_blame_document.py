"""What the page on where values come from tells people to do works, and shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "find-where-a-value-comes-from.md"


def test_the_page_on_where_values_come_from_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    said = re.sub(r"\b[0-9a-f]{12} \d{4}-\d\d-\d\d", "COMMIT", run(PAGE.read_text(), folder))
    prose = re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    facts = [re.sub(r"\s+", " ", line) for line in re.findall(r"^    (\S.*)$", prose, re.MULTILINE)]
    flat = re.sub(r"\s+", " ", said)
    assert len([line for line in facts if line.startswith(("written at", "value found at", "made by"))]) == 3
    missing = [line for line in facts if line not in flat]
    assert not missing
    assert "COMMIT you <you@localhost>: Greet otherwise" in flat
    assert "reproducible in two clean builds" in flat

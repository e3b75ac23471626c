"""The page for when something goes wrong speaks of codes and reasons that there are."""

from __future__ import annotations

import re
from pathlib import Path

from lehr.model.reason import Reason

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/when-something-goes-wrong.md").read_text()


def test_every_code_has_its_row_in_the_reference() -> None:
    named = set(re.findall(r"`([A-Z]{3}\d{3})`", PAGE))
    reference = (ROOT / "docs/reference/diagnostics.md").read_text()
    assert named
    assert {code for code in named if f"| `{code}` |" not in reference} == set()


def test_every_reason_is_one_that_lehr_gives() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z][A-Za-z]+)`", PAGE))
    assert named
    assert named - {*Reason} == set()

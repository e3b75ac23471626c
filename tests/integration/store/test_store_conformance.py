"""The embedded store keeps the rules of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.store import SqliteStore
from lehr.testing.conformance.store import RULES, Rule, Subject


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_embedded_store_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    rule(Subject(lambda: SqliteStore(tmp_path / "state.sqlite")))

"""The embedded store keeps the rules of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.store import SqliteStore
from lehr.store.sqlite import connection
from lehr.testing.conformance.store import RULES, Rule, Subject
from tests.integration.store.broken_stores import locked


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_embedded_store_keeps_the_contract(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    path = tmp_path / "state.sqlite"
    rule(Subject(lambda: SqliteStore(path), troubles=(lambda: locked(path),)))

"""The embedded store, and the one of the simulation over it, keep the rules of stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lehr.store.sqlite import SqliteStore, connection
from lehr.testing.conformance.store import RULES, Rule, Subject
from lehr.testing.sim.store import SimulatedStore
from tests.integration.store.broken_stores import locked


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_embedded_store_keeps_the_contract(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    path = tmp_path / "state.sqlite"
    rule(Subject(lambda: SqliteStore(path), troubles=(lambda: locked(path),)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_simulated_store_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    opened: list[SimulatedStore] = []

    def make() -> SimulatedStore:
        opened.append(SimulatedStore(tmp_path / "state.sqlite", lambda writes, answers: None))
        return opened[-1]

    @contextmanager
    def trouble(*, unreadable: bool) -> Iterator[None]:
        for store in opened:
            store.out_of_order, store.unreadable = True, unreadable
        yield
        for store in opened:
            store.out_of_order = store.unreadable = False

    rule(Subject(make, troubles=(lambda: trouble(unreadable=False), lambda: trouble(unreadable=True))))

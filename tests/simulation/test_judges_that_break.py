"""A judge that breaks is reported: otherwise its history would pass unjudged."""

from __future__ import annotations

import pytest

from lehr.testing.sim import suite
from lehr.testing.sim.witness import Witness


def test_a_judge_that_breaks_breaks_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: Witness, attempt: object) -> None:
        raise KeyError("units")

    monkeypatch.setattr(Witness, "_attempted", breaks)
    assert any("a judge broke: KeyError: 'units'" in line for line in suite.play(0).violations)

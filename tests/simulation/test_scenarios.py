"""The scenarios: each plays as it is written, and shows the rule that it is named after."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.testing.sim.script_play import play, read
from lehr.testing.sim.suite import scratch, silence

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_plays_as_it_is_written(path: Path) -> None:
    script, diagnostics = read(path.read_text(), path.name)
    assert not diagnostics
    with scratch() as folder, silence():
        played = play(script, folder)
    assert not played.failures
    assert not played.difference, "\n".join(played.difference)

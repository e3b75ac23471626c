"""The bench of forecasts: its rollouts come to an end."""

from __future__ import annotations

from benchmarks.forecast import clusters, measured, single_assets, waves
from lehr.rollouts import TargetSelection


def test_its_rollout_has_a_known_end() -> None:
    _, found = measured(clusters(40), waves())
    assert [len(wave.units) for wave in found.waves] == [1, 1, 3, 5, 10]
    assert found.ends.late is not None


def test_single_assets_are_units() -> None:
    _, found = measured(single_assets(20), TargetSelection())
    assert found.ends.late is not None

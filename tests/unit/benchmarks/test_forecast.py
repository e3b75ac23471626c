"""The bench of forecasts: its calendars close, and its rollouts come to an end."""

from __future__ import annotations

from benchmarks.forecast import calendars, closed, clusters, measured, single_assets, waves
from lehr.rollouts import TargetSelection

WEEK = 7 * 86_400.0


def test_its_calendars_are_closed_at_night() -> None:
    item = next(iter(calendars().values()))
    monday = 1_795_392_000.0
    found = closed(item.times(), monday, monday + WEEK)
    assert all(start < end for start, end in found)
    assert 0.6 * WEEK < sum(end - start for start, end in found) < 0.85 * WEEK


def test_its_rollout_has_a_known_end() -> None:
    _, found = measured(clusters(40), waves())
    assert [len(wave.units) for wave in found.waves] == [1, 1, 3, 5, 10]
    assert found.ends.late is not None


def test_single_assets_are_units() -> None:
    _, found = measured(single_assets(20), TargetSelection())
    assert found.ends.late is not None

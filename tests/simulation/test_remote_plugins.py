"""Histories whose plugin is in another process, behind a transport that loses, delays and garbles calls."""

from __future__ import annotations

import pytest

from lehr.testing.sim.remote_plugins import RemoteHistory
from lehr.testing.sim.suite import history_of

# Of 5: a worker of turns that was cancelled before it began kept its lane turning the event loop for ever.
SEEDS = (0, 1, 4, 5, 11, 18)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken(seed: int) -> None:
    history = history_of(seed, RemoteHistory)
    assert history.violations == []
    assert history.trace.events

"""Random histories of the whole program, under virtual time: the invariants hold, whatever happens.

`make sim` plays more of them; `lehr sim show 17` tells what happens in one.
"""

from __future__ import annotations

import os

import pytest

from lehr.testing.sim.reached import RARE_PATHS, never, total
from lehr.testing.sim.suite import Played, failed, play, play_all

SEEDS = int(os.environ.get("SEEDS", "1000"))
JOBS = os.cpu_count() or 1


@pytest.fixture(scope="module")
def runs() -> list[Played]:
    return list(play_all(range(SEEDS), JOBS))


@pytest.mark.timeout(900)
def test_the_invariants_hold_in_every_history(runs: list[Played]) -> None:
    assert len(runs) == SEEDS
    found = [f"lehr sim replay {run.seed}: {line}" for run in failed(runs) for line in run.violations]
    assert not found, "\n".join(found[:20])


@pytest.mark.timeout(900)
def test_every_history_is_long_enough_to_go_wrong(runs: list[Played]) -> None:
    assert min(run.events for run in runs) >= 200


@pytest.mark.timeout(900)
@pytest.mark.skipif(SEEDS < 1000, reason="rare paths need many histories")
def test_every_rare_path_is_taken_by_some_history(runs: list[Played]) -> None:
    missed = never(total(run.reached for run in runs))
    assert not missed, "\n".join(f"{name}: {RARE_PATHS[name]}" for name in missed)


def test_a_seed_played_again_gives_the_same_history() -> None:
    assert play(3) == play(3)


def test_other_seeds_give_other_histories() -> None:
    assert len({play(seed).digest for seed in range(5)}) == 5

"""Random histories of the whole program, under virtual time: the invariants hold, whatever happens.

`make sim` plays more of them; `lehr sim show 17` tells what happens in one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import msgspec
import pytest

from lehr.testing.sim.reached import RARE_PATHS, never, total
from lehr.testing.sim.suite import Played, failed, play, spread

SEEDS = int(os.environ.get("SEEDS", "1000"))
FAST = 50
BLOCK = 25
BLOCKS = [range(first, min(first + BLOCK, SEEDS)) for first in range(0, SEEDS, BLOCK)]


def _block(seeds: range) -> object:
    return pytest.param(
        seeds, id=f"{seeds[0]}-{seeds[-1]}", marks=pytest.mark.slow if seeds[0] >= FAST else ()
    )


each_block = pytest.mark.parametrize("block", [_block(seeds) for seeds in BLOCKS])

ALARMS = {
    30560: "the judge forgot a look that many others followed within seconds",
    30788: "a rollout that had failed, with nothing updated, named only commands that are refused then",
}
"""Later seeds that have raised an alarm once."""

Histories = Callable[[range], list[Played]]


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Histories:
    """The histories of a block, each played once in a test run, by whichever worker needs it first."""
    folder = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        folder = folder.parent  # shared by the workers of this run

    def of(block: range) -> list[Played]:
        known = folder / f"histories-{block[0]}.json"
        with known.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not known.exists():
                known.write_bytes(msgspec.json.encode([play(seed) for seed in block]))
        return msgspec.json.decode(known.read_bytes(), type=list[Played])

    return of


@each_block
@pytest.mark.timeout(900)
def test_the_invariants_hold_in_every_history(histories: Histories, block: range) -> None:
    runs = histories(block)
    assert [run.seed for run in runs] == [*block]
    found = [f"lehr sim replay {run.seed}: {line}" for run in failed(runs) for line in run.violations]
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("seed", ALARMS)
def test_a_history_that_has_raised_an_alarm_raises_none(seed: int) -> None:
    assert play(seed).violations == ()


@each_block
@pytest.mark.timeout(900)
def test_every_history_is_long_enough_to_go_wrong(histories: Histories, block: range) -> None:
    assert min(run.events for run in histories(block)) >= 200


@each_block
@pytest.mark.timeout(900)
def test_every_decision_of_every_history_is_decided_again(histories: Histories, block: range) -> None:
    runs = histories(block)
    # One that differs breaks I8; here, none was left out.
    decisions = [run.replayed for run in runs]
    assert min(decisions) >= 10
    assert not [line for run in runs for line in run.violations if line.startswith("I8")]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(SEEDS < 1000, reason="rare paths need many histories")
def test_every_rare_path_is_taken_by_some_history(histories: Histories) -> None:
    missed = never(total(run.reached for block in BLOCKS for run in histories(block)))
    assert not missed, "\n".join(f"{name}: {RARE_PATHS[name]}" for name in missed)


def test_several_processes_play_the_same_histories() -> None:
    played = sorted(spread(play, range(3), 2), key=lambda run: run.seed)
    assert played == [play(seed) for seed in range(3)]


def test_a_seed_played_again_gives_the_same_history() -> None:
    assert play(3) == play(3)


def test_other_seeds_give_other_histories() -> None:
    assert len({play(seed).digest for seed in range(5)}) == 5

"""Random histories over some things, under virtual time: the invariants hold, whatever happens.

`SEEDS=10000 pytest tests/simulation/test_random_histories.py --timeout 0` plays more of them; `SEED=17`
plays that one alone, and shows what happened in it.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.simulation.histories.history import History

BATCHES = 10
SEEDS = int(os.environ.get("SEEDS", "300"))
ONE = os.environ.get("SEED")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where commits cost no disk: nothing here crashes the machine."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Plugins fail by the thousand here: what the log says of it is of no use and costs time."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def play(seed: int, folder: Path) -> History:
    place = folder / str(seed)
    place.mkdir()
    history = History(seed, place)
    try:
        history.play()
    except Exception as error:
        if ONE:
            raise
        history.violations.append(f"{type(error).__name__}: {error}")
    return history


@pytest.mark.parametrize("batch", range(1 if ONE else BATCHES))
def test_the_invariants_hold_in_every_history(
    batch: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[str] = []
    for seed in [int(ONE)] if ONE else range(batch, SEEDS, BATCHES):
        history = play(seed, folder)
        found.extend(f"SEED={seed} {line}" for line in dict.fromkeys(history.violations))
        if ONE:
            with capsys.disabled():
                print("", history.manners, *history.story, sep="\n")  # noqa: T201 - it was asked for
    assert not found, "\n".join(found[:20])


def test_equal_seeds_give_equal_histories(folder: Path) -> None:
    (folder / "again").mkdir()
    one, other = play(3, folder), play(3, folder / "again")
    assert (one.story, one.world.order) == (other.story, other.world.order)
    assert one.witness.admitted == other.witness.admitted

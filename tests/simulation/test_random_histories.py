"""Random histories over some things, under virtual time: the invariants hold, whatever happens.

`make sim` plays more of them; `lehr sim show 17` tells what happens in one.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from lehr.testing.sim.history import History

BATCHES = 10
SEEDS = int(os.environ.get("SEEDS", "300"))


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
        history.witness.violations.append(f"{type(error).__name__}: {error}")
    return history


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_invariants_hold_in_every_history(batch: int, folder: Path) -> None:
    found: list[str] = []
    for seed in range(batch, SEEDS, BATCHES):
        history = play(seed, folder)
        found.extend(f"SEED={seed} {line}" for line in dict.fromkeys(history.violations))
    assert not found, "\n".join(found[:20])

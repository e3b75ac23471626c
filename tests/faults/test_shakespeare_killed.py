"""Given the Shakespeare example, when any part of it is killed at any moment, then it soon serves again."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.ending import processes_in
from tests.faults.rounds import ROUNDS, Tally, chance, timeout
from tests.faults.theatre import Theatre


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not tmp_path: PostgreSQL, which does not run as root, would not be let in there.
    folder = Path(tempfile.mkdtemp(prefix="lehr-faults-"))
    yield folder
    left = list(processes_in(folder))
    shutil.rmtree(folder)
    assert not left


@timeout(4)
def test_whatever_is_killed_comes_back_and_serves(folder: Path) -> None:
    asyncio.run(_play(folder))


async def _play(folder: Path) -> None:
    moments = chance("moments of Shakespeare")
    theatre = Theatre(folder, chance("Shakespeare's edits"))
    kills = (theatre.kill_plane, theatre.kill_envoy, theatre.kill_supervisord, theatre.kill_postmaster)
    try:
        await theatre.open()
        tallies = {kill.__name__: Tally(f"Shakespeare, {kill.__name__}") for kill in kills}
        for _ in range(ROUNDS):
            for kill in moments.sample(kills, len(kills)):
                await theatre.edit()
                await asyncio.sleep(moments.uniform(0.0, 2.0))
                await kill()
                tallies[kill.__name__].add(await theatre.recovered())
    finally:
        await theatre.close()
    for tally in tallies.values():
        tally.tell(theatre.witness.told)

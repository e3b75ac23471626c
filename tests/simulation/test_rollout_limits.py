"""A policy is tightened in mid-wave while two Strategists take turns, and one of them stops at any write.

Invariant: I10. No release exceeds the limit in force at its commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lehr.model.evidence import Begun, Ended, RolloutEnd, Updated, Validated
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.lease import LEASE_SECONDS
from lehr.model.writes import Write, WriteReleases
from lehr.testing.sim.process import Process
from lehr.testing.sim.script_assets import Entry
from lehr.testing.sim.script_harness import ExtraTypes, ScriptHarness, WorldSettings
from lehr.testing.sim.source import files
from lehr.testing.sim.suite import scratch, silence
from lehr.testing.virtual import run
from lehr.testing.world import THING

UNITS = tuple("abcdef")
LONGEST = 1800.0


class Race(ScriptHarness):
    """Six units under a policy, whose limit goes from 3 to 1 when the first three have new content.

    Attributes:
        released: at each release of units, how many were not validated then, and the limit in force.
        ended: how each rollout has ended.
        at: the commit of the first process at which it is stopped; how: "before", "after" or "held".
    """

    def __init__(self, folder: Path, at: int | None, how: str) -> None:
        super().__init__(folder, WorldSettings(), ExtraTypes())
        self.released: list[tuple[int, int]] = []
        self.ended: list[RolloutEnd] = []
        self.production.seconds = 2.0
        self.stopped: Process | None = None
        self._at, self._how = at, how
        self._unproven: set[str] = set()

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """As `ScriptHarness.committed`, and count by evidence alone."""
        for write, answer in zip(writes, answers, strict=True):
            for item in write.evidence if isinstance(write, WriteReleases) and answer is None else ():
                match item.fact:
                    case Begun():
                        self._unproven.clear()
                    case Validated(units=units):
                        self._unproven.difference_update(units)
                    case Updated(units=units):
                        self._unproven.update(units)
                        limit = self.witness.payloads(ROLLOUT_POLICY)["gradually"]["target_selection"]
                        self.released.append((len(self._unproven), limit["at_most"]))
                    case Ended(how=how):
                        self.ended.append(how)
        super().committed(writes, answers)

    async def commit(self, value: str, at_most: int) -> None:
        """Have all units want a value, under a limit."""
        selection = {"waves": [{}], "at_most": at_most}
        policy = {"select": {"types": [THING]}, "target_selection": selection}
        things = [Entry(id, payload={"value": value}) for id in UNITS]
        self.write([Entry("gradually", ROLLOUT_POLICY, payload=policy), *things])
        if not self.processes:
            await self.edit(self.contents, "commit")
            return
        snapshot = files(self.contents)  # found by whichever process runs
        self.witness.publications.revisions[snapshot.revision.revision] = await self.declared(snapshot)
        self.repository.edit(self.contents, "commit")

    async def play(self) -> int:
        """Play it; returns the number of commits of the first process."""
        await self.commit("1", 3)
        await self._until(lambda: len(self.ended) == 1)
        first = self.process
        began = first.store.commits
        first.store.before = lambda number, writes: self._stop(first, number - began)
        await self.commit("2", 3)
        await self._until(lambda: len(self.released) > 2)
        await self.commit("2", 1)
        await self._until(lambda: len(self.ended) == 2)
        await self.pass_time(LEASE_SECONDS)
        commits = first.store.commits - began
        await self.close()
        return commits

    def _stop(self, process: Process, number: int) -> None:
        if number != self._at:
            return
        self.stopped = process
        if self._how == "held":
            process.hold()
            self.held.append(process)
        else:
            process.store.dies = self._how

    async def _until(self, is_so: Any) -> None:
        began = self.clock.monotonic()
        while not is_so():
            assert self.clock.monotonic() < began + LONGEST, "it does not end"
            await self.pass_time(0.5)
            await self._take_over()

    async def _take_over(self) -> None:
        """Where the first process is gone, or stopped, another one begins; a stopped one comes back later."""
        if not self.running:
            await self.start()
        elif self.held and len(self.running) == 1:
            self.owner = "there"
            await self.start()
        elif self.held and not self.running[-1].plane.standby:
            self.held.pop().release()


def play(at: int | None = None, how: str = "") -> tuple[Race, int]:
    with scratch() as folder, silence():
        race: list[Race] = []

        async def main() -> int:
            race.append(Race(folder, at, how))
            async with asyncio.timeout(10 * LONGEST):
                return await race[0].play()

        commits = run(main, seed=1)
    return race[0], commits


def wrong(race: Race) -> list[str]:
    """What was broken: by the witness, by the numbers of evidence, and at the end."""
    beyond = [f"{units} units beyond {limit}" for units, limit in race.released if units > limit]
    values = {id: race.production.values.get(id) for id in UNITS}
    left = [f"{id} is {value}" for id, value in values.items() if value != "2"]
    ended = [] if race.ended == [RolloutEnd.COMPLETED] * 2 else [f"ended as {race.ended}"]
    return [*race.witness.violations, *race.production.broken, *beyond, *left, *ended]


@pytest.fixture(scope="module")
def commits() -> int:
    """Commits while the rollout is under way, if nothing stops it."""
    race, commits = play()
    assert not wrong(race)
    assert (3, 3) in race.released  # the limit was used up when it was tightened,
    assert race.released[-1][1] == 1  # and units were released after that
    return commits


@pytest.mark.parametrize("how", ["before", "after", "held"])
def test_no_release_exceeds_the_limit_in_force_at_its_commit(commits: int, how: str) -> None:
    found = {}
    for at in range(commits):
        race, _commits = play(at, how)
        assert race.stopped is not None, f"commit {at} was never reached"
        if lines := wrong(race):
            found[at] = lines
    assert not found

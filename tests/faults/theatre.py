"""The Shakespeare example, whose parts are killed one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from lehr.base.clock import SystemClock
from lehr.demo.narrator import Narrator
from lehr.demo.shakespeare.serving_scenes import from_nothing
from lehr.demo.shakespeare.stage import FRONTEND, ShakespeareStage
from tests.faults.ending import end_all_in, processes_in
from tests.faults.rounds import CONVERGES
from tests.faults.witness import Witness

_LOOK = 0.05
_ANSWERS = 50
"""Requests that are answered in a row when all is well again."""


class Theatre:
    """The example, up and running, with an audience."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.stage = ShakespeareStage(folder, Narrator(pretty=False), SystemClock())
        self.witness = Witness(self.stage.plane.state)
        self._chance = chance
        self._replicas = {"eu": 3, "us": 2}
        self._commit = ""
        self._groups = self._clusters = frozenset[str]()

    async def open(self) -> None:
        """From nothing to two clusters that serve."""
        await from_nothing(self.stage)
        self._commit = await self.stage.repository.newest()
        self._groups, self._clusters = frozenset(self.supervisords()), frozenset(self.envoys())

    async def close(self) -> None:
        """End all that was started."""
        await self.stage.close(keep=True)
        end_all_in(self.stage.folder)

    async def edit(self) -> None:
        """Another number of replicas, or other words of the program."""
        if self._chance.random() < 0.5:
            cluster = self._chance.choice(sorted(self._replicas))
            self._replicas[cluster] = count = self._chance.choice((1, 2, 3))
            edit = self.stage.replicas(cluster, count)
        else:
            edit = self.stage.edit(FRONTEND, ("THEATRE: .*", f"THEATRE: number {self._chance.random()}"))
        if edit[FRONTEND] != self.stage.repository.read(FRONTEND):
            self._commit = await self.stage.repository.commit("Change", edit)

    # --- what is killed ------------------------------------------------------------------

    async def kill_plane(self) -> None:
        """The control plane; somebody edits before it is back."""
        await self.stage.plane.kill()
        self.witness.interrupted()
        await self.edit()
        await self.stage.plane.start()

    async def kill_envoy(self) -> None:
        """One of the balancers, or the one over them."""
        self._kill(self._chance.choice(sorted(self.envoys().values())))

    async def kill_supervisord(self) -> None:
        """What keeps one of the programs up."""
        self._kill(self._chance.choice(sorted(self.supervisords().values())))

    async def kill_postmaster(self) -> None:
        """The database's first process: its others end by themselves."""
        if (pid := self.postmaster()) is not None:
            self._kill(pid)

    def _kill(self, pid: int) -> None:
        self.stage.kill(pid, signal.SIGKILL)

    # --- what runs -----------------------------------------------------------------------

    def envoys(self) -> dict[str, int]:
        """Pids by cluster; `global` is the one over them."""
        found = {}
        for pid, arguments in processes_in(self.stage.folder):
            for argument in arguments:
                if argument.endswith("/envoy/bootstrap.json"):
                    found[Path(argument).parent.parent.name] = pid
        return found

    def supervisords(self) -> dict[str, int]:
        """Pids by group."""
        found = {}
        for record in self.stage.plane.state.glob("supervisor/*/supervisord.pid"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(record.read_text())
                if os.path.samefile(f"/proc/{pid}/cwd", record.parent):
                    found[record.parent.name] = pid
        return found

    def postmaster(self) -> int | None:
        """The pid of the database's first process; None while there is none."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.stage.production / "postgres" / "postmaster.pid").read_text().split()[0])
            if os.path.exists(f"/proc/{pid}"):
                return pid
        return None

    def frontends(self) -> list[int]:
        """Pids of all replicas."""
        return [
            pid
            for pid, arguments in processes_in(self.stage.folder)
            if "production/bin/frontend.py" in arguments
        ]

    # --- how it stands -------------------------------------------------------------------

    async def recovered(self) -> float:
        """Wait until all is as the last commit says, and serves; returns the seconds that took."""
        began = time.monotonic()

        async def until(what: str, holds: Callable[[], bool | Awaitable[bool]]) -> None:
            while not await _answer(holds()):
                self.stage.plane.check_running()
                seconds = time.monotonic() - began
                assert seconds < CONVERGES, "\n".join((f"not in time: {what}", *self._circumstances()))
                await asyncio.sleep(_LOOK)

        await until("every server is there", self._all_there)
        await until("everything is as intended", lambda: not self.witness.left(self._commit))
        for cluster, count in self._replicas.items():
            serves = functools.partial(self.stage.serving, cluster, count, "v1")
            await until(f"{cluster} serves", serves)
        await until("the audience loses nothing more", self._audience_content())
        # What was killed may be seen, and pushed, only now that something else has taken its place.
        await until("no push is under way", self.witness.rests)
        seconds = time.monotonic() - began
        self.witness.judge()
        assert len(self.frontends()) == sum(self._replicas.values())
        return seconds

    def _all_there(self) -> bool:
        """Every server runs, under a supervisord."""
        supervisords, envoys = self.supervisords(), self.envoys()
        supervised = {_parent(pid) for pid in (*envoys.values(), *self.frontends())}
        there = supervisords.keys() == self._groups and envoys.keys() == self._clusters
        return there and supervised <= {*supervisords.values()} and self.postmaster() is not None

    def _audience_content(self) -> Callable[[], bool]:
        """Whether so many requests in a row have been answered."""
        audience = self.stage.seated()
        since = [audience.total, audience.lost]

        def content() -> bool:
            if audience.lost != since[1]:
                since[:] = [audience.total, audience.lost]
            return audience.total >= since[0] + _ANSWERS

        return content

    def _circumstances(self) -> list[str]:
        left = self.witness.left(self._commit)
        servers = [f"supervisords {self.supervisords()}", f"envoys {self.envoys()}"]
        return [*left, *servers, f"postmaster {self.postmaster()}", *self.stage.circumstances()]


async def _answer(answer: bool | Awaitable[bool]) -> bool:
    return answer if isinstance(answer, bool) else await answer


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0

"""What a controller meets: a machine and an etcd that fail in every way, and judge what it does.

Who answers, what becomes of a request whose answer never came, when the controller is killed: the seed says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from etcd_operator.gateway import Answer, RefusedError
from etcd_operator.machine import Record
from etcd_operator.operator import Operator
from etcd_operator.plan import Home, Member, quorum
from lehr.base.chance import Chance
from lehr.base.errors import TransientError
from lehr.client import Request
from lehr.testing.controllers import Stage
from tests.simulation.etcd_members import Disk, Members, Process

CLUSTER = 77
SERVER_SECONDS = 7.0
"""After so long etcd has done what it was asked for, or never will."""


class KilledError(Exception):
    """The controller was killed in the middle of a call that does not wait."""


class World(Members):
    """Implements `Machine` and `Etcd` for one controller at a time.

    Args:
        strict: etcd refuses changes that would cost the quorum, as it does by default. Without, all that is
            between the cluster and its loss is the controller.
        kill_at: at which of the points where it may be killed in the middle of a step; None for where the
            seed says.

    Attributes:
        troubled: whether anything goes wrong.
        points: how many of those points there were.
        kills: how often the controller was killed.
        changes: how often members were changed.
        status: what was told last.
    """

    def __init__(self, stage: Stage, seed: int, *, strict: bool, kill_at: int | None = None) -> None:
        super().__init__(stage.clock)
        self.troubled = kill_at is None
        self.strict = strict
        self.points = 0
        self.kills = 0
        self.changes = 0
        self.status: Mapping[str, Any] = {}
        self._stage = stage
        self._chance = Chance(seed)
        self._kill_at = kill_at
        self._record: Record | None = None
        self._alive = True
        self._in_flight: dict[int, float] = {}
        self._operator = self._new_operator()

    # --- the controller ----------------------------------------------------------------

    async def reconcile(self, request: Request) -> float | None:
        """What the controller is asked."""
        return await self._operator.reconcile(request)

    def kill_controller(self) -> None:
        """`kill -9`, and a new one after a while."""
        if self._alive:
            self._alive = False
            self.kills += 1
            self._stage.kill()
            self.later(self._draw(0.0, 20.0), self._start_controller)

    def _start_controller(self) -> None:
        self._alive = True
        self._operator = self._new_operator()
        self._stage.start()

    def _new_operator(self) -> Operator:
        return Operator(lambda id, port: self, lambda port: self, self._chance)

    # --- Machine -------------------------------------------------------------------------

    def record(self) -> Record | None:
        return self._record

    def write(self, record: Record) -> None:
        self._maybe_killed()
        self._record = record
        self._maybe_killed()

    def tell(self, status: Mapping[str, Any]) -> None:
        self.status = status

    def homes(self) -> list[Home]:
        self.began = self.now
        self.look()
        return [
            Home(name, disk.slot, disk.launched, disk.data, self.process_of(name))
            for name, disk in sorted(self.disks.items())
        ]

    def run(self, home: str, cluster: Mapping[str, int], *, new: bool) -> None:
        self._maybe_killed()
        slot = int(home.partition("-")[0])
        disk = self.disks.setdefault(home, Disk(slot))
        self._maybe_killed()
        disk.launched = True
        self._maybe_killed()
        member = self.member_at(home)
        if home in self.processes:
            self.complain(f"{home} has a second process")
        if new and self.members:
            self.complain(f"a new cluster is begun at {home}, and there is one")
        if not new and not disk.data and member is not None and member.name:
            self.complain(f"{home} comes back without the data of who it was")
        if any(other.slot == slot for name, other in self.disks.items() if name in self.processes):
            return  # its port is taken, so it ends at once
        ready = self.now + self._draw(0.3, 3.0)
        process = Process(self.number(), ready, synced=ready + self._draw(0.0, 20.0))
        self.processes[home] = process
        self.later(self._draw(0.1, 0.3), lambda: self.comes_up(home, process, new=new))
        self._maybe_killed()

    def kill(self, home: str) -> None:
        self._maybe_killed()
        member = self.member_at(home)
        if member is not None and not member.learner:
            self.look()
            if self._up_since.get(member.id, self.now) < self.began:
                self.complain(f"{home} is killed, and it was up")
            others = [other for other in self.voters if other.id != member.id and self.was_up(other)]
            if len(others) < quorum(len(self.voters)):
                self.complain(f"{home} is killed, and the others are no quorum")
        self.end(home)
        self._maybe_killed()

    def discard(self, home: str) -> None:
        self._maybe_killed()
        if self.member_at(home) is not None or home in self.processes:
            self.complain(f"{home} is discarded, and it is a member, or runs")
        self.disks.pop(home, None)

    # --- Etcd ------------------------------------------------------------------------------

    async def ask(self, slot: int) -> Answer:
        await self._pass(0.005, 0.05)
        answering = self.voter(slot)
        if answering is None or not self.has_quorum or self._unlucky(0.05):
            await self._pass(0.01, 2.0)
            raise TransientError("it does not answer")
        self.look()
        answer = Answer(CLUSTER, answering.id, self.leader, self.changes, tuple(self.members.values()))
        await self._pass(0.005, 0.05)
        return answer

    async def add(self, via: int, slot: int) -> None:
        def apply() -> None:
            id = self.number()
            self.members[id] = Member(id, slot, learner=True)

        if any(member.slot == slot for member in self.members.values()):
            self.complain(f"slot {slot} is given to a second member")
        await self._change(via, apply, lambda: all(self.is_up(member) for member in self.voters))

    async def promote(self, via: int, id: int) -> None:
        def possible() -> bool:
            member = self.members.get(id)
            process = None if member is None else self.processes.get(member.home)
            return process is not None and self.now >= process.synced

        def apply() -> None:
            member = self.members.get(id)
            if member is None:
                return
            self.disks[member.home].index = self.agreed  # what makes it a voter, it has
            self.members[id] = msgspec.structs.replace(member, learner=False)

        up = sum(self.was_up(member) for member in self.voters)
        if up + 1 < quorum(len(self.voters) + 1):
            self.complain(f"{id} is to vote, and {up} voters are up")
        await self._change(via, apply, possible, always=True)

    async def remove(self, via: int, id: int) -> None:
        member = self.members.get(id)
        voters = self.voters
        if member is not None and not member.learner:
            others = [other for other in voters if other.id != id]
            up = [other for other in others if self.was_up(other)]
            if len(up) < quorum(len(others)):
                self.complain(f"{member.home} is removed, and {len(up)} of {len(others)} others are up")
            if self.is_up(member) and len(up) < len(others):
                self.complain(f"{member.home} is healthy and is removed, and another is down")

        def keeps_quorum() -> bool:
            left = [other for other in self.voters if other.id != id]
            return sum(map(self.is_up, left)) >= quorum(len(left))

        await self._change(via, lambda: self._remove(id), keeps_quorum)

    def _remove(self, id: int) -> None:
        member = self.members.pop(id, None)
        if member is None:
            return
        process = self.processes.get(member.home)
        if process is not None and self._draw(0.0, 1.0) < 0.5:  # as a rule it ends by itself
            self.later(self._draw(0.0, 2.0), lambda: self.end(member.home, process))

    async def _change(
        self, via: int, apply: Callable[[], None], possible: Callable[[], bool], *, always: bool = False
    ) -> None:
        """What becomes of a change: it is refused, made, made later, or never; and told or not told."""
        self._in_flight = {number: until for number, until in self._in_flight.items() if until > self.now}
        if self._in_flight:
            self.complain("a second change is asked for while the first may still be made")
        number = self.number()
        self._in_flight[number] = self.now + SERVER_SECONDS
        self._cut()
        await self._pass(0.005, 0.05)
        if self.voter(via) is None or not self.has_quorum:
            del self._in_flight[number]
            await self._pass(0.01, 8.0)
            raise TransientError("it does not answer")
        if (self.strict or always) and not possible():
            del self._in_flight[number]
            raise RefusedError("refused")

        def make() -> None:
            self._in_flight.pop(number, None)
            if self.has_quorum and (possible() or not (self.strict or always)):
                apply()
                self.changes += 1
                self.look()

        fate = self._draw(0.0, 1.0) if self.troubled else 1.0
        if fate < 0.1:
            await self._pass(0.01, 8.0)
            raise TransientError("the request was lost")
        if fate < 0.2:
            self.later(self._draw(0.0, SERVER_SECONDS - 0.1), make)
            await self._pass(0.01, 8.0)
            raise TransientError("the answer was lost")
        make()
        self._cut()
        await self._pass(0.005, 0.05)

    # --- chance --------------------------------------------------------------------------

    def _draw(self, low: float, high: float) -> float:
        return self._chance.uniform(low, high)

    def _unlucky(self, probability: float) -> bool:
        return self.troubled and self._draw(0.0, 1.0) < probability

    async def _pass(self, low: float, high: float) -> None:
        """Time passes, in which the controller may be killed."""
        if self._unlucky(0.001):
            self.kill_controller()
        await self._clock.sleep(self._draw(low, high))

    def _maybe_killed(self) -> None:
        """A call that does not wait is cut in two. What is killed does nothing more."""
        if self._unlucky(0.01):
            self.kill_controller()
        self._cut()
        if not self._alive:
            raise KilledError

    def _cut(self) -> None:
        """Here the controller may be killed. Where it waits next, it stays."""
        if self.points == self._kill_at:
            self.kill_controller()
        self.points += 1

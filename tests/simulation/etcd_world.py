"""Simulated etcd members on a simulated machine, which fail in every way, and judge what a controller does.

What members have agreed on is one list, as consensus makes it; who is up, who answers, and what becomes of a
request whose answer never came, the seed says. Each rule that is broken is written down in `complaints`.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from etcd_operator.gateway import Answer, RefusedError
from etcd_operator.machine import Record
from etcd_operator.operator import Operator
from etcd_operator.plan import Home, Member, home_of, quorum
from lehr.base.chance import Chance
from lehr.base.errors import TransientError
from lehr.client import Request
from lehr.testing.controllers import Stage

CLUSTER = 77
SERVER_SECONDS = 7.0
"""After so long etcd has done what it was asked for, or never will."""


class KilledError(Exception):
    """The controller was killed in the middle of a call that does not wait."""


class Disk(msgspec.Struct):
    """A home on the disk.

    Attributes:
        index: how much of what was agreed on it has.
    """

    slot: int
    launched: bool = False
    data: bool = False
    index: int = 0


class Process(msgspec.Struct):
    """A member's process.

    Attributes:
        ready: when it takes part, in seconds.
        hangs: until when it does not answer.
        synced: when it has learnt enough to vote.
    """

    number: int
    ready: float
    hangs: float = 0.0
    synced: float = 0.0


class World:
    """Implements `Machine` and `Etcd` for one controller at a time.

    Args:
        strict: etcd refuses changes that would cost the quorum, as it does by default. Without, all that is
            between the cluster and its loss is the controller.
    """

    def __init__(self, stage: Stage, seed: int, *, strict: bool) -> None:
        self.complaints: list[str] = []
        self.troubled = True
        self.strict = strict
        self.members: dict[int, Member] = {}
        self.disks: dict[str, Disk] = {}
        self.processes: dict[str, Process] = {}
        self.agreed = 0
        self.kills = 0
        self.changes = 0
        self.status: Mapping[str, Any] = {}
        self._stage = stage
        self._clock = stage.clock
        self._chance = Chance(seed)
        self._numbers = 1000
        self._record: Record | None = None
        self._alive = True
        self._in_flight: dict[int, float] = {}
        self._began = 0.0
        self._down_since: dict[int, float] = {}
        self._up_since: dict[int, float] = {}
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

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Have something happen, whatever becomes of who caused it."""
        asyncio.get_running_loop().call_later(seconds, call, context=contextvars.Context())

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
        self._began = self.now
        self.look()
        return [
            Home(name, disk.slot, disk.launched, disk.data, self._number(name))
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
            self._complain(f"{home} has a second process")
        if new and self.members:
            self._complain(f"a new cluster is begun at {home}, and there is one")
        if not new and not disk.data and member is not None and member.name:
            self._complain(f"{home} comes back without the data of who it was")
        if any(other.slot == slot for name, other in self.disks.items() if name in self.processes):
            return  # its port is taken, so it ends at once
        self._numbers += 1
        ready = self.now + self._draw(0.3, 3.0)
        process = Process(self._numbers, ready, synced=ready + self._draw(0.0, 20.0))
        self.processes[home] = process
        self.later(self._draw(0.1, 0.3), lambda: self._comes_up(home, process, new))
        self._maybe_killed()

    def kill(self, home: str) -> None:
        self._maybe_killed()
        member = self.member_at(home)
        if member is not None and not member.learner:
            self.look()
            if self._up_since.get(member.id, self.now) < self._began:
                self._complain(f"{home} is killed, and it was up")
            others = [other for other in self.voters if other.id != member.id and self._was_up(other)]
            if len(others) < quorum(len(self.voters)):
                self._complain(f"{home} is killed, and the others are no quorum")
        self.end(home)
        self._maybe_killed()

    def discard(self, home: str) -> None:
        self._maybe_killed()
        if self.member_at(home) is not None or home in self.processes:
            self._complain(f"{home} is discarded, and it is a member, or runs")
        self.disks.pop(home, None)

    # --- Etcd ------------------------------------------------------------------------------

    async def ask(self, slot: int) -> Answer:
        await self._pass(0.005, 0.05)
        answering = self._voter(slot)
        if answering is None or not self.has_quorum or self._unlucky(0.05):
            await self._pass(0.01, 2.0)
            raise TransientError("it does not answer")
        self.look()
        answer = Answer(CLUSTER, answering.id, self.leader, self.changes, tuple(self.members.values()))
        await self._pass(0.005, 0.05)
        return answer

    async def add(self, via: int, slot: int) -> None:
        def apply() -> None:
            self._numbers += 1
            self.members[self._numbers] = Member(self._numbers, slot, learner=True)

        if any(member.slot == slot for member in self.members.values()):
            self._complain(f"slot {slot} is given to a second member")
        await self._change(via, apply, lambda: all(self._is_up(member) for member in self.voters))

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

        up = sum(self._was_up(member) for member in self.voters)
        if up + 1 < quorum(len(self.voters) + 1):
            self._complain(f"{id} is to vote, and {up} voters are up")
        await self._change(via, apply, possible, always=True)

    async def remove(self, via: int, id: int) -> None:
        member = self.members.get(id)
        voters = self.voters
        if member is not None and not member.learner:
            others = [other for other in voters if other.id != id]
            up = [other for other in others if self._was_up(other)]
            if len(up) < quorum(len(others)):
                self._complain(f"{member.home} is removed, and {len(up)} of {len(others)} others are up")
            if self._is_up(member) and len(up) < len(others):
                self._complain(f"{member.home} is healthy and is removed, and another is down")

        def keeps_quorum() -> bool:
            left = [other for other in self.voters if other.id != id]
            return sum(map(self._is_up, left)) >= quorum(len(left))

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
            self._complain("a second change is asked for while the first may still be made")
        self._numbers += 1
        number = self._numbers
        self._in_flight[number] = self.now + SERVER_SECONDS
        await self._pass(0.005, 0.05)
        if self._voter(via) is None or not self.has_quorum:
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
        await self._pass(0.005, 0.05)

    # --- what goes on --------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds."""
        return self._clock.monotonic()

    @property
    def voters(self) -> list[Member]:
        """Members whose vote counts."""
        return [member for member in self.members.values() if not member.learner]

    @property
    def leader(self) -> int:
        """Some voter that is up; 0 without a quorum."""
        up = [member.id for member in self.voters if self._is_up(member)]
        return min(up) if self.has_quorum else 0

    @property
    def has_quorum(self) -> bool:
        """Whether the cluster works."""
        return bool(self.voters) and sum(map(self._is_up, self.voters)) >= quorum(len(self.voters))

    def look(self) -> None:
        """Note who is down, and let those that are up agree on one thing more."""
        for member in self.members.values():
            if self._is_up(member):
                self._down_since.pop(member.id, None)
                self._up_since.setdefault(member.id, self.now)
            else:
                self._up_since.pop(member.id, None)
                self._down_since.setdefault(member.id, self.now)
        if not self.has_quorum:
            return
        disks = [self.disks[member.home] for member in self.voters if self._is_up(member)]
        if max(disk.index for disk in disks) < self.agreed:
            self._complain("what was acknowledged is lost")
        self.agreed += 1
        for disk in disks:
            disk.index = self.agreed

    def end(self, home: str, process: Process | None = None) -> None:
        """End a process, that one if it is named."""
        if process is None or self.processes.get(home) is process:
            self.processes.pop(home, None)
            self.look()

    def hang(self, home: str, seconds: float) -> None:
        """Let a process not answer for so long."""
        process = self.processes.get(home)
        if process is not None:
            process.hangs = self.now + seconds
            self.look()

    def lose(self, home: str, *, whole: bool) -> None:
        """Take a member's data, and its process."""
        self.end(home)
        if whole:
            self.disks.pop(home, None)
        elif home in self.disks:
            self.disks[home].data = False
            self.disks[home].index = 0

    def can_lose(self, home: str) -> bool:
        """Whether the cluster can be mended without this home's data."""
        member = self.member_at(home)
        if member is None or member.learner:
            return bool(self.members)
        return self.strict and len(self.voters) >= 3 and all(self._is_up(other) for other in self.voters)

    def is_as_intended(self, size: int) -> bool:
        """Whether so many vote and are up, and nothing else is there."""
        homes = {member.home for member in self.members.values()}
        up = all(self._is_up(member) for member in self.voters)
        return up and len(self.voters) == len(self.members) == size and homes == self.disks.keys()

    def member_at(self, home: str) -> Member | None:
        """Whose home it is."""
        return next((member for member in self.members.values() if member.home == home), None)

    def _comes_up(self, home: str, process: Process, new: bool) -> None:
        if self.processes.get(home) is not process or home not in self.disks:
            return
        disk = self.disks[home]
        disk.data = True
        if new and not self.members:
            self._numbers += 1
            self.members[self._numbers] = Member(self._numbers, disk.slot, home)
            return
        member = self.member_at(home)
        if member is not None and not member.name:
            self.members[member.id] = msgspec.structs.replace(member, name=home_of(member.slot, member.id))

    def _voter(self, slot: int) -> Member | None:
        return next((member for member in self.voters if member.slot == slot and self._is_up(member)), None)

    def _is_up(self, member: Member) -> bool:
        process, disk = self.processes.get(member.home), self.disks.get(member.home)
        if process is None or disk is None or not disk.data:
            return False
        return self.now >= process.ready and self.now >= process.hangs

    def _was_up(self, member: Member) -> bool:
        """Whether it was up at any time since the controller began to look: more it cannot know."""
        return self._is_up(member) or self._down_since.get(member.id, 0.0) >= self._began

    def _number(self, home: str) -> int:
        return self.processes[home].number if home in self.processes else 0

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
        if not self._alive:
            raise KilledError
        if self._unlucky(0.01):
            self.kill_controller()
            raise KilledError

    def _complain(self, what: str) -> None:
        self.complaints.append(f"{self.now:.1f} s: {what}")

"""Simulated members of etcd: who votes, who is up, and what they have agreed on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

import msgspec

from etcd_operator.plan import Member, home_of, quorum
from lehr.testing.virtual import VirtualClock


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


class Members:
    """All members, their processes and their disks. They agree on one list, as consensus makes it.

    Attributes:
        complaints: rules that were broken.
        members: by id.
        disks: homes by name.
        processes: by home.
        agreed: on how many things.
        began: when the controller last began to look, in seconds.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.complaints: list[str] = []
        self.members: dict[int, Member] = {}
        self.disks: dict[str, Disk] = {}
        self.processes: dict[str, Process] = {}
        self.agreed = 0
        self.began = 0.0
        self._clock = clock
        self._numbers = 1000
        self._down_since: dict[int, float] = {}
        self._up_since: dict[int, float] = {}

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
        up = [member.id for member in self.voters if self.is_up(member)]
        return min(up) if self.has_quorum else 0

    @property
    def has_quorum(self) -> bool:
        """Whether the cluster works."""
        return bool(self.voters) and sum(map(self.is_up, self.voters)) >= quorum(len(self.voters))

    def look(self) -> None:
        """Note who is down, and let those that are up agree on one thing more."""
        for member in self.members.values():
            if self.is_up(member):
                self._down_since.pop(member.id, None)
                self._up_since.setdefault(member.id, self.now)
            else:
                self._up_since.pop(member.id, None)
                self._down_since.setdefault(member.id, self.now)
        if not self.has_quorum:
            return
        disks = [self.disks[member.home] for member in self.voters if self.is_up(member)]
        if max(disk.index for disk in disks) < self.agreed:
            self.complain("what was acknowledged is lost")
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
        return len(self.voters) >= 3 and all(self.is_up(other) for other in self.voters)

    def is_as_intended(self, size: int) -> bool:
        """Whether so many vote and are up, and nothing else is there."""
        homes = {member.home for member in self.members.values()}
        up = all(self.is_up(member) for member in self.voters)
        return up and len(self.voters) == len(self.members) == size and homes == self.disks.keys()

    def member_at(self, home: str) -> Member | None:
        """Whose home it is."""
        return next((member for member in self.members.values() if member.home == home), None)

    def comes_up(self, home: str, process: Process, *, new: bool) -> None:
        """A process that was started is there: it has data, and a name, and the first one is a cluster."""
        if self.processes.get(home) is not process or home not in self.disks:
            return
        disk = self.disks[home]
        disk.data = True
        if new and not self.members:
            id = self.number()
            self.members[id] = Member(id, disk.slot, home)
            return
        member = self.member_at(home)
        if member is not None and not member.name:
            self.members[member.id] = msgspec.structs.replace(member, name=home_of(member.slot, member.id))

    def voter(self, slot: int) -> Member | None:
        """Who votes and is up in a slot."""
        return next((member for member in self.voters if member.slot == slot and self.is_up(member)), None)

    def is_up(self, member: Member) -> bool:
        """Whether it takes part."""
        process, disk = self.processes.get(member.home), self.disks.get(member.home)
        if process is None or disk is None or not disk.data:
            return False
        return self.now >= process.ready and self.now >= process.hangs

    def was_up(self, member: Member) -> bool:
        """Whether it was up at any time since the controller began to look: more it cannot know."""
        return self.is_up(member) or self._down_since.get(member.id, 0.0) >= self.began

    def process_of(self, home: str) -> int:
        """Number of a member's process; 0 if it has none."""
        return self.processes[home].number if home in self.processes else 0

    def number(self) -> int:
        """A number that nothing had before."""
        self._numbers += 1
        return self._numbers

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Have something happen, whatever becomes of who caused it."""
        asyncio.get_running_loop().call_later(seconds, call, context=contextvars.Context())

    def complain(self, what: str) -> None:
        """A rule was broken."""
        self.complaints.append(f"{self.now:.1f} s: {what}")

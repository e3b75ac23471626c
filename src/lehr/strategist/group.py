"""The members of one policy, and which of them a step is about. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lehr.model.asset import AssetId
from lehr.rollouts.course import Rollout
from lehr.rollouts.members import Member
from lehr.rollouts.plan import BASELINES_AT_ONCE


class Group:
    """The members of one policy, as intent and their releases have them.

    Attributes:
        members: by id.
    """

    def __init__(self) -> None:
        self.members: dict[AssetId, Member] = {}
        self._units: dict[str, set[AssetId]] = {}
        self._wanting: set[AssetId] = set()
        self._unknown: set[AssetId] = set()
        self._unseen: list[AssetId] = []
        self._in_play: set[AssetId] = set()

    def put(self, member: Member) -> None:
        """Add a member, or replace it by one of the same unit."""
        self.members[member.id] = member
        self._units.setdefault(member.unit, set()).add(member.id)
        (self._wanting.add if member.wants_newest else self._wanting.discard)(member.id)
        (self._unknown.discard if member.known else self._unknown.add)(member.id)

    def remove(self, id: AssetId) -> None:
        """Remove a member, if it is one."""
        member = self.members.pop(id, None)
        if member is None:
            return
        of_unit = self._units[member.unit]
        of_unit.discard(id)
        if not of_unit:
            del self._units[member.unit]
        self._wanting.discard(id)
        self._unknown.discard(id)

    def ids_in_play(self, rollout: Rollout | None) -> list[AssetId]:
        """The members of all units that want other content, or got it in the rollout under way."""
        units = {self.members[id].unit for id in self._wanting}
        units.update(() if rollout is None else rollout.updated)
        return sorted(id for unit in units for id in self._units.get(unit, ()))

    def share(self, applied: Callable[[Member], Member]) -> list[Member]:
        """Members that have content and were never released: as many of them as one step releases.

        Every call continues where the last one ended. It returns none, or only such whose push is under way,
        after it has seen all. So all calls together look at each of them about twice.

        Args:
            applied: completes a member by what was applied to it.
        """
        found: list[Member] = []
        again, free = True, 0
        while free == 0 and (self._unseen or again):
            if not self._unseen:
                found, again = [], False
                self._unseen = sorted(self._unknown, reverse=True)
            while self._unseen and free < BASELINES_AT_ONCE:
                id = self._unseen.pop()
                member = applied(self.members[id]) if id in self._unknown else None
                if member is not None and member.applied is not None:
                    found.append(member)
                    free += not member.busy
        return found

    def left(self, members: Iterable[Member]) -> set[AssetId]:
        """The ids of those that took part in the last step, and not in this one with `members`."""
        before, self._in_play = self._in_play, {item.id for item in members}
        return before - self._in_play

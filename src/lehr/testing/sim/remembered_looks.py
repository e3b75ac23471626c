"""The results of looks at production, kept for as long as judges need them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from lehr.base.clock import Clock
from lehr.model.diff import Diff, Goal, Target

Place = tuple[str, int, str]
"""An asset, the incarnation that it was compared with, and the goal."""


REMEMBERED_SECONDS = 30.0
"""All looks of so many seconds are known."""

_FEWEST = 16


class Look(msgspec.Struct, frozen=True):
    """The answer to one look, and when it came by a clock that does not jump."""

    at: float
    diff: Diff


class RememberedLooks:
    """The last looks at each asset."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: dict[Place, deque[Look]] = {}
        self._matched: set[Place] = set()

    def remember(self, target: Target, diff: Diff) -> None:
        """A look for `target` has found this."""
        place = (target.id, target.incarnation, str(target.goal))
        looks, now = self._looks.setdefault(place, deque()), self._clock.monotonic()
        looks.append(Look(now, diff))
        while len(looks) > _FEWEST and looks[0].at < now - REMEMBERED_SECONDS:
            looks.popleft()
        if diff.empty:
            self._matched.add(place)

    def at(self, id: str, incarnation: int, goal: Goal) -> Iterable[Look]:
        """The last ones that compared an asset with the content of an incarnation."""
        return self._looks.get((id, incarnation, str(goal)), ())

    def have_matched(self, id: str, incarnation: int, goal: Goal) -> bool:
        """Whether any look, however long ago, has found nothing to do."""
        return (id, incarnation, str(goal)) in self._matched

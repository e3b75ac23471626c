"""Memories of a process about its pushes. Only hints: another process does without."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TypeVar

from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.model.asset import AssetKey
from lehr.model.diff import Target

K = TypeVar("K")
V = TypeVar("V")

_MOST = 10_000


class Memory:
    """Hints about pushes: lost ones, and what others have made and changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: OrderedDict[str, str] = OrderedDict()
        self._searched: OrderedDict[str, float] = OrderedDict()
        self._made: OrderedDict[AssetKey, float] = OrderedDict()
        self._changed: OrderedDict[AssetKey, tuple[float, Target]] = OrderedDict()

    def left(self, operation: str) -> str | None:
        """The handle that a cancelled push has left, empty for none; None if that is not known."""
        return self._left.get(operation) if operation else None

    def note_left(self, operation: str, handle: str) -> None:
        """Remember what a cancelled push has left."""
        _keep(self._left, operation, handle)

    def searched_seconds(self, operation: str) -> float:
        """Since when the work of a lost push has been looked for; the first question begins the search."""
        now = self._clock.monotonic()
        if operation not in self._searched:
            _keep(self._searched, operation, now)
        return now - self._searched[operation]

    def made_seconds(self, key: AssetKey) -> float:
        """Since when this process has created the resource of an asset; infinite if it has not."""
        return self._clock.monotonic() - self._made.get(key, -math.inf)

    def note_made(self, key: AssetKey, *, exists: bool) -> None:
        """Remember that the resource of an asset was just created, or that it is gone."""
        if exists:
            _keep(self._made, key, self._clock.monotonic())
        else:
            self._made.pop(key, None)

    def note_changed(self, target: Target, handle: str) -> None:
        """Remember that a push has changed a resource, and that no diff has an answer yet."""
        _keep(self._changed, target.key, (self._clock.monotonic(), replace(target, handle=handle)))

    def changed_seconds(self, target: Target) -> float:
        """Since when this process has changed the resource to this intent; infinite if it has not.

        Infinite also once a diff has an answer.
        """
        at, changed = self._changed.get(target.key, (-math.inf, None))
        return self._clock.monotonic() - at if changed == target else math.inf

    def note_compared(self, target: Target) -> None:
        """Remember that a diff has an answer, whatever was changed before."""
        self._changed.pop(target.key, None)


def _keep(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _MOST:
        known.popitem(last=False)

"""The queue of turns: which item is next."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_ROUTINE_SHARE = 8
"""Every eighth turn is a routine one while urgent ones queue, so that neither starves."""


class TurnQueue(Generic[T]):
    """First in, first out, in two classes: urgent turns before routine ones, but not forever.

    Items are hashable; a routine one that has become urgent moves up.
    """

    def __init__(self) -> None:
        self._urgent: deque[T] = deque()
        self._routine: OrderedDict[T, None] = OrderedDict()
        self._taken = 0

    def __len__(self) -> int:
        return len(self._urgent) + len(self._routine)

    def __iter__(self) -> Iterator[T]:
        yield from self._urgent
        yield from self._routine

    def add(self, item: T, *, urgent: bool) -> None:
        """Queue `item`; callers must not queue it twice."""
        if urgent:
            self._urgent.append(item)
        else:
            self._routine[item] = None

    def hasten(self, item: T) -> None:
        """Make the queued turn of `item` urgent."""
        if item in self._routine:
            del self._routine[item]
            self._urgent.append(item)

    def take(self) -> T:
        """The next item.

        Raises:
            IndexError: nothing is queued.
        """
        self._taken += 1
        routine_first = self._taken % _ROUTINE_SHARE == 0
        if self._routine and (routine_first or not self._urgent):
            return self._routine.popitem(last=False)[0]
        return self._urgent.popleft()

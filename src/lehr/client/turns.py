"""The queue of turns: which item is next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_ROUTINE_SHARE = 8
"""Every eighth turn is a routine one while urgent ones queue, so that neither starves."""


class TurnQueue(Generic[T]):
    """First in, first out, in two classes: urgent turns before routine ones, but not forever.

    Items are hashable; a routine one that has become urgent moves up. A million queued items take 8 MB.
    """

    def __init__(self) -> None:
        self._urgent: deque[T] = deque()
        self._routine: deque[T] = deque()
        self._moved: dict[T, int] = {}  # how many of the oldest places in `_routine` no longer count
        self._moves = 0  # the sum of these
        self._taken = 0

    def __len__(self) -> int:
        return len(self._urgent) + len(self._routine) - self._moves

    def __iter__(self) -> Iterator[T]:
        """The next items, but routine ones that have ever moved up may be missing."""
        yield from self._urgent
        for item in self._routine:
            if item not in self._moved:
                yield item

    def first(self) -> T | None:
        """The first of the next items, as iteration has it; None if there is none."""
        if self._urgent:
            return self._urgent[0]
        return next(iter(self), None) if self._moved or not self._routine else self._routine[0]

    def add(self, item: T, *, urgent: bool) -> None:
        """Queue `item`; callers must not queue it twice."""
        if urgent:
            self._urgent.append(item)
        else:
            self._routine.append(item)

    def hasten(self, item: T) -> None:
        """Make the turn of `item` urgent, which is queued as a routine one."""
        self._moved[item] = self._moved.get(item, 0) + 1
        self._moves += 1
        self._urgent.append(item)

    def take(self) -> T:
        """The next item.

        Raises:
            IndexError: nothing is queued.
        """
        self._taken += 1
        if self._moves:
            self._drop_moved()
        routine_first = self._taken % _ROUTINE_SHARE == 0
        if self._routine and (routine_first or not self._urgent):
            return self._routine.popleft()
        return self._urgent.popleft()

    def _drop_moved(self) -> None:
        """Make sure that the oldest place of a routine turn counts."""
        while self._routine and (left := self._moved.get(self._routine[0], 0)):
            item = self._routine.popleft()
            self._moves -= 1
            if left > 1:
                self._moved[item] = left - 1
            else:
                del self._moved[item]

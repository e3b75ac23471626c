"""Which assets listen to which others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Listeners(Generic[T]):
    """A relation between listeners and those they listen to."""

    def __init__(self) -> None:
        self._listeners: dict[T, set[T]] = {}

    def join(self, listener: T, subjects: Iterable[T]) -> None:
        """`listener` wants to be notified of each of `subjects`."""
        for subject in subjects:
            self._listeners.setdefault(subject, set()).add(listener)

    def leave(self, listener: T, subjects: Iterable[T]) -> None:
        """`listener` no longer wants to be notified of `subjects`."""
        for subject in subjects:
            listeners = self._listeners.get(subject)
            if listeners is not None:
                listeners.discard(listener)
                if not listeners:
                    del self._listeners[subject]

    def of(self, subject: T) -> list[T]:
        """All listeners of `subject`, in a stable order."""
        return sorted(self._listeners.get(subject, ()), key=repr)

"""Which assets listen to which others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

L = TypeVar("L", bound=Hashable)
S = TypeVar("S", bound=Hashable)


class Listeners(Generic[L, S]):
    """A relation between listeners and those they listen to."""

    def __init__(self) -> None:
        self._listeners: dict[S, set[L]] = {}

    def join(self, listener: L, subjects: Iterable[S]) -> None:
        """`listener` wants to be notified of each of `subjects`."""
        for subject in subjects:
            self._listeners.setdefault(subject, set()).add(listener)

    def leave(self, listener: L, subjects: Iterable[S]) -> None:
        """`listener` no longer wants to be notified of `subjects`."""
        for subject in subjects:
            listeners = self._listeners.get(subject)
            if listeners is not None:
                listeners.discard(listener)
                if not listeners:
                    del self._listeners[subject]

    def of(self, subject: S) -> list[L]:
        """All listeners of `subject`, in a stable order."""
        listeners = self._listeners.get(subject)
        return sorted(listeners, key=repr) if listeners else []

"""Values that take long to read from the store, kept from one question to the next."""

from __future__ import annotations

import threading  # noqa: TID251 -- for a lock; it starts no thread
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Kept:
    """Values by name, shared by all questions to a server. Thread-safe.

    Each is brought up to date by one question at a time. Others wait, and then have nothing left to do.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], Any] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}

    def updated(self, name: tuple[str, str], update: Callable[[T | None], T]) -> T:
        """The value of `name` now.

        Args:
            name: a kind of value, and its partition: few enough to keep all of them.
            update: returns the value now, from the value before, which it does not change; None at first.
        """
        with self._locks.setdefault(name, threading.Lock()):
            found = self._values[name] = update(self._values.get(name))
            return found

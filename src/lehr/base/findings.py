"""Findings that calls at about the same time share, so that each thing is looked at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Findings(Generic[T]):
    """A place for findings, new for calls that began after the last one was made.

    So each call uses only what was found after it had begun, as if it had looked itself.

    Args:
        make: makes an empty place, which threads may share.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._begun = 0
        self._latest = 0, make()

    def begin(self) -> int:
        """The number of a call that begins now. Belongs to the event loop."""
        self._begun += 1
        return self._begun

    def of(self, call: int) -> T:
        """The place for the findings of a call. May run in any thread."""
        begun, place = self._latest
        if call > begun:
            begun, place = self._latest = self._begun, self._make()
        return place

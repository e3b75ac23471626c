"""The smallest set of things that is enough. Pure, but for the question that it asks."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

MOST = 4
"""Members of a set, at most."""

MOST_QUESTIONS = 64
"""With six things to choose from, all sets of up to four are fewer."""


class Search(NamedTuple, Generic[T]):
    """The result of a search.

    Attributes:
        found: the set; empty if nothing is needed, None if none was found.
        complete: whether every smaller set, and without a result every set, was asked about.
    """

    found: tuple[T, ...] | None
    complete: bool


async def smallest_set(
    things: Sequence[T],
    is_enough: Callable[[tuple[T, ...]], Awaitable[bool]],
    *,
    most: int = MOST,
    questions: int = MOST_QUESTIONS,
) -> Search[T]:
    """The first smallest set that is enough: no member can be left out, since no smaller set is enough.

    Whether a set is enough may not follow from its parts: a thing can be harmful in one set and useful in
    another. So every set is asked about, smaller ones first, and earlier things before later ones.

    Args:
        most: members, at most.
        questions: sets to ask about, at most.
    """
    asked = 0
    for size in range(min(most, len(things)) + 1):
        for chosen in itertools.combinations(things, size):
            if asked == questions:
                return Search(None, complete=False)
            asked += 1
            if await is_enough(chosen):
                return Search(chosen, complete=True)
    return Search(None, complete=True)

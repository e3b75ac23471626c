"""Watching intent: a reader lists once, and is then notified.

The contract, for authors of what can be watched:

* Batches come in the order of incarnations, each once, none left out, never back in time.
* A batch is one incarnation, whole; one without a change that the reader wants may be left out, or
  be empty, as a sign of life.
* A reader that cannot be given the changes since, because they were pruned, must list again
  (`ListAgainError`), and never gets less than all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

import msgspec

from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId


class Listing(msgspec.Struct, frozen=True):
    """All assets that a reader wants, as one incarnation has them.

    Attributes:
        sequence: of the incarnation; 0 before the first.
    """

    sequence: int
    assets: Iterable[Asset]


class Batch(msgspec.Struct, frozen=True):
    """One incarnation's changes of what a reader wants.

    Attributes:
        sequence: of the incarnation.
        changed: assets that are new or differ.
        gone: ids of those that are no longer in it, or no longer wanted.
    """

    sequence: int
    changed: tuple[Asset, ...] = ()
    gone: tuple[AssetId, ...] = ()


class ListAgainError(TransientError):
    """The changes since are no longer known."""

    def __init__(self, after: int, why: str) -> None:
        """`after` is the incarnation after which changes were wanted."""
        super().__init__(
            f"changes after incarnation {after} are no longer known",
            code="SDK107",
            why=why,
            fix="list again",
        )


class FeedGoneError(ListAgainError):
    """The entries of the feed since a position are no longer known."""

    def __init__(self, after: int, why: str) -> None:
        """`after` is the position after which entries were wanted."""
        TransientError.__init__(
            self,
            f"changes after position {after} of the feed are no longer known",
            code="SDK111",
            why=why,
            fix="list again",
        )


class Watchable(Protocol):
    """Intent of one partition, or a part of it, that can be listed and watched."""

    async def list(self) -> Listing:
        """Everything as it is now.

        Raises:
            TransientError: not now.
        """
        ...

    def watch(self, after: int) -> AsyncIterator[Batch]:
        """Batches of all incarnations after `after`, for ever.

        Raises:
            ListAgainError: they are no longer known.
            TransientError: the connection is lost; watch again after the last batch.
        """
        ...

"""Watching intent, and the feed of records: a reader lists once, and is then notified.

The contract of intent, for authors of what can be watched:

* Batches come in the order of incarnations, each once, none left out, never back in time.
* A batch is one incarnation, whole; one without a change that the reader wants may be left out, or
  be empty, as a sign of life.
* A reader that cannot be given the changes since, because they were pruned, must list again
  (`ListAgainError`), and never gets less than all.

That of the feed is the same, with entries for batches and positions for incarnations, except that entries
name records and do not contain them:

* Entries come in the order of their positions, each once, none left out, never back. An entry without changes
  is a sign of life.
* A record that an entry names can be read when the entry arrives, as it was then or newer, unless it was
  pruned since.
* A reader takes the position first, lists what it wants to know, and watches after that position. A reader
  that comes back watches after the last entry that it has.
* A reader that cannot be given the entries since (`FeedGoneError`) must list again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

import msgspec

from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId
from lehr.model.feed import FeedEntry


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


class WatchableFeed(Protocol):
    """The feed of one partition."""

    async def position(self) -> int:
        """Position of the newest entry; 0 before the first. Reads from now on show its changes.

        Raises:
            TransientError: not now.
        """
        ...

    def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        """All entries after position `after`, for ever.

        Raises:
            FeedGoneError: they are no longer known.
            TransientError: the connection is lost; watch again after the last entry.
        """
        ...

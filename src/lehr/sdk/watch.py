"""Watching intent: what a reader lists once, and then hears of.

The contract, for authors of what can be watched:

* Batches come in the order of incarnations, each once, none left out, never back in time.
* A batch is one incarnation, whole; one that changes nothing which the reader wants may be left out,
  or come empty, as a sign of life.
* Who cannot be told what happened since, because it was pruned, is told to list again
  (`ListAgainError`), and never less than all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

import msgspec

from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId


class Listing(msgspec.Struct, frozen=True):
    """All assets that a reader wants, as they stand in one incarnation.

    Attributes:
        sequence: of the incarnation; 0 before the first.
    """

    sequence: int
    assets: Iterable[Asset]


class Batch(msgspec.Struct, frozen=True):
    """What one incarnation changed of what a reader wants.

    Attributes:
        sequence: of the incarnation.
        changed: assets that are new or differ.
        gone: ids of those that are not in it any more, or are not wanted any more.
    """

    sequence: int
    changed: tuple[Asset, ...] = ()
    gone: tuple[AssetId, ...] = ()


class ListAgainError(TransientError):
    """What happened since is not known any more."""

    def __init__(self, after: int, why: str) -> None:
        """`after` is the incarnation after which changes were wanted."""
        super().__init__(
            f"changes after incarnation {after} are not known any more",
            code="SDK107",
            why=why,
            fix="list again",
        )


class Watchable(Protocol):
    """Intent of one partition, or a part of it, that can be listed and watched."""

    async def list(self) -> Listing:
        """Everything as it stands now.

        Raises:
            TransientError: not now.
        """
        ...

    def watch(self, after: int) -> AsyncIterator[Batch]:
        """Batches of all incarnations after `after`, for ever.

        Raises:
            ListAgainError: they are not known any more.
            TransientError: the connection is lost; watch again after the last batch.
        """
        ...

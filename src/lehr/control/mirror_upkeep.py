"""Keeps the mirrors of sources small while the program runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.log import Log
from lehr.sdk.store import Store

log = Log()

_FIRST_SECONDS = 60.0
_SECONDS = 3600.0
_EVERY = 1_000_000_000


class Tidying(msgspec.Struct, frozen=True):
    """The operations of a source's mirror.

    Attributes:
        forget: drops all revisions except those that it is given.
        pack: packs the rest. May take long.
        blocking: runs both.
    """

    forget: Callable[[Collection[str]], int]
    pack: Callable[[], None]
    blocking: Blocking


async def tidy_up(
    tidying: Tidying, store: Store, reading: Blocking, publishing: asyncio.Lock, clock: Clock
) -> None:
    """Periodically forget revisions that no incarnation was made from, and pack the rest.

    Args:
        publishing: held during a publication.
        reading: runs reads of the store.
    """
    wait = _FIRST_SECONDS
    while True:
        await clock.sleep(wait)
        wait = _SECONDS
        try:
            async with publishing:  # a revision is kept before its incarnation exists
                kept = await reading.run(_kept, store)
                if kept:  # a store without incarnations may be a different one
                    await tidying.blocking.run(tidying.forget, kept)
            await tidying.blocking.run(tidying.pack)
        except Exception:
            log.exception("the data kept of sources could not be cleaned up; retrying")


def _kept(store: Store) -> frozenset[str]:
    """Revisions that incarnations were made from."""
    intent = store.intent
    headers = (item for name in intent.partitions() for item in intent.incarnations(name, _EVERY))
    return frozenset(source.revision for header in headers for source in header.sources)

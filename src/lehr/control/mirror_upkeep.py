"""Keeping small what sources keep, while the program runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec
import structlog

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.sdk.store import Store

log = structlog.get_logger()

_FIRST_SECONDS = 60.0
_SECONDS = 3600.0
_EVERY = 1_000_000_000


class Tidying(msgspec.Struct, frozen=True):
    """How it is done.

    Attributes:
        forget: lets go of all revisions but those that it is given.
        pack: packs the rest. May take long.
        blocking: runs both.
    """

    forget: Callable[[Collection[str]], int]
    pack: Callable[[], None]
    blocking: Blocking


async def tidy_up(
    tidying: Tidying, store: Store, reading: Blocking, publishing: asyncio.Lock, clock: Clock
) -> None:
    """Now and then, forget what no incarnation was made from any more, and pack the rest.

    Args:
        publishing: held while something is published.
        reading: runs what reads the store.
    """
    wait = _FIRST_SECONDS
    while True:
        await clock.sleep(wait)
        wait = _SECONDS
        try:
            async with publishing:  # a revision is kept before its incarnation is there
                kept = await reading.run(_kept, store)
                if kept:  # a store that has none may be another one
                    await tidying.blocking.run(tidying.forget, kept)
            await tidying.blocking.run(tidying.pack)
        except Exception:
            log.exception("what sources keep could not be tidied up, it is tried again")


def _kept(store: Store) -> frozenset[str]:
    """Revisions that incarnations were made from."""
    intent = store.intent
    headers = (item for name in intent.partitions() for item in intent.incarnations(name, _EVERY))
    return frozenset(source.revision for header in headers for source in header.sources)

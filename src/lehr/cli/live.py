"""`--watch`: output that follows the records of a partition, until it is interrupted.

A loop without asyncio, which would not end at Ctrl-C before a read that hangs.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import NoReturn, Protocol

import click

from lehr.base.clock import SystemClock
from lehr.base.errors import TransientError
from lehr.model.damage import DamagedError
from lehr.model.feed import FeedEntry
from lehr.query.partition_view import Reading
from lehr.sdk.watch import FeedGoneError

_LOOK_SECONDS = 0.5
_AGAIN_SECONDS = 2.0
_ENTRIES = 1000

Entries = Sequence[FeedEntry] | None
"""Entries of the feed since the last look; None if they are not known."""

watch_option = click.option(
    "-w", "--watch", is_flag=True, help="Continue with what changes, until interrupted."
)


class Live(Protocol):
    """Output that changes."""

    def show(self, reading: Reading, entries: Entries) -> None:
        """Write what has changed.

        Raises:
            TransientError: not now. It is called again, with these entries or with None.
        """
        ...

    def report(self, trouble: str) -> None:
        """Report that nothing can be read now; empty when it can be read again."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait, at most that long."""
        ...


class Lines:
    """The part of `Live` for output that only grows."""

    def report(self, trouble: str) -> None:
        if trouble:
            click.echo(f"{trouble}; trying again", err=True)

    def pause(self, seconds: float) -> None:
        select.select((), (), (), seconds)


def follow(reading: Reading, live: Live, every: float = _LOOK_SECONDS) -> NoReturn:
    """Show what is there, and then what changes, for ever; looks for changes `every` so many seconds."""
    feed, clock, troubled = _Feed(), SystemClock(), False
    while True:
        began = clock.monotonic()
        try:
            now = Reading(reading.store, reading.partition, clock.now(), reading.inert)
            live.show(now, feed.look(now))
            feed.shown()
            if troubled:
                live.report("")
            troubled, seconds = False, every
        except TransientError as error:
            if not troubled:
                live.report(str(error))
            troubled, seconds = True, _AGAIN_SECONDS
        # Where reading takes long, at most half the time is spent on it.
        live.pause(max(seconds, clock.monotonic() - began))


class _Feed:
    """The position of a reader in the feed."""

    def __init__(self) -> None:
        self._shown: int | None = None
        self._ahead = 0

    def look(self, reading: Reading) -> Entries:
        """The next entries."""
        records, partition = reading.records, reading.partition
        if self._shown is not None:
            try:
                found = records.feed(partition, self._shown, _ENTRIES)
                self._ahead = found[-1].position if found else self._shown
                return found
            except (FeedGoneError, DamagedError):
                self._shown = None
        self._ahead = records.position(partition)
        return None

    def shown(self) -> None:
        """Continue after the entries that the last look returned."""
        self._shown = self._ahead

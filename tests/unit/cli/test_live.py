"""Output that follows records: what it is shown, how trouble is reported, and how a screen is drawn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from lehr.base.errors import TransientError
from lehr.cli.live import Entries, follow
from lehr.cli.screen import picture
from lehr.cli.terminal import GrowingTable
from lehr.model.asset import Partition
from lehr.model.feed import FeedEntry
from lehr.query.partition_view import Reading
from lehr.sdk.watch import FeedGoneError


class EndedError(Exception):
    """The test has seen enough."""


class Feed:
    """The feed of a partition."""

    def __init__(self, newest: int = 0) -> None:
        self.newest = newest
        self.gone = False

    def position(self, _partition: Partition) -> int:
        return self.newest

    def feed(self, _partition: Partition, after: int, limit: int) -> list[FeedEntry]:
        if self.gone:
            raise FeedGoneError(after, "pruned")
        return [FeedEntry(number, 0.0) for number in range(after + 1, self.newest + 1)][:limit]


class Watcher:
    """Keeps what it is shown. Before each look after the first, the next of `acts` happens."""

    def __init__(self, feed: Feed, *acts: Callable[[], None]) -> None:
        self.shown: list[list[int] | None] = []
        self.reported: list[str] = []
        self.fails = False
        self._acts = list(acts)
        records = SimpleNamespace(position=feed.position, feed=feed.feed)
        store = SimpleNamespace(records=records)
        self._reading = Reading(store, Partition("shop"), 0.0, lambda _type: False)

    def run(self) -> Watcher:
        with pytest.raises(EndedError):
            follow(self._reading, self)
        return self

    def show(self, reading: Reading, entries: Entries) -> None:
        if self.fails:
            raise TransientError("not now", code="TST101")
        self.shown.append(None if entries is None else [entry.position for entry in entries])

    def report(self, trouble: str) -> None:
        self.reported.append(trouble)

    def pause(self, seconds: float) -> None:
        if not self._acts:
            raise EndedError
        self._acts.pop(0)()


def test_first_everything_is_shown_and_then_entries_of_the_feed() -> None:
    feed = Feed(7)
    watcher = Watcher(feed, lambda: None, lambda: setattr(feed, "newest", 9), lambda: None).run()
    assert watcher.shown == [None, [], [8, 9], []]


def test_after_a_gap_in_the_feed_everything_is_shown_again() -> None:
    feed = Feed(7)

    def lose() -> None:
        feed.newest, feed.gone = 3, True

    watcher = Watcher(feed, lose, lambda: setattr(feed, "gone", False)).run()
    assert watcher.shown == [None, None, []]


def test_trouble_is_reported_once_and_no_entry_is_lost() -> None:
    feed = Feed(7)

    def fail() -> None:
        feed.newest, watcher.fails = 8, True

    watcher = Watcher(feed, fail, lambda: None, lambda: setattr(watcher, "fails", False), lambda: None)
    watcher.run()
    assert watcher.reported == ["not now", ""]
    assert watcher.shown == [None, [8], []]


def drawn(*lines: str, rows: int = 4) -> list[str]:
    """The lines of a picture, without the codes around it."""
    begin, end = "\x1b[?2026h\x1b[H", "\x1b[?2026l"
    text = picture(lines, rows)
    assert text.startswith(begin)
    assert text.endswith(end)
    return text.removeprefix(begin).removesuffix(end).split("\r\n")


def test_a_picture_replaces_each_line_and_clears_the_rest() -> None:
    assert drawn("one", "two") == ["\x1b[Kone", "\x1b[Ktwo", "\x1b[J"]
    assert drawn() == ["\x1b[J"]


def test_a_picture_never_scrolls() -> None:
    assert drawn("1", "2", "3", "4") == ["\x1b[K1", "\x1b[K2", "\x1b[K3", "\x1b[K4"]
    assert drawn("1", "2", "3", "4", "5") == ["\x1b[K1", "\x1b[K2", "\x1b[K3", "\x1b[Kand 2 more lines"]


def test_columns_of_a_growing_table_become_wider_and_never_narrower() -> None:
    table = GrowingTable(["id", "what"])
    assert table.lines([["a", "x"]], None) == ["ID  WHAT", "a   x"]
    assert table.lines([["longer", "x"]], None) == ["longer  x"]
    assert table.lines([["a", "0123456789"]], 17) == ["a       01234567…"]

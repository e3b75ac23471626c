"""How much anybody may ask for."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the service.

    Attributes:
        connections: open at a time; more are turned away.
        watchers: watches at a time.
        asked: requests that wait for a thread or are answered, at a time.
        threads: that answer; one more for questions about everything, and one for watches.
        answer_bytes: of answers that are on their way; while there are more, nothing is answered.
        head_bytes: request line and headers.
        head_seconds: from the first byte of a request to the end of its headers.
        idle_seconds: without a request.
        stall_seconds: that somebody may take to read a share of an answer.
        line_seconds: that what one incarnation has changed may be filtered for who watches.
        page_seconds: after which a page ends where it is, and goes on at its cursor.
        page_work: operations of the filter of a page, over all assets; after them, the same.
        filter_processes: that heavy filters of pages are asked in; one more for watches.
        filter_seconds: that a heavy filter may take for one asset, which then does not match.
        page_assets: the most in a page.
        heartbeat_seconds: between signs of life of a watch.
    """

    connections: int = 4096
    watchers: int = 4000
    asked: int = 64
    threads: int = 4
    answer_bytes: int = 2**28
    head_bytes: int = 16_384
    head_seconds: float = 10.0
    idle_seconds: float = 30.0
    stall_seconds: float = 30.0
    line_seconds: float = 2.0
    page_seconds: float = 2.0
    page_work: int = 20_000_000
    filter_processes: int = 2
    filter_seconds: float = 1.0
    page_assets: int = 10_000
    heartbeat_seconds: float = 10.0


FILTER_LENGTH = 4096
"""Characters of a filter."""

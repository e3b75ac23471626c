"""How much a client may ask for."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the service.

    Attributes:
        connections: open at a time; more are rejected.
        watchers: watches at a time.
        asked: requests waiting for a thread or being answered, at a time.
        threads: for answers; one more for questions about everything, and one for watches.
        answer_bytes: of responses being sent; above this, new requests are rejected.
        head_bytes: request line and headers.
        head_seconds: from the first byte of a request to the end of its headers.
        idle_seconds: until a connection without a request is closed.
        stall_seconds: that a client may take to read one chunk of a response.
        line_seconds: for filtering one incarnation's changes for a watch.
        page_seconds: after which a page ends early; the next continues at its cursor.
        page_work: operations of a page's filter, over all assets, after which the page also ends.
        filter_processes: for heavy filters of pages; one more for watches.
        filter_seconds: for a heavy filter on one asset, which then does not match.
        page_assets: maximum number in a page.
        question_bytes: of a question to target selection.
        questions: to target selection, at a time.
        body_seconds: in which such a question must arrive.
        select_seconds: for its answer.
        dry_runs: waiting for their turn or running, at a time; one runs.
        dry_run_wait_seconds: for others to end.
        dry_run_seconds: for a dry run.
        heartbeat_seconds: between heartbeats of a watch.
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
    question_bytes: int = 2**23
    questions: int = 8
    body_seconds: float = 10.0
    select_seconds: float = 5.0
    dry_runs: int = 8
    dry_run_wait_seconds: float = 15.0
    dry_run_seconds: float = 30.0
    heartbeat_seconds: float = 10.0


FILTER_LENGTH = 4096
"""Characters of a filter."""

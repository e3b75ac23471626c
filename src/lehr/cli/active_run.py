"""The `lehr run` of a state: whether it is active, and a request that it checks the source."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lehr.base.clock import SystemClock, iso
from lehr.cli import formatting
from lehr.cli.named_server import named_server, server_token
from lehr.cli.run_requests import send_request
from lehr.cli.stored import running_report, state_folder
from lehr.model.attempt import Attempt
from lehr.query.run_state import RunState

if TYPE_CHECKING:
    from lehr.http.connection import Server


def active_run() -> ActiveRun:
    """The `lehr run` that the command is about, on this machine or next to the server that it names.

    Raises:
        LehrError: there is no state folder, or the URL is not that of a server.
    """
    url = named_server()
    if url is None:
        return RunHere(state_folder())
    from lehr.http.connection import Server

    return RunElsewhere(Server(url, server_token(url)))


def run_state() -> RunState:
    """Current state of the `lehr run` that the command is about."""
    with contextlib.closing(active_run()) as asked:
        return asked.state()


def state_of_folder(folder: Path) -> RunState:
    """Current state of the `lehr run` of a state folder on this machine."""
    from lehr.control.heartbeat import last_seen
    from lehr.control.lock import holder

    report, now = running_report(folder), SystemClock().now()
    if report is None:
        return RunState(active=False, now=now, process=holder(folder), seen_at=last_seen(folder))
    return msgspec.convert(report["state"], RunState)


def seen(run: RunState, now: float) -> str:
    """When a `lehr run` was last seen: `2m ago (2026-01-02T03:04:05Z)`; "" if never."""
    return "" if run.seen_at is None else f"{formatting.ago(run.seen_at, now)} ({iso(run.seen_at)})"


class RunHere:
    """The `lehr run` of a state folder on this machine, through its socket.

    Attributes:
        place: for messages.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place = str(folder)

    def state(self) -> RunState:
        """Its current state."""
        return state_of_folder(self._folder)

    def look(self, timeout: float) -> Attempt | None:
        """Result of a check of the source that starts after this call; None while it is not known.

        Raises:
            LehrError: it could not check.
        """
        from lehr.control.messages import Refresh

        return msgspec.convert(send_request(Refresh(), timeout=timeout).content, Attempt)

    def close(self) -> None:
        """Close its connections."""


class RunElsewhere:
    """The same, next to a server, which is read-only: waits for its next regular check."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._asked_at: float | None = None
        self.place = server.url

    def state(self) -> RunState:
        return self._server.run_state()

    def look(self, timeout: float) -> Attempt | None:
        run = self.state()
        if self._asked_at is None:
            self._asked_at = run.now
        if run.partition is None or (run.source_looked_at or 0.0) < self._asked_at:
            return None
        return self._server.attempt(run.partition)

    def close(self) -> None:
        self._server.close()


ActiveRun = RunHere | RunElsewhere

"""The `lehr run` of a state: whether it is active, and a look at the source by it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lehr.base.errors import LehrError
from lehr.cli import words
from lehr.cli.named_server import named_server
from lehr.cli.stored import running_report, state_folder

if TYPE_CHECKING:
    from lehr.http.connection import Server
    from lehr.model.attempt import Attempt
    from lehr.query.run_state import RunState


class ActiveRun(Protocol):
    """A command's questions to the `lehr run` whose state it reads."""

    place: str
    """State folder or URL, for people."""

    def state(self) -> RunState:
        """How it is now."""
        ...

    def look(self, timeout: float) -> Attempt | None:
        """Result of a look at the source that begins from now on; None while that is not known.

        Raises:
            LehrError: it could not look.
        """
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


def active_run(state: Path | None) -> ActiveRun:
    """The `lehr run` that the command is about, on this machine or next to the server that it names.

    Raises:
        LehrError: there is no state folder, or the URL is not that of a server.
    """
    url = named_server()
    if url is None:
        return _Here(state_folder(state))
    from lehr.http.connection import Server

    return _There(Server(url))


def run_state(state: Path | None) -> RunState:
    """How the `lehr run` that the command is about is now."""
    asked = active_run(state)
    try:
        return asked.state()
    finally:
        asked.close()


def state_of_folder(folder: Path) -> RunState:
    """How the `lehr run` of a state folder on this machine is now."""
    import msgspec

    from lehr.base.clock import SystemClock
    from lehr.control.heartbeat import last_seen
    from lehr.control.lock import holder
    from lehr.query.run_state import RunState

    report, now = running_report(folder), SystemClock().now()
    if report is None:
        return RunState(active=False, now=now, process=holder(folder), seen_at=last_seen(folder))
    return msgspec.convert(report["state"], RunState)


def seen(run: RunState, now: float) -> str:
    """When a `lehr run` was last seen: `2m ago (2026-01-02T03:04:05Z)`; "" if never."""
    from lehr.base.clock import iso

    return "" if run.seen_at is None else f"{words.ago(run.seen_at, now)} ({iso(run.seen_at)})"


class _Here:
    """On this machine, over its socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place = str(folder)

    def state(self) -> RunState:
        return state_of_folder(self._folder)

    def look(self, timeout: float) -> Attempt | None:
        import msgspec

        from lehr.control.client import send
        from lehr.control.messages import Refresh
        from lehr.model.attempt import Attempt

        answer = send(self._folder, Refresh(), timeout=timeout)
        if not answer.ok:
            raise LehrError(answer.message, code=answer.code, why=answer.why, fix=answer.fix)
        return msgspec.convert(answer.content, Attempt)

    def close(self) -> None:
        pass


class _There:
    """Next to a server, which only answers: wait for its next regular look."""

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

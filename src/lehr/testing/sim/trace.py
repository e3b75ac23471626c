"""What happened in a run, in order: to judge, narrate and compare it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from lehr.base.digest import Digest, digest_all


class TraceEvent(msgspec.Struct, frozen=True):
    """One thing that happened.

    Attributes:
        at: seconds since the start of the run.
        kind: `edit`, `person`, `fault`, `process`, `publish`, `push`, `decision`, `drift`, `write` ...
    """

    at: float
    kind: str
    text: str


class Trace:
    """Everything that happened in a run."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def note(self, kind: str, text: str) -> None:
        """Add what happens now."""
        self.events.append(TraceEvent(asyncio.get_running_loop().time(), kind, text))

    def digest(self) -> Digest:
        """Equal for runs in which exactly the same happened at the same times."""
        return digest_all(msgspec.json.encode(event).decode() for event in self.events)

    def story(self, *, writes: bool = False) -> Iterator[str]:
        """The run as lines to read; with the writes only if asked for."""
        for event in self.events:
            if writes or event.kind != "write":
                yield f"{clock(event.at)}  {event.kind:<8}  {event.text}"


def clock(seconds: float) -> str:
    """Seconds since the start as `h:mm:ss.s`."""
    minutes, rest = divmod(seconds, 60.0)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{rest:04.1f}"

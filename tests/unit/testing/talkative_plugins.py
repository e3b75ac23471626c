"""Plugins whose production prints what it knows: one that shows it safely, and those that do not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import structlog

from lehr.base.errors import TransientError
from lehr.model.diff import NO_DIFF, Change, Diff, Target
from lehr.model.operation import DONE, Outcome, Result
from lehr.sdk.plugin import Push, Reader
from lehr.sdk.secrets import Hidden, SecretValue
from tests.unit.testing.broken_plugins import SECRET, Good, World

LOG = structlog.get_logger()
MOST = 500
HIDDEN = Hidden([SecretValue(SECRET.encode())])


class Talkative(World):
    """Production that prints.

    Attributes:
        printed: in parts, as they came; empty while it is healthy.
    """

    printed: Sequence[bytes] = ()

    @contextlib.contextmanager
    def talk(self, parts: Sequence[bytes]) -> Iterator[None]:
        self.printed = parts
        yield
        self.printed = ()


class Listens(Good):
    """Fails with what an unhealthy production prints."""

    def shown(self, printed: Sequence[bytes]) -> str:
        return self.plain(HIDDEN.shown(b"".join(printed).decode(errors="replace"))[:MOST])

    def plain(self, text: str) -> str:
        return "".join(character if character.isprintable() else " " for character in text)

    @property
    def said(self) -> str:
        return self.shown(self.world.printed) if isinstance(self.world, Talkative) else ""

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        return Diff((Change("health", "healthy", self.said),)) if self.said else found

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        return Outcome(Result.FAILED, self.said) if self.said else outcome


class ShowsEverything(Listens):
    def shown(self, printed: Sequence[bytes]) -> str:
        return self.plain(b"".join(printed).decode(errors="replace"))[:MOST]


class CutsBeforeItHides(Listens):
    def shown(self, printed: Sequence[bytes]) -> str:
        return self.plain(HIDDEN.shown(b"".join(printed)[:MOST].decode(errors="replace")))


class CutsTheEndBeforeItHides(Listens):
    def shown(self, printed: Sequence[bytes]) -> str:
        return self.plain(HIDDEN.shown(b"".join(printed)[-MOST:].decode(errors="replace")))


class HidesPartByPart(Listens):
    def shown(self, printed: Sequence[bytes]) -> str:
        return self.plain("".join(HIDDEN.shown(part.decode(errors="replace")) for part in printed))[:MOST]


class ShowsEscapes(Listens):
    def plain(self, text: str) -> str:
        return " ".join(text.splitlines())


class ShowsMegabytes(Listens):
    def shown(self, printed: Sequence[bytes]) -> str:
        return self.plain(HIDDEN.shown(b"".join(printed).decode(errors="replace")))


class LogsWhatIsPrinted(Listens):
    async def diff(self, target: Target, read: Reader) -> Diff:
        if isinstance(self.world, Talkative):
            LOG.warning("unhealthy", printed=b"".join(self.world.printed[:3]).decode(errors="replace"))
        return await super().diff(target, read)


class SaysItInProgress(Listens):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if isinstance(self.world, Talkative) and self.world.printed:
            push.progress(super().shown(self.world.printed) + "\x1b[0m")
        return await super().push(target, read, push)


class SaysItInNotes(Listens):
    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        return Diff(found.changes, notes=(self.said + "\x1b[0m",)) if self.said else found


class RaisesWhatIsPrinted(Listens):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if isinstance(self.world, Talkative) and self.world.printed:
            raise TransientError(
                "unhealthy", why=b"".join(self.world.printed)[:MOST].decode(errors="replace")
            )
        return await super().push(target, read, push)


class OverlooksTrouble(Listens):
    async def diff(self, target: Target, read: Reader) -> Diff:
        return NO_DIFF if self.said else await super().diff(target, read)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        return DONE if self.said else outcome

"""Operations: one push each, with an id and an outcome."""

from __future__ import annotations

import enum

import msgspec

from lehr.base.digest import Digest
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Goal


class Result(enum.StrEnum):
    """How a push ended. UNKNOWN keeps the operation open until a turn has found out."""

    DONE = "done"
    FAILED = "failed"
    STALLED = "stalled"
    UNKNOWN = "unknown"


class Outcome(msgspec.Struct, frozen=True):
    """Result of a push.

    Attributes:
        message: one line, without secrets.
        retry_at: wall-clock seconds before which a retry is useless; None when not known.
        handle: identifies what was made, for later calls, however the push ended (see `lehr.sdk.plugin`);
            unset to keep the last.
    """

    result: Result
    message: str = ""
    retry_at: Moment | None = None
    handle: str | msgspec.UnsetType = msgspec.UNSET


DONE = Outcome(Result.DONE)


class Progress(enum.StrEnum):
    """A plugin's answer about an operation whose outcome is unknown."""

    RUNNING = "running"
    ENDED = "ended"


class Purpose(enum.StrEnum):
    """Why an asset is pushed.

    FORWARD: to a goal or content that was not in place before. REPAIR: production has drifted from
    what was in place. ROLLBACK: to content older than what was in place or was tried, because a person pinned
    it or a rollout took newer content back. RESTART: to what is in place, because a person asked to restart
    it.
    """

    FORWARD = "forward"
    REPAIR = "repair"
    ROLLBACK = "rollback"
    RESTART = "restart"


class PushStep(msgspec.Struct, frozen=True, gc=False):
    """A report of a plugin during a push.

    Attributes:
        at: wall-clock seconds.
        message: one line, without secrets.
    """

    at: Moment
    message: str


class Operation(msgspec.Struct, frozen=True):
    """One push of one asset.

    Attributes:
        id: sorts by time.
        content, governing: sequences of the two incarnations its turn had read.
        content_digest: digest of the asset and of everything that its plugin read.
        epoch: of the lease under which it was admitted.
        result: None while it is under way.
        started_at, ended_at: wall-clock seconds.
        release: id of the release that counted for the asset then; empty if none did.
        steps: what its plugin reported, oldest first; none while it is under way.
    """

    id: str
    partition: Partition
    asset: AssetId
    type: str
    goal: Goal
    content: int
    governing: int
    content_digest: Digest
    diff_digest: Digest
    epoch: int
    started_at: Moment
    ended_at: Moment | None = None
    result: Result | None = None
    message: str = ""
    purpose: Purpose = Purpose.FORWARD
    release: str = ""
    steps: tuple[PushStep, ...] = ()

    @property
    def key(self) -> AssetKey:
        return AssetKey(self.partition, self.asset)

    @property
    def open(self) -> bool:
        """True while a push may still be changing production."""
        return self.result is None or self.result is Result.UNKNOWN


class LedgerEntry(msgspec.Struct, frozen=True):
    """The latest record of what was applied to, or adopted from, production for one asset.

    Attributes:
        goal: PRESENT, or how far a turndown has come.
        content: sequence of the incarnation it came from.
        operation: id of the push; None when production was found to match already (adopted).
    """

    partition: Partition
    asset: AssetId
    content_digest: Digest
    content: int
    goal: Goal
    operation: str | None
    at: Moment


def purpose_of(
    ledger: LedgerEntry | None, goal: Goal, content: int, content_digest: Digest, *, taken_back: bool = False
) -> Purpose:
    """Purpose of a push to `content`, with this digest, when `ledger` is what was in place.

    Args:
        taken_back: a rollout took newer content back. Pushes of that may have failed half-way, of which the
            ledger has nothing.
    """
    if ledger is None:
        return Purpose.FORWARD
    if ledger.goal is not goal:
        return Purpose.ROLLBACK if taken_back and content < ledger.content else Purpose.FORWARD
    if ledger.content_digest == content_digest:
        return Purpose.ROLLBACK if taken_back else Purpose.REPAIR
    return Purpose.ROLLBACK if content < ledger.content else Purpose.FORWARD

"""Values: where a fault can strike, which one, and how a run without faults went."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import PushFault


class Where(enum.StrEnum):
    """Kinds of points; the points of each kind are counted from 1 in the order they are passed."""

    COMMIT = "commit"
    LOOK = "look"
    PUSH = "push"
    WRITE = "write"
    EVENT = "event"
    READ = "read"


class Fault(enum.StrEnum):
    """The fault at a point.

    Attributes:
        CRASH_BEFORE, CRASH_AFTER: the control plane is killed; at a commit or a production write.
        STALE: from a commit until another, reads find the store as it was.
        SECOND: another control plane starts at a commit, next to the first.
        HELD: the control plane is stopped at a commit, push or write, another one starts, then the
            first continues.
        EARLY: at a commit, the scenario's next step does not wait until this one has settled.
        OUTDATED: a look at production finds what it held before its last change.
        LATE: a write cannot be seen for some seconds.
        LOST, DOUBLED: an event never comes, or comes once more, late.
        FAIL: of a look, or of a push.
        APPLIED, PARTIAL, UNHEARD, HANG, DETACHED: what becomes of a push, as in `PushFault`.
        UNREADABLE, TRUNCATED, BLANK, REPEATED, HALVED, EMPTIED: what one read of the source finds.
    """

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    STALE = "stale reads"
    SECOND = "second control plane"
    HELD = "held and replaced"
    EARLY = "next step"
    OUTDATED = "finds what was before"
    LATE = "shows late"
    LOST = "lost"
    DOUBLED = "doubled"
    FAIL = "fails"
    APPLIED = "applied but failed"
    PARTIAL = "applied in part"
    UNHEARD = "answer lost"
    HANG = "hangs"
    DETACHED = "continues detached"
    UNREADABLE = "unreadable source"
    TRUNCATED = "truncated"
    BLANK = "blank"
    REPEATED = "repeated"
    HALVED = "half of the source"
    EMPTIED = "empty source"


PUSH_FAULTS = {
    Fault.FAIL: PushFault.FAIL,
    Fault.APPLIED: PushFault.APPLIED,
    Fault.PARTIAL: PushFault.PARTIAL,
    Fault.UNHEARD: PushFault.LOST,
    Fault.HANG: PushFault.HANG,
    Fault.DETACHED: PushFault.DETACHED,
}
"""How a push is continued or ends."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the reference run.

    Attributes:
        step: of the scenario, counted from 0.
        at: seconds since the start of the run.
        before, after: digests of the state (`ScenarioWitness.digest`) around it.
        busy: operations that production was carrying out then.
        what: in words.
        ids: assets that it is about.
        moves: for a commit, True if it changes what others read of intent, controls or ledger.
        admits: for a commit, the assets whose pushes it admits, and True for each that takes away.
        divisible: for a production write, True if half of it leaves neither the old nor the new.
        revision: for a read, of the source.
    """

    where: Where
    number: int
    step: int
    at: float
    before: Digest
    after: Digest
    busy: int = 0
    what: str = ""
    ids: tuple[str, ...] = ()
    moves: bool = False
    admits: tuple[tuple[str, bool], ...] = ()
    divisible: bool = False
    revision: str = ""


class FaultPlan(msgspec.Struct, frozen=True):
    """One fault at one point: the input of a run.

    Attributes:
        since: for STALE, the first commit that reads do not find any more, nor any later one.
        path: for damage to one file of the source, that file.
    """

    fault: Fault
    where: Where
    number: int
    since: int = 0
    path: str = ""

    @property
    def name(self) -> str:
        """By which people name it: `crash after commit 17`."""
        point = f"{self.where} {self.number}"
        match self.fault:
            case Fault.CRASH_BEFORE | Fault.CRASH_AFTER:
                return f"{self.fault} {point}"
            case Fault.STALE:
                return f"{self.fault} from commit {self.since} to {point}"
            case Fault.SECOND | Fault.HELD | Fault.EARLY | Fault.UNREADABLE | Fault.HALVED | Fault.EMPTIED:
                return f"{self.fault} at {point}"
            case Fault.TRUNCATED | Fault.BLANK | Fault.REPEATED:
                return f"{self.path} {self.fault} at {point}"
            case _:
                return f"{point} {self.fault}"


class Rest(msgspec.Struct, frozen=True):
    """State of everything when a step had settled.

    Attributes:
        production: its values, by asset.
        ledger: (content digest, goal) by asset.
        conditions: (status, reason) by asset.
        incarnation: digest of the newest one.
        open: assets with an operation that has not ended.
    """

    production: dict[str, Any]
    ledger: dict[str, tuple[str, str]]
    conditions: dict[str, tuple[str, str]]
    incarnation: str
    open: tuple[str, ...] = ()


class Reference(msgspec.Struct, frozen=True):
    """A run without faults.

    Attributes:
        points: in order.
        rests: one for each step.
        way: the values that production of each asset went through.
        declared: digests by id of what each revision of the source declares.
        seconds: of virtual time.
        fencing: of the provider, in every run.
    """

    points: tuple[Point, ...]
    rests: tuple[Rest, ...]
    way: dict[str, tuple[Any, ...]]
    declared: dict[str, dict[str, str]]
    seconds: float
    fencing: Fencing = Fencing.NATIVE

    def of(self, where: Where) -> list[Point]:
        """The points of one kind."""
        return [point for point in self.points if point.where is where]

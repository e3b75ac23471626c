"""The shell's state of each asset between turns. Compact: there may be a million."""

from __future__ import annotations

import enum
from collections.abc import Callable

from lehr.base.digest import Digest
from lehr.base.text import one_line, writable
from lehr.enforce.ages import Ages
from lehr.enforce.governance import Governance
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lane import Lane
from lehr.enforce.output_reads import OutputPath
from lehr.enforce.state import Ended, State
from lehr.enforce.step import RETRY
from lehr.model.asset import AssetId, AssetKey
from lehr.model.damage import DamagedError
from lehr.model.operation import Operation, PushStep
from lehr.sdk.store import Head

HINT = "its plugin reported a change"
"""The cause of a turn that only has to look at production."""

_MOST_STEPS = 20
_MOST_LENGTH = 200


class RunningPush:
    """`lehr.sdk.plugin.Push`, as the plugin holds it and the shell informs it."""

    def __init__(self, operation: Operation, now: Callable[[], float] = lambda: 0.0) -> None:
        """`now` reads the wall clock."""
        self._operation = operation
        self._now = now
        self._steps: list[PushStep] = []
        self.superseded = False

    @property
    def operation(self) -> Operation:
        return self._operation

    @property
    def last_progress(self) -> str:
        """Its last report; empty before the first."""
        return self._steps[-1].message if self._steps else ""

    @property
    def steps(self) -> tuple[PushStep, ...]:
        """Its reports, oldest first: the first half of as many as are kept, and the newest ones."""
        return tuple(self._steps)

    def progress(self, message: str) -> None:
        line = one_line(writable(message))[:_MOST_LENGTH]
        if line == self.last_progress:
            return
        if len(self._steps) == _MOST_STEPS:
            del self._steps[_MOST_STEPS // 2]
        self._steps.append(PushStep(self._now(), line))


class Activity(enum.IntEnum):
    """An asset's activity: one at a time."""

    IDLE = 0
    """Nothing, until it is woken or due."""
    QUEUED = 1
    """A turn is queued."""
    TURN = 2
    """A turn is running."""
    ADMITTING = 3
    """Its turn asks for admission of a push, or has it and is about to start the push."""
    PUSHING = 4
    """A push is running."""
    PUSHED = 5
    """A push has ended, and a turn is queued that handles its outcome."""


# Each turn needs several of these, and Python 3.11 takes 60 ns to find one in its class.
IDLE, QUEUED, TURN, ADMITTING, PUSHING, PUSHED = Activity

TRANSITIONS: dict[Activity, frozenset[Activity]] = {
    IDLE: frozenset({QUEUED}),
    QUEUED: frozenset({TURN}),
    TURN: frozenset({ADMITTING, IDLE}),
    ADMITTING: frozenset({TURN, PUSHING}),
    PUSHING: frozenset({PUSHED}),
    PUSHED: frozenset({TURN}),
}
"""Activities that may follow each activity."""


class Slot:
    """An asset's place in the Enforcer.

    Attributes:
        digest: in the newest incarnation; None when the asset is no longer there.
        departed: whether intent no longer has it: not at all, or as an asset of another type. Kept,
            because each turn asks several times.
        successor: the asset of another type that has this id in the newest incarnation; it waits
            until this one has left. Usually None.
        state: what `step` remembers.
        activity: its current one.
        woken: cause of a wake-up that came while a turn or push was under way.
        routine: its turn is due, and nothing is known to have happened.
        offered: woken because a place for its push had become free.
        overtaken: newer content came while its push was being admitted.
        due: monotonic seconds of its next automatic turn; None for the resync.
        governance: governance of the turn under way.
        held_at: content at which a pin or release held it in its last turn; 0 if none did.
        inbox: end of a push, to be taken up by the next turn.
        met: digest of the newest version whose references a turn has followed; None before the first.
        settled: its last turn has left nothing to do.
        compared: what the plugin read in the diff of the turn under way.
        reads: other assets that the plugin read in the last diff.
        output_reads: outputs whose change wakes this one.
        waits: assets whose settling wakes this one.
        ages: age of its turndown; None without one.
        damage: of the record of its newest push: while this process runs, nothing is assumed about
            production, and nothing is pushed. Usually None.
    """

    __slots__ = (
        "activity",
        "ages",
        "cause",
        "compared",
        "damage",
        "departed",
        "digest",
        "due",
        "governance",
        "held_at",
        "inbox",
        "key",
        "lane",
        "met",
        "offered",
        "output_reads",
        "overtaken",
        "push",
        "reads",
        "routine",
        "settled",
        "state",
        "successor",
        "type",
        "waits",
        "woken",
    )

    def __init__(self, key: AssetKey, type: str, digest: Digest | None, lane: Lane[Slot]) -> None:
        self.key = key
        self.type = type
        self.digest = digest
        self.departed = digest is None
        self.successor: Head | None = None
        self.lane = lane
        self.state = State()
        self.activity = IDLE
        self.cause = ""
        self.woken: str | None = None
        self.inbox: Ended | None = None
        self.push: RunningPush | None = None
        self.governance: Governance | None = None
        self.held_at = 0
        self.met: Digest | None = None
        self.routine = False
        self.offered = False
        self.overtaken = False
        self.due: float | None = None
        self.settled = False
        self.compared: RecordingReader | None = None
        self.reads: tuple[AssetId, ...] = ()
        self.output_reads: tuple[OutputPath, ...] = ()
        self.waits: tuple[AssetId, ...] = ()
        self.ages: Ages | None = None
        self.damage: DamagedError | None = None

    def continue_from(self, state: State, successor: Head | None, damage: DamagedError | None) -> None:
        """Continue as the previous process left it."""
        self.state, self.successor, self.damage = state, successor, damage
        self.departed = self.departed or successor is not None

    @property
    def in_turn(self) -> bool:
        """Whether a turn of it is running."""
        return self.activity in (TURN, ADMITTING)

    @property
    def may_share_a_call(self) -> bool:
        """Whether it may be compared together with others.

        Not while the outcome of its push is unknown, because others wait for that; nor after a comparison
        that failed: if it hangs, it would delay the others again at each regular turn (invariant I9).
        """
        return self.routine and self.state.operation is None and not self.state.trouble.failed_diffs

    @property
    def may_be_pushing(self) -> bool:
        """Whether a push of it is under way, or ended in an unknown way."""
        return self.push is not None or self.state.operation is not None or self.damage is not None

    def wake_later(self, cause: str) -> None:
        """Note that another turn is due after the one that is under way. A request to retry is never lost."""
        if self.woken is None or (cause != HINT and self.woken != RETRY):
            self.woken = cause

    def looks_now(self) -> None:
        """A look that begins now answers the hints that have come until now."""
        if self.woken == HINT:
            self.woken = None

    def become(self, activity: Activity) -> None:
        """Switch to another activity.

        Raises:
            RuntimeError: `TRANSITIONS` does not have it: a defect of the program.
        """
        if activity not in TRANSITIONS[self.activity]:
            raise RuntimeError(f"{self.key}: {self.activity.name} cannot be followed by {activity.name}")
        self.activity = activity

    def update_head(self, head: Head | None) -> None:
        """Note how the newest incarnation has it; None if it does not."""
        self.digest = None if head is None else head.digest
        known = head is None or not self.type or head.type == self.type
        self.successor = None if known else head
        self.departed = head is None or not known

    def superseded(self) -> None:
        """Newer content exists: notify a push that is under way or about to begin."""
        self.overtaken = self.activity is ADMITTING
        if self.push is not None:
            self.push.superseded = True

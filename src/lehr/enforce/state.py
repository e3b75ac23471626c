"""States, events and effects of the per-asset loop. Values only."""

from __future__ import annotations

import enum

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.contest import NO_CONTEST, Contest
from lehr.enforce.turndown import TurndownStage
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Condition, Reservation, Verdict
from lehr.model.diff import Diff, Goal, Target
from lehr.model.handle import Handle
from lehr.model.operation import LedgerEntry, Operation, Outcome, Progress, Purpose
from lehr.model.outputs import Outputs
from lehr.model.pinning import Pinning
from lehr.model.writes import Admit, Refused, Write

# --- state -------------------------------------------------------------------


class Phase(enum.Enum):
    """The phase of an asset's loop between two events."""

    IDLE = "idle"
    ASKING_STATUS = "asking-status"
    RESOLVING = "resolving"
    DIFFING = "diffing"
    CHECKING = "checking"
    ADMITTING = "admitting"
    PUSHING = "pushing"
    VERIFYING = "verifying"


class View(msgspec.Struct, frozen=True):
    """Intent and controls as a turn found them. A turn never looks at newer ones.

    Invariant: I1. `pinning.content` and `governing` are the two incarnations of the turn; its plugin reads
    other assets at the content that their own pins and releases allow.

    Attributes:
        now: wall-clock seconds; monotonic: of the same moment.
        cause: what woke the turn.
        asset: at the content incarnation; None when the content incarnation has none.
        newest: the asset as intent last had it.
        newest_digest: of the asset in the governing incarnation; None when it is not there.
        governance, controls, releases: the basis of the verdicts.
        stage: goal of the turn.
        observe: reason why this asset is only observed; None when it is not.
        orphaned: True when intent let the asset go without a turndown.
        served: False when no plugin serves its type.
        jitter: from 0 to 1, drawn for this turn.
        removals: the partition's deletion budgets.
        resync: seconds within which the asset's next regular look comes.
        fenced: True if the provider refuses what a writer of an earlier lease still writes.
    """

    key: AssetKey
    now: float
    monotonic: float
    cause: str
    pinning: Pinning
    governing: int
    asset: Asset | None
    newest_digest: Digest | None
    governance: Digest
    controls: int
    releases: int
    stage: TurndownStage
    epoch: int
    observe: str | None = None
    orphaned: bool = False
    served: bool = True
    jitter: float = 1.0
    removals: tuple[Reservation, ...] = ()
    newest: Asset | None = None
    resync: float | None = None
    fenced: bool = False

    @property
    def goal(self) -> Goal:
        return self.stage.goal

    @property
    def target(self) -> Target:
        assert self.asset is not None
        key, content, goal = self.key, self.pinning.content, self.stage.goal
        return Target(key.partition, key.id, self.asset.type, content, goal, restart=self.restart(goal))

    def known(self, target: Target) -> Asset | None:
        """The asset of `target`, if it is the one that this turn has; a push under way may be of another."""
        return self.asset if target.incarnation == self.pinning.content else None

    def restart(self, goal: Goal) -> str:
        """The restart that production must have had to be at `goal`."""
        return self.pinning.restart if goal is Goal.PRESENT else ""


class Turn(msgspec.Struct, frozen=True):
    """The findings of the turn under way.

    Attributes:
        awaits: assets whose outputs the plugin needs and that are not known yet.
        diff: found last; None until production is compared, also again after a push.
        pushed: digest of the diff whose push has succeeded.
    """

    view: View
    diff: Diff | None = None
    content_digest: Digest | None = None
    verdicts: tuple[Verdict, ...] = ()
    elsewhere: tuple[tuple[AssetId, int], ...] = ()
    awaits: tuple[AssetId, ...] = ()
    pushed: Digest | None = None


class Trouble(msgspec.Struct, frozen=True, array_like=True):
    """Memory of pushes that did not succeed. New content clears it.

    Attributes:
        content_digest: content and goal that it is about.
        failures: pushes in a row that failed.
        failed_diffs: diffs in a row that failed.
        ineffective: pushes in a row that succeeded and left some diff.
        same_diff_count: of these, the last in a row that left exactly this diff.
        diff_digest: the diff that was left, or that stalled.
        not_before: monotonic seconds before which nothing is pushed.
        last_failure: (reason, message, unblock) of the last failure, repeated while backing off.
        stalled: True when only an operator or new intent helps.
    """

    content_digest: Digest | None = None
    failures: int = 0
    failed_diffs: int = 0
    ineffective: int = 0
    same_diff_count: int = 0
    diff_digest: Digest | None = None
    not_before: float = 0.0
    last_failure: tuple[str, str, str] = ("", "", "")
    stalled: bool = False


NO_TROUBLE = Trouble()


class State(msgspec.Struct, frozen=True):
    """Everything that the loop of one asset remembers.

    Attributes:
        operation: the push under way, or whose outcome is unknown.
        handle, outputs: the last ones that its plugin returned.
        condition_key: key of the last condition recorded; the last `turns` turns ended with it.
        next_at: due time recorded with it.
        contest: verified pushes that were undone again.
        left: True when the last turn found it out of production, or out of Lehr's care.
        refused: admissions in a row that found the turn out of date.
    """

    phase: Phase = Phase.IDLE
    turn: Turn | None = None
    operation: Operation | None = None
    ledger: LedgerEntry | None = None
    handle: Handle | None = None
    outputs: Outputs | None = None
    trouble: Trouble = NO_TROUBLE
    contest: Contest = NO_CONTEST
    condition_key: Digest | None = None
    turns: int = 0
    next_at: float | None = None
    left: bool = False
    refused: int = 0

    def identified(self, target: Target) -> Target:
        """`target` with the handle of the asset, if it has one of this type."""
        handle = self.handle
        if handle is None or handle.type != target.type:
            return target
        return replace(target, handle=handle.text, lost=handle.lost)


# --- events ------------------------------------------------------------------


class Begin(msgspec.Struct, frozen=True):
    """A turn begins."""

    view: View


class StatusReported(msgspec.Struct, frozen=True):
    """The plugin was asked about an operation whose outcome is unknown; None: no answer."""

    progress: Progress | None
    message: str = ""


class Diffed(msgspec.Struct, frozen=True):
    """The plugin compared.

    Attributes:
        content_digest: covers everything that it read.
        elsewhere: the assets that it read at another incarnation than the content's, and at which.
    """

    diff: Diff
    content_digest: Digest
    elsewhere: tuple[tuple[AssetId, int], ...] = ()


class DiffFailed(msgspec.Struct, frozen=True):
    """The plugin could not compare.

    Attributes:
        stalled: True when a retry is useless.
        until: wall-clock seconds before which a retry is useless.
        refers_to: assets that this one refers to. One of them may be the cause, so their settling wakes it.
        awaits: assets whose outputs it needs and that are not known yet; with them, nothing has failed.
        cycle: ids, if the assets that it awaits wait for it in turn.
    """

    message: str
    fix: str = ""
    stalled: bool = False
    until: float | None = None
    refers_to: tuple[AssetId, ...] = ()
    awaits: tuple[AssetId, ...] = ()
    cycle: tuple[AssetId, ...] = ()


class Checked(msgspec.Struct, frozen=True):
    """Every check has answered.

    Attributes:
        operation_id: for the push, if it is admitted.
        looked_at: assets that were looked at, with their digests in the newest incarnation.
        others: assets whose pins the verdicts rest on.
        cycle: ids, if the assets that it waits for wait for it in turn.
    """

    verdicts: tuple[Verdict, ...]
    operation_id: str
    looked_at: tuple[tuple[AssetId, Digest | None], ...] = ()
    cycle: tuple[AssetId, ...] = ()
    others: tuple[AssetId, ...] = ()


class Admitted(msgspec.Struct, frozen=True):
    """The push may start, and is written down."""

    operation: Operation


class NotAdmitted(msgspec.Struct, frozen=True):
    """Admission was refused, or the store did not answer.

    Attributes:
        wait_for: assets whose settling may change the answer.
    """

    refused: Refused
    wait_for: tuple[AssetId, ...] = ()


class Deferred(msgspec.Struct, frozen=True):
    """The plugin has no free place for a push, or its retry budget is exhausted.

    Attributes:
        delay: seconds; None when the shell wakes the asset as soon as there is a place.
    """

    reason: str
    message: str
    delay: float | None = None


class Ended(msgspec.Struct, frozen=True):
    """The push ended, or it is not known how."""

    outcome: Outcome
    now: float
    monotonic: float
    superseded: bool = False


class Broke(msgspec.Struct, frozen=True):
    """The turn could not be finished, whatever its phase.

    Attributes:
        governing, now, cause: of the turn.
        condition: what the failure means for the asset.
    """

    key: AssetKey
    governing: int
    now: float
    cause: str
    condition: Condition


Event = (
    Begin | StatusReported | Diffed | DiffFailed | Checked | Admitted | NotAdmitted | Deferred | Ended | Broke
)

# --- effects -----------------------------------------------------------------


class AskStatus(msgspec.Struct, frozen=True):
    """Ask the plugin about an operation. Answered by `StatusReported`."""

    operation: Operation


class RunDiff(msgspec.Struct, frozen=True):
    """Compare. Answered by `Diffed` or `DiffFailed`."""

    target: Target


class RunChecks(msgspec.Struct, frozen=True):
    """Ask every check. Answered by `Checked`."""

    view: View
    diff: Diff
    purpose: Purpose


class AskAdmission(msgspec.Struct, frozen=True):
    """Ask for a place, the retry budget if `retry`, and admission.

    Answered by `Admitted`, `NotAdmitted` or `Deferred`.
    """

    admit: Admit
    retry: bool


class StartPush(msgspec.Struct, frozen=True):
    """Start the push and end the turn; `Ended` follows when the push ends."""

    operation: Operation
    target: Target


class Commit(msgspec.Struct, frozen=True):
    """Write these down, in order with all other writes."""

    writes: tuple[Write, ...]


class Rest(msgspec.Struct, frozen=True):
    """The turn is over. The next is due after `delay` seconds, or with the resync if that is sooner.

    Attributes:
        wait_for: assets whose settling may change the answer.
        settled: nothing is left to do; assets that wait for this one are woken.
        quiet: something is left to do, but nothing differs now; assets that wait are woken as well.
    """

    delay: float | None = None
    wait_for: tuple[AssetId, ...] = ()
    settled: bool = False
    quiet: bool = False


class Again(msgspec.Struct, frozen=True):
    """The turn is over, and another one begins immediately."""

    cause: str


Effect = AskStatus | RunDiff | RunChecks | AskAdmission | StartPush | Commit | Rest | Again

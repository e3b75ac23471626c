"""Everything that can be written, as values. `Store.commit` carries out a list of them.

Each class documents its answer by `commit`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lehr.base.digest import Digest
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import Condition, Decision, Reservation
from lehr.model.evidence import Evidence
from lehr.model.handle import Handle
from lehr.model.incarnation import Candidate
from lehr.model.lease import LEASE_SECONDS, WHOLE
from lehr.model.operation import LedgerEntry, Operation, Outcome, PushStep
from lehr.model.outputs import Outputs
from lehr.model.release import Release
from lehr.model.selector import Selector
from lehr.model.types import Mention


class Publish(msgspec.Struct, frozen=True):
    """Store a candidate as the next incarnation. Answers the `Incarnation`, or `Refused`.

    Refused (`Overtaken`) when the newest incarnation is not the candidate's base.

    Attributes:
        mentions: references of each upserted asset that makes any, for asking backwards.
        claims: what each upserted asset alone may change in production, if anything.
        governing_types: types whose assets make up the governance digest.
    """

    candidate: Candidate
    mentions: dict[AssetId, tuple[Mention, ...]]
    governing_types: tuple[str, ...]
    at: float
    claims: dict[AssetId, tuple[str, ...]] = {}


class RecordAttempt(msgspec.Struct, frozen=True):
    """Result of the last pass over a source. Answers None."""

    attempt: Attempt


class Basis(msgspec.Struct, frozen=True):
    """Basis of a turn's verdicts. Admission refuses when any of it has changed.

    A turndown also rests on nothing referring to the asset, which any incarnation may change: with a
    goal other than PRESENT, admission refuses unless the operation's governing incarnation is the newest.

    Attributes:
        newest_digest: the asset's digest in the newest incarnation; None if it is not there.
        governance: digest of the governing assets.
        controls: version of the partition's controls. Of those set or lifted since, only the ones that may
            select the asset, or one of `others`, matter.
        looked_at: assets that were looked at, with their digests in the newest incarnation; none of
            them may be in the middle of a push.
        versions: the asset as intent last had it, and as this push has it: controls select by these.
            Without any, every control may select it.
        others: assets whose pins and releases the verdicts, or what the plugin read, rest on.
        releases: version of the partition's releases. Of those written or withdrawn since, only the ones of
            the asset, or of one of `others`, matter.
    """

    newest_digest: Digest | None
    governance: Digest
    controls: int
    looked_at: tuple[tuple[AssetId, Digest | None], ...] = ()
    versions: tuple[Asset, ...] = ()
    others: tuple[AssetId, ...] = ()
    releases: int = 0

    def rests_on(self, selector: Selector) -> bool:
        """Whether a control over `selector` may change the verdicts."""
        own = any(map(selector.matches, self.versions)) if self.versions else True
        return own or any(map(selector.may_name, self.others))


class Admit(msgspec.Struct, frozen=True):
    """Let a push start: re-validate, reserve, write it down. Answers None, or `Refused`.

    Invariant: I3, I5. This is the only way to create an operation.

    Attributes:
        approval: True when one must be active for exactly this diff.
        decision: recorded in the same transaction when the push is admitted; `inputs`: its inputs, as in
            `RecordDecision`.
    """

    operation: Operation
    basis: Basis
    reservations: tuple[Reservation, ...] = ()
    approval: bool = False
    decision: Decision | None = None
    inputs: bytes = b""


class Refused(msgspec.Struct, frozen=True):
    """Answer: nothing was written.

    Attributes:
        reason: a `Reason`, such as `Overtaken` or `LimitReached`.
        until: wall-clock seconds when it may succeed; None when only a new turn helps.
    """

    reason: str
    message: str
    until: float | None = None


class Finish(msgspec.Struct, frozen=True):
    """A push has ended, or its outcome is unknown. Answers None, or `Refused`.

    UNKNOWN keeps the operation open and its reservations held. Finishing an operation that is
    not open changes nothing.

    Refused (`Damaged`, with a message that describes it) when the operation's record is damaged or
    not found. Neither record nor ledger is changed then; a push that has ended still returns its
    reservations.

    Attributes:
        partition: that of the operation.
        ledger: what production now holds, if the push succeeded.
        steps: what the plugin reported during the push, oldest first; added to those that are known.
    """

    partition: Partition
    operation: str
    outcome: Outcome
    at: float
    ledger: LedgerEntry | None = None
    steps: tuple[PushStep, ...] = ()


class Adopt(msgspec.Struct, frozen=True):
    """Production was found to match without a push. Answers None."""

    ledger: LedgerEntry


class RecordDecision(msgspec.Struct, frozen=True):
    """A turn's verdict changed. Answers None.

    Attributes:
        inputs: what the turn was decided from, for those who decide it again; opaque to the store.
    """

    decision: Decision
    inputs: bytes = b""


class Reschedule(msgspec.Struct, frozen=True):
    """A turn ended like the last, but is due again at another time. Answers None."""

    key: AssetKey
    condition: Condition
    at: float


class SetControl(msgspec.Struct, frozen=True):
    """Set a control. Answers None, or `Refused`. Raises the version of the partition's controls.

    Refused (`Pruned`) when it names an incarnation that was pruned.
    """

    control: Control


class LiftControl(msgspec.Struct, frozen=True):
    """Lift a control. Answers True if it was active. Also raises the version."""

    partition: Partition
    id: str
    at: float


class WriteReleases(msgspec.Struct, frozen=True):
    """Release assets, withdraw releases, and write evidence: all of it, or nothing.

    Answers None, or `Refused`.

    Refused (`ReleasesChanged`, `GovernanceChanged`) when anything was released, withdrawn or governed
    otherwise since the writer looked: it decides again. So of two that decide at the same time, one does.
    Refused (`Pruned`) when a target is gone. Otherwise raises the version of the partition's releases.

    Attributes:
        version: of the releases that the writer saw.
        governance: digest of the governing assets that it saw.
        releases: each becomes the newest of its asset.
        withdrawn: ids of releases that no longer count; those that do not count already are left out.
        evidence: appended in this order.
    """

    partition: Partition
    version: int
    governance: Digest
    at: float
    releases: tuple[Release, ...] = ()
    withdrawn: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class KeepHandle(msgspec.Struct, frozen=True):
    """Replace an asset's handle, or forget it if there is nothing in it. Answers None."""

    handle: Handle

    @property
    def partition(self) -> Partition:
        return self.handle.partition


class KeepOutputs(msgspec.Struct, frozen=True):
    """Replace an asset's outputs, or forget them if there are none. Answers None."""

    outputs: Outputs

    @property
    def partition(self) -> Partition:
        return self.outputs.partition


class TakeLease(msgspec.Struct, frozen=True):
    """Become the one writer of a partition. Answers the lease's epoch, which only grows, or `Refused`.

    Refused (`LeaseHeld`) while another owner has the lease, that is until it ends or is returned. An owner
    takes back its own at once: it has ended and started again.

    Attributes:
        owner: as in `Lease`.
        at: wall-clock seconds now. A store that several machines use goes by a clock of its own instead.
        seconds: until it ends, unless it is renewed.
    """

    partition: Partition
    owner: str
    at: float
    seconds: float = LEASE_SECONDS
    share: int = WHOLE


class KeepLease(msgspec.Struct, frozen=True):
    """Continue only while this is the newest epoch, and renew the lease. Answers the seconds left.

    Raises `LeaseLostError` when another writer has taken the lease: nothing of the commit is
    written. Placed before all writes about a writer's own turns, it keeps a writer that was thought
    dead, and was only stopped, from overwriting its successor's findings. A lease that has ended, and
    that no other owner has taken, is renewed like any other.

    Attributes:
        at, seconds: as in `TakeLease`.
    """

    partition: Partition
    epoch: int
    at: float
    seconds: float = LEASE_SECONDS
    share: int = WHOLE


class ReturnLease(msgspec.Struct, frozen=True):
    """Let others take the lease at once. Answers None; changes nothing if it is lost already."""

    partition: Partition
    epoch: int
    share: int = WHOLE


class LeaseLostError(StalledError):
    """Another writer has taken the lease.

    Attributes:
        owner: who.
    """

    def __init__(self, partition: Partition, epoch: int, newest: int, owner: str) -> None:
        super().__init__(
            f"{owner or 'another control plane'} has taken over partition {partition}",
            code="STO138",
            why=f"its lease has epoch {newest}, and this process had {epoch}",
            fix="if this process should enforce the partition, stop the other one",
        )
        self.owner = owner


class Audit(msgspec.Struct, frozen=True):
    """Keep a command for ever. Answers None."""

    partition: Partition
    entry: AuditEntry


class Prune(msgspec.Struct, frozen=True):
    """Remove what is no longer needed. Answers `Pruned`.

    One transaction removes a share, so that no other write waits long: commit the answer's `rest`
    until there is none. Incarnations that are pinned, released (or were before the release that counts:
    where a rollback goes), applied, under way, or the last to hold an asset that is not turned down yet,
    stay, whatever their age (invariant I12); so do headers and the audit trail.

    Attributes:
        keep: number of newest incarnations that stay in any case; at least one does.
        before: wall-clock seconds; anything younger stays.
        most: rows of a share, about.
        decisions_above, operations_above: how far the shares before this one have come.
        operations_verified: up to which number operations were verified, which comes before all else.
    """

    partition: Partition
    keep: int
    before: float
    most: int = 20_000
    decisions_above: int = 0
    operations_above: int = 0
    operations_verified: int = 0


class Pruned(msgspec.Struct, frozen=True):
    """Answer: numbers of what was removed.

    Attributes:
        incarnations: of which the header alone is left.
        versions: of assets; `decisions`, `operations`: records; `controls`: those that had ended.
        entries: of the feed.
        rest: the write that continues; None when nothing is left to do.
    """

    incarnations: int = 0
    versions: int = 0
    decisions: int = 0
    operations: int = 0
    controls: int = 0
    entries: int = 0
    rest: Prune | None = None

    def plus(self, other: Pruned) -> Pruned:
        """Both shares together, and what is left after `other`."""
        return Pruned(
            self.incarnations + other.incarnations,
            self.versions + other.versions,
            self.decisions + other.decisions,
            self.operations + other.operations,
            self.controls + other.controls,
            self.entries + other.entries,
            other.rest,
        )


class Import(msgspec.Struct, frozen=True):
    """Keep the incarnation in a file (`lehr.store.archive`), to be read. Answers its header, or `Refused`.

    It belongs to no partition: it is never in force. Refused (`Exists`) when another incarnation of
    the same name was imported. Raises `ArchiveError` when the file does not match its own header.

    Attributes:
        path: of the file, which is read while the write is carried out, and never held in memory.
        replace: True to put it in the place of another one.
    """

    path: Path
    at: float
    replace: bool = False


Write = (
    Publish
    | RecordAttempt
    | Admit
    | Finish
    | Adopt
    | RecordDecision
    | Reschedule
    | SetControl
    | LiftControl
    | WriteReleases
    | KeepHandle
    | KeepOutputs
    | TakeLease
    | KeepLease
    | ReturnLease
    | Audit
    | Prune
    | Import
)

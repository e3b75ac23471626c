"""The store, as the rest of the program sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from lehr.base.digest import Digest
from lehr.base.errors import StalledError
from lehr.base.moments import Moment
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.damage import Advance, Damage, DamagedError, TypesOf
from lehr.model.decision import Condition, Decision, Reservation, Status, Verdict
from lehr.model.evidence import Evidence
from lehr.model.feed import FeedEntry
from lehr.model.handle import Handle
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.origins import origin_bytes, origin_of
from lehr.model.outputs import Outputs
from lehr.model.release import Release, Released
from lehr.model.writes import Prune, Pruned, Write


class Standing(msgspec.Struct, frozen=True):
    """The condition of an asset, since when, and its key for comparison with the next."""

    asset: AssetId
    condition: Condition
    since: Moment
    key: Digest


class StandingCount(msgspec.Struct, frozen=True):
    """How many assets have a status for a reason."""

    status: Status
    reason: str
    count: int


class Unsettled(msgspec.Struct, frozen=True):
    """An asset that is not settled, or that waits for a release.

    Attributes:
        awaits, verdicts: of its last decision, without the verdicts that allow the push; empty unless its
            status is Waiting.
    """

    standing: Standing
    awaits: tuple[AssetId, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


class Row(msgspec.Struct, frozen=True, gc=False):
    """An asset as it is stored, with `origin` (`lehr.model.origins`) not yet read.

    Of a million that a filter looks at, few are wanted, and where the others come from is of no interest.
    """

    id: AssetId
    type: str
    body: bytes
    digest: Digest
    origin: bytes | None

    def asset(self) -> Asset:
        """The asset itself.

        Raises:
            msgspec.DecodeError: it is damaged.
        """
        origin = origin_of(self.origin)
        return Asset(
            self.id,
            self.type,
            self.body,
            self.digest,
            origin.position,
            origin.made_by,
            origin.annotated_by,
        )


def row_of(asset: Asset) -> Row:
    """As `asset` would be kept."""
    return Row(asset.id, asset.type, asset.body, asset.digest, origin_bytes(asset))


class Head(msgspec.Struct, frozen=True):
    """An asset of the newest incarnation, without its body."""

    id: AssetId
    type: str
    digest: Digest


class Span(msgspec.Struct, frozen=True):
    """Which assets of an incarnation, by their ids; found by index.

    Attributes:
        ids: one of these; None for any.
        prefix: the id begins with this.
        after: the id comes after this one.
    """

    ids: frozenset[str] | None = None
    prefix: str = ""
    after: str = ""

    @property
    def end(self) -> str:
        """Comes after every id that begins with the prefix."""
        return f"{self.prefix}\U0010ffff"


WHOLE = Span()


class Imported(msgspec.Struct, frozen=True):
    """An incarnation of another state, kept to be read; since `at` (wall-clock seconds)."""

    header: Incarnation
    at: Moment


class DamagedOperation(msgspec.Struct, frozen=True):
    """A push whose record is damaged.

    Attributes:
        assets: those it may be of: two when the record contradicts itself.
        error: names the record.
    """

    assets: tuple[AssetId, ...]
    error: DamagedError


SEE_KEPT = "see `lehr get incarnations` for the ones that are kept"
"""The fix of errors about incarnations that were pruned."""


class PrunedError(StalledError):
    """An incarnation can no longer be read."""

    def __init__(self, partition: Partition, sequence: int, oldest: int) -> None:
        """Of the partition's incarnations, `oldest` is the oldest that is kept."""
        super().__init__(
            f"incarnation {partition}@{sequence} is pruned",
            code="SDK106",
            why=f"the oldest kept is {partition}@{oldest}",
            fix=SEE_KEPT,
        )


class StoredIntent(Protocol):
    """Reads incarnations.

    Raises (`asset`, `assets`, `changes`): `PrunedError` for an incarnation that was pruned.
    """

    def partitions(self) -> list[Partition]:
        """Names of all partitions that anything is known of."""
        ...

    def newest(self, partition: Partition) -> Incarnation | None:
        """The newest incarnation's header; None before the first."""
        ...

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        """A header, also of one that was pruned; None if there never was such an incarnation."""
        ...

    def incarnations(self, partition: Partition, limit: int, before: int = 0) -> list[Incarnation]:
        """The newest headers of those that are kept, newest first.

        Args:
            before: a sequence: only those of lower ones; 0 for all.
        """
        ...

    def require_kept(self, partition: Partition, sequence: int) -> None:
        """See that an incarnation was not pruned.

        Raises:
            PrunedError: it was.
        """
        ...

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        """An asset as an incarnation has it; None if it is not there."""
        ...

    def last(self, key: AssetKey, sequence: int | None = None) -> tuple[Asset, int] | None:
        """The last version of an asset that is not a tombstone, and the sequence it came with.

        Args:
            sequence: the version came no later than this incarnation.
        """
        ...

    def versions(self, key: AssetKey, sequence: int) -> Iterator[tuple[int, Asset | None]]:
        """The versions of an asset up to an incarnation, newest first, each with its sequence.

        None stands for its absence. Versions of incarnations that were pruned are left out.
        """
        ...

    def assets(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Asset]:
        """Assets of an incarnation by id; of some types, if any are given, and those of `span`."""
        ...

    def rows(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Row]:
        """The same, as they are kept."""
        ...

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        """Assets of the newest incarnation, all or those of `ids` that exist."""
        ...

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        """How two incarnations differ, by id. `before` may be 0 for the empty one."""
        ...

    def mentioned_by(self, key: AssetKey) -> list[tuple[AssetId, str]]:
        """Referrers of an asset in the newest incarnation: ids and paths."""
        ...

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        """The first incarnation after `sequence` that changed the asset or let it go; None if none has."""
        ...

    def past_and_present_referrers(self, key: AssetKey) -> list[AssetId]:
        """Referrers of an asset in any incarnation that is kept, past ones included: ids."""
        ...

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        """Assets that claim a thing in production, in the newest incarnation."""
        ...

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        """Since when (wall clock) every version of the asset has had this addon; None without it.

        Versions that were pruned vouch for nothing: since the first after them, then.
        """
        ...

    def imported(self) -> list[Imported]:
        """Imported incarnations, by name."""
        ...

    def imported_assets(self, name: str, after: str = "") -> Iterator[Asset]:
        """Assets of what was imported under a name, by id, those after an id; empty if nothing was."""
        ...


class Records(Protocol):
    """Reads what was decided and done."""

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        """The version of the controls, and those that are active at `now`."""
        ...

    def past_controls(self, partition: Partition, at: float) -> list[Control]:
        """The controls that were active at `at`, in wall-clock seconds, as far as they are kept."""
        ...

    def released(self, partition: Partition, since: int = 0) -> tuple[int, list[Released]]:
        """The version of the releases, and which counts for each asset that has changed since another one."""
        ...

    def releases(self, key: AssetKey, limit: int = 100) -> list[Release]:
        """The newest releases of an asset, newest first, withdrawn ones included."""
        ...

    def evidence(self, partition: Partition, after: int = 0, limit: int = 1000) -> list[Evidence]:
        """The first evidence of rollouts after a number, in the order in which it was written."""
        ...

    def open_operations(self, partition: Partition) -> list[Operation]:
        """Pushes that may still be changing production, without those whose record is damaged."""
        ...

    def damaged_operations(self, partition: Partition) -> list[DamagedOperation]:
        """Pushes that may be open although their damaged record may not show it. Takes O(operations).

        Only the newest operation of an asset can be open, so older ones are left out.
        """
        ...

    def operation(self, partition: Partition, id: str) -> Operation | None:
        """One operation; None if there is none of this id, or it was pruned."""
        ...

    def operations(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100, before: str = ""
    ) -> list[Operation]:
        """The newest operations, newest first.

        Args:
            before: id of an operation: only older ones, none if it was pruned. Empty for all.
        """
        ...

    def ledger(self, key: AssetKey) -> LedgerEntry | None:
        """The state last applied or adopted."""
        ...

    def ledgers(self, partition: Partition) -> Iterator[LedgerEntry]:
        """The ledger of every asset that has one."""
        ...

    def handle(self, key: AssetKey) -> Handle | None:
        """The handle of an asset that has one."""
        ...

    def handles(self, partition: Partition) -> Iterator[Handle]:
        """The handle of every asset that has one, by id."""
        ...

    def outputs_of(self, key: AssetKey) -> Outputs | None:
        """The outputs of an asset that has some."""
        ...

    def outputs(self, partition: Partition) -> Iterator[Outputs]:
        """The outputs of every asset that has some, by id."""
        ...

    def standing(self, key: AssetKey) -> Standing | None:
        """The condition of one asset."""
        ...

    def standings(self, partition: Partition) -> Iterator[Standing]:
        """The condition of every asset that had a turn, by id."""
        ...

    def standing_counts(self, partition: Partition) -> list[StandingCount]:
        """How many assets that had a turn have each status and reason, the most frequent first.

        Damage is not looked for. Of a long reason of a check's own, the beginning counts.
        """
        ...

    def unsettled(self, partition: Partition) -> Iterator[Unsettled]:
        """Every asset that had a turn and is not settled, or waits for a release, by id."""
        ...

    def without_turn(self, partition: Partition) -> list[Head]:
        """Assets of the newest incarnation that had no turn, by id; also those that never have one."""
        ...

    def decisions(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100, before: int = 0
    ) -> list[tuple[int, Decision]]:
        """The newest decisions with their numbers, newest first.

        Args:
            before: a number: only those with lower ones; 0 for all.
        """
        ...

    def decision(self, partition: Partition, number: int) -> tuple[Decision, bytes] | None:
        """A decision, and its inputs (`lehr.model.writes.RecordDecision`); None if it is not there."""
        ...

    def usage(self, reservation: Reservation, now: float, but: str = "") -> tuple[int, float | None]:
        """How many count against a limit, `but` this holder, and when the oldest stops to.

        None: when an operation ends.
        """
        ...

    def position(self, partition: Partition) -> int:
        """Position of the newest entry of the feed; 0 before the first."""
        ...

    def feed(self, partition: Partition, after: int, limit: int = 100) -> list[FeedEntry]:
        """The first entries of the feed after a position, in order and without a gap; empty before the next.

        A reader that takes the position first, then reads records, and then all entries after that position,
        misses no change.

        Raises:
            FeedGoneError: some of them were pruned or lost, or the position is of another state.
        """
        ...

    def attempt(self, partition: Partition) -> Attempt | None:
        """Result of the last pass over the source; None before the first."""
        ...

    def prunable(self, write: Prune) -> Pruned:
        """The number of rows that `write` and its remaining shares would remove."""
        ...

    def audit(
        self, partition: Partition, limit: int = 100, before: int | None = None
    ) -> list[tuple[int, AuditEntry]]:
        """The newest commands with their numbers, newest first; before a number if one is given."""
        ...


class Store(Protocol):
    """Durable state. Methods block, for microseconds except `commit`. Reads may run in any thread.

    Raises (all methods): `TransientError` (locked, disk full), `StalledError` (corrupt).
    """

    @property
    def intent(self) -> StoredIntent: ...

    @property
    def records(self) -> Records: ...

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        """Carry out `writes` in order, in one transaction; answers one by one.

        When it returns, they are durable, also over a crash of the machine. When it raises,
        nothing was written.
        """
        ...

    def close(self) -> None:
        """Release files."""
        ...


class CheckableStore(Store, Protocol):
    """A store with its own rows, which may be damaged."""

    def check(
        self, types: TypesOf, began: Advance = lambda rows: None, advance: Advance = lambda rows: None
    ) -> Iterator[Damage]:
        """Recompute and compare everything that is stored at one moment; yields damage as it is found.

        Writes nothing, and may run while others write.

        Args:
            types: types of a partition's assets.
            began: called with the number of rows; `advance`: with each share that was looked at.
        """
        ...

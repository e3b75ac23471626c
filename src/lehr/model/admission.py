"""Whether a push may start: the questions of admission, independent of who answers them. Pure.

The store answers inside the transaction that starts the push; a dry run answers for an incarnation
that was never published, and with the shares of supposed pushes.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple, Protocol

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, Partition
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Reservation
from lehr.model.diff import Goal
from lehr.model.operation import Operation
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Refused


class PartitionRow(NamedTuple):
    """One partition as a whole.

    Attributes:
        newest: sequence of its newest incarnation; 0 before the first.
        governance: digest of what governs in that.
        controls: version of its controls.
        releases: version of its releases.
    """

    name: Partition
    newest: int = 0
    governance: Digest = Digest("")
    controls: int = 0
    releases: int = 0


class Grounds(Protocol):
    """The basis of admission, as it is at one moment. Everything may raise `DamagedError`."""

    def partition(self, name: Partition) -> PartitionRow:
        """The partition as a whole."""
        ...

    def epoch(self, partition: Partition) -> int:
        """The epoch of its newest lease."""
        ...

    def newest_digest(self, partition: Partition, id: AssetId) -> Digest | None:
        """The digest of an asset in the newest incarnation; None if it is not there."""
        ...

    def is_being_pushed(self, partition: Partition, id: AssetId) -> bool:
        """Whether a push of an asset is under way, or ended in an unknown way."""
        ...

    def controls(self, partition: Partition, now: float) -> Sequence[Control]:
        """The controls that are set at `now`, in the order in which they were given."""
        ...

    def controls_changed_since(self, partition: Partition, version: int) -> Sequence[Control]:
        """The controls that were set or lifted after this version of the controls."""
        ...

    def released_since(self, partition: Partition, version: int) -> Container[AssetId]:
        """The assets that were released, or whose releases were withdrawn, after this version of them."""
        ...

    def usage(self, limit: Reservation, now: float, but: str) -> tuple[int, float | None]:
        """How many shares count against a limit, `but` this holder's, and when the oldest stops counting."""
        ...


def refusal(write: Admit, grounds: Grounds) -> Refused | None:
    """Why the push of `write` must not start; None if it may.

    Raises:
        DamagedError: it cannot be known.
    """
    return _changed_basis(write, grounds) or _missing_approval(write, grounds) or _no_room(write, grounds)


def holder(item: Reservation, operation: Operation) -> str:
    """The holder of a share: the push, or its asset, which then has one however often the push is retried."""
    return f"{operation.partition}:{operation.asset}" if item.once else operation.id


def _changed_basis(write: Admit, grounds: Grounds) -> Refused | None:
    operation, basis = write.operation, write.basis
    _name, newest, governance, controls, releases = grounds.partition(operation.partition)
    epoch = grounds.epoch(operation.partition)
    if epoch != operation.epoch:
        return Refused(
            Reason.LEASE_LOST, f"the lease has epoch {epoch}, not {operation.epoch}: another writer took over"
        )
    if governance != basis.governance:
        return Refused(
            Reason.GOVERNANCE_CHANGED, "checks, limits or freezes were changed by a new incarnation"
        )
    if controls != basis.controls and any(
        basis.rests_on(control.selector)
        for control in grounds.controls_changed_since(operation.partition, basis.controls)
    ):
        return Refused(
            Reason.CONTROLS_CHANGED, "controls were set or lifted (pause, freeze, pin, approval or override)"
        )
    if releases != basis.releases:
        released = grounds.released_since(operation.partition, basis.releases)
        if any(id in released for id in (operation.asset, *basis.others)):
            return Refused(
                Reason.RELEASES_CHANGED,
                "this asset, or one that it depends on or reads, was released, or its release was withdrawn",
            )
    if grounds.newest_digest(operation.partition, operation.asset) != basis.newest_digest:
        return Refused(Reason.OVERTAKEN, "a new incarnation changed this asset")
    for id, expected in basis.looked_at:
        if grounds.newest_digest(operation.partition, id) != expected:
            return Refused(
                Reason.DEPENDENCY_CHANGED, f"a new incarnation changed {id}, which this asset depends on"
            )
        if grounds.is_being_pushed(operation.partition, id):
            return Refused(Reason.DEPENDENCY_BUSY, f"{id}, which this asset depends on, is being pushed")
    if operation.goal is not Goal.PRESENT and newest != operation.governing:
        # Invariant: I4. The turn read in the governing incarnation that nothing refers to the asset.
        return Refused(
            Reason.OVERTAKEN,
            f"incarnation {newest} is newer than {operation.governing}, and may refer to this asset",
        )
    if grounds.is_being_pushed(operation.partition, operation.asset):
        return Refused(Reason.IN_FLIGHT, "a push of this asset is running")
    return None


def _missing_approval(write: Admit, grounds: Grounds) -> Refused | None:
    if not write.approval:
        return None
    operation = write.operation
    for control in grounds.controls(operation.partition, operation.started_at):
        if (
            control.kind is ControlKind.APPROVAL
            and control.diff_digest == operation.diff_digest
            and control.selector.ids == (operation.asset,)
        ):
            return None
    return Refused(Reason.APPROVAL_MISSING, "no active approval is for exactly this diff")


def _no_room(write: Admit, grounds: Grounds) -> Refused | None:
    now, operation = write.operation.started_at, write.operation
    for item in write.reservations:
        used, until = grounds.usage(item, now, holder(item, operation))
        if used >= item.limit:
            return Refused(
                Reason.LIMIT_REACHED, f"{used} of {item.limit} shares of {item.key} are taken", until
            )
    return None

"""Admission of simulated pushes, one after the other; each counts what earlier ones took."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from lehr.base.digest import Digest
from lehr.enforce.governance import Governance
from lehr.model.admission import PartitionRow, holder, refusal
from lehr.model.asset import AssetId, Partition
from lehr.model.control import Control
from lehr.model.damage import DamagedError
from lehr.model.decision import Reservation
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Refused
from lehr.sdk.store import Records


class Supposed:
    """`lehr.model.admission.Grounds` over a candidate. It remembers what it admits, and writes nothing."""

    def __init__(
        self,
        governance: Governance,
        records: Records,
        epoch: int,
        digest_of: Callable[[AssetId], Digest | None],
        is_pushing: Callable[[AssetId], bool],
    ) -> None:
        """Admit pushes under `governance`.

        Args:
            digest_of: digest of an asset in the candidate.
            is_pushing: whether an earlier push of an asset may still be running.
        """
        self._governance = governance
        self._records = records
        self._epoch = epoch
        self._digest_of = digest_of
        self._is_pushing = is_pushing
        self._taken: dict[str, dict[str, float]] = {}

    def admit(self, write: Admit) -> Refused | None:
        """The answer that `Store.commit` would give."""
        try:
            refused = refusal(write, self)
        except DamagedError as error:
            return Refused(Reason.DAMAGED, str(error))
        if refused is None:
            for item in write.reservations:
                taken = self._taken.setdefault(item.key, {})
                taken[holder(item, write.operation)] = write.operation.started_at
        return refused

    def partition(self, name: Partition) -> PartitionRow:
        governed = self._governance
        return PartitionRow(
            name, governed.sequence, governed.digest, governed.controls_version, governed.releases.version
        )

    def epoch(self, partition: Partition) -> int:
        return self._epoch

    def newest_digest(self, partition: Partition, id: AssetId) -> Digest | None:
        return self._digest_of(id)

    def is_being_pushed(self, partition: Partition, id: AssetId) -> bool:
        return self._is_pushing(id)

    def controls(self, partition: Partition, now: float) -> Sequence[Control]:
        return [control for control in self._governance.controls if control.is_active(now)]

    def controls_changed_since(self, partition: Partition, version: int) -> Sequence[Control]:
        return ()

    def released_since(self, partition: Partition, version: int) -> Container[AssetId]:
        return ()

    def usage(self, limit: Reservation, now: float, but: str) -> tuple[int, float | None]:
        used, until = self._records.usage(limit, now, but)
        for taker, at in self._taken.get(limit.key, {}).items():
            # A taker that already has a share in the store does not take another.
            if taker != but and self._records.usage(limit, now, taker) == self._records.usage(limit, now):
                used += 1
                until = until if limit.window is None or until is not None else at + limit.window
        return used, until

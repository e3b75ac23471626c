"""Which assets may change what in production, among all control planes of a host.

A claim names a thing in production (`file:/etc/motd`, `port:8080`). Within a partition, validation
ensures that each thing has one asset; between partitions a register does that all control planes of
the host share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from lehr.base.errors import TransientError
from lehr.model.asset import AssetId, Partition


class Holder(msgspec.Struct, frozen=True):
    """The holder of a claim.

    Attributes:
        state: the state folder of the partition's control plane.
        ours: whether that is the partition that asks.
    """

    partition: Partition
    state: str
    asset: AssetId
    ours: bool = False


class Conflict(msgspec.Struct, frozen=True):
    """An asset claims what something else holds.

    Attributes:
        claim: as the asset's type words it; `real` with links resolved.
        protected: the folder that it leads into, in words, where no asset may change anything; then `holder`
            is the control plane itself.
    """

    asset: AssetId
    claim: str
    real: str
    holder: Holder
    protected: str = ""

    @property
    def what(self) -> str:
        """The thing in words (`file /etc/motd`), and where it really is if that is elsewhere."""
        return f"{' '.join(self.claim.split(':', 1))}{self.led_to}"

    @property
    def led_to(self) -> str:
        """Where the name really leads; empty if it leads where it seems to."""
        name, real = self.claim.partition(":")[2], self.real.partition(":")[2]
        return "" if name == real else f" (that is, {real})"


class NoRegisterError(TransientError):
    """There is no register, and the caller creates none."""


class Claims(Protocol):
    """The register of a host, as one control plane sees it.

    Every method raises `TransientError` when the register cannot be used.
    """

    async def known(self, partition: Partition) -> bool:
        """Whether the partition has claimed anything yet."""
        ...

    async def conflicts(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]]
    ) -> Sequence[Conflict]:
        """The conflicts of `claims`: everything that these assets claim from now on.

        Of our own partition, every other asset counts as a holder.
        """
        ...

    async def take(
        self,
        partition: Partition,
        claims: Mapping[AssetId, Collection[str]],
        *,
        only: bool,
        over: Collection[AssetId] = (),
    ) -> Sequence[Conflict]:
        """Take all `claims`, or, if another partition or another asset of ours holds one of them, none.

        Args:
            only: whether these are all claims of the assets; their other claims are then released.
            over: assets of ours that lose what they hold.
        """
        ...

    async def take_free(self, partition: Partition, claims: Mapping[AssetId, Collection[str]]) -> None:
        """Take those of `claims` that no other asset holds."""
        ...

    async def assets(self, partition: Partition) -> Collection[AssetId]:
        """The assets of a partition that hold anything."""
        ...

    async def moved(self, partition: Partition) -> Collection[AssetId]:
        """The assets of a partition that may hold more than they took last."""
        ...

    async def release(self, partition: Partition, assets: Collection[AssetId]) -> None:
        """Release everything that `assets` hold."""
        ...

    async def close(self) -> None:
        """The register is no longer used."""
        ...

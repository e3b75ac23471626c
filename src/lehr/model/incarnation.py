"""Incarnations: immutable, validated snapshots of a partition. The only way to read intent."""

from __future__ import annotations

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, Partition


class SourceRevision(msgspec.Struct, frozen=True):
    """The exact revision of one source of truth.

    Attributes:
        source: kind and place (`git:/srv/intent#main`, `directory:/srv/intent`).
        revision: commit id or content digest.
    """

    source: str
    revision: str


class Incarnation(msgspec.Struct, frozen=True):
    """Header of an incarnation; its assets are read through the store.

    Attributes:
        sequence: counts from 1 within the partition.
        digest: Merkle digest over (asset id, asset digest).
        governance: digest over the governing assets alone (checks, limits, freezes).
        generators: digest of the code that made it.
        created_at: wall-clock seconds since the epoch.
        added, changed, removed: number of assets, against the one before.
        assets: number of assets in it.
    """

    partition: Partition
    sequence: int
    digest: Digest
    governance: Digest
    sources: tuple[SourceRevision, ...]
    generators: Digest
    created_at: float
    assets: int
    added: int = 0
    changed: int = 0
    removed: int = 0

    @property
    def name(self) -> str:
        """`partition@sequence`."""
        return f"{self.partition}@{self.sequence}"


class Candidate(msgspec.Struct, frozen=True):
    """What generation proposes, as a difference from the newest incarnation.

    Attributes:
        base: sequence of the incarnation it differs from; 0 for none.
        upserts: assets that are new or have another digest.
        removals: ids that are in the base and not in the candidate.
    """

    partition: Partition
    base: int
    sources: tuple[SourceRevision, ...]
    generators: Digest
    upserts: tuple[Asset, ...]
    removals: tuple[AssetId, ...]

    @property
    def changes_nothing(self) -> bool:
        return not self.upserts and not self.removals


class AssetChange(msgspec.Struct, frozen=True):
    """How one asset differs between two incarnations; `before` or `after` is None if absent."""

    id: AssetId
    before: Asset | None
    after: Asset | None

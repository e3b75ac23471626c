"""Incarnations: immutable, validated snapshots of a partition. The only way to read intent."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.base.digest import Digest
from lehr.base.moments import Moment
from lehr.model.asset import Asset, AssetId, Partition


class SourceRevision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The exact revision of one source of truth.

    Attributes:
        source: kind and place (`git:/srv/intent#main`, `directory:/srv/intent`).
        revision: commit id or content digest.
        folder: where its files are in the snapshot (`sources/catalogue`); "" for the source that
            `lehr.yaml` is in.
    """

    source: str
    revision: str
    folder: str = ""


class Acknowledgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator's confirmation that a change is intended although a guard takes it for a mistake.

    Attributes:
        code: of the diagnostic (`VAL021`).
        subject: what it is about, in the guard's terms: an asset id, a type, the partition; `*` in
            it matches anything.
        after: name of the incarnation that the change follows (`shakespeare@41`). For any other
            the acknowledgement does not hold, so it cannot stay in force by accident.
        reason: why the change is meant.
    """

    code: str
    subject: Annotated[str, msgspec.Meta(min_length=1)]
    after: str
    reason: Annotated[str, msgspec.Meta(min_length=1)]


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
        types: number of assets of each type.
        acknowledged: guards that were acknowledged for its publication.
    """

    partition: Partition
    sequence: int
    digest: Digest
    governance: Digest
    sources: tuple[SourceRevision, ...]
    generators: Digest
    created_at: Moment
    assets: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    types: dict[str, int] = {}
    acknowledged: tuple[Acknowledgement, ...] = ()

    @property
    def name(self) -> str:
        """`partition@sequence`."""
        return f"{self.partition}@{self.sequence}"


class Candidate(msgspec.Struct, frozen=True):
    """Generation's proposal, as a difference from the newest incarnation.

    Attributes:
        base: sequence of the incarnation it differs from; 0 for none.
        upserts: assets that are new or have another digest.
        removals: ids that are in the base and not in the candidate.
        types: number of assets of each type that it has as a whole.
        acknowledged: guards that do not block its publication.
    """

    partition: Partition
    base: int
    sources: tuple[SourceRevision, ...]
    generators: Digest
    upserts: tuple[Asset, ...]
    removals: tuple[AssetId, ...]
    types: dict[str, int] = {}
    acknowledged: tuple[Acknowledgement, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        return not self.upserts and not self.removals


class AssetChange(msgspec.Struct, frozen=True):
    """How one asset differs between two incarnations; `before` or `after` is `None` if absent."""

    id: AssetId
    before: Asset | None
    after: Asset | None

"""Releases: permissions for assets to have a certain content."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import msgspec

from lehr.base.digest import Digest
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, AssetKey, Partition


class ReleaseKind(enum.StrEnum):
    """Why an asset was released.

    BASELINE: it had this content when releases began to govern it. FORWARD: a rollout has reached it.
    ROLLBACK: newer content failed. PERSON: a person decided.
    """

    BASELINE = "baseline"
    FORWARD = "forward"
    ROLLBACK = "rollback"
    PERSON = "person"


class ReleaseBasis(msgspec.Struct, frozen=True, omit_defaults=True):
    """The basis of a release.

    Attributes:
        governance: digest of the governing assets, among them the policy.
        policy: id of the asset that governs the rollout; empty for a person's decision.
        evidence: number of the last piece of evidence that counted; 0 if there was none.
    """

    governance: Digest
    policy: AssetId = AssetId("")
    evidence: int = 0


class Release(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An asset may have the content that it has in incarnation `target`.

    Also in a later one, for as long as neither the asset nor any of `reads` has changed.

    Attributes:
        id: sorts by time.
        target: sequence of the incarnation; None lets the asset follow the newest again.
        content_key: of the asset and of `reads` in `target` (`lehr.model.content_key`).
        reads: the other assets that its plugin read in `target`.
        rollout: id of the rollout that it is part of; empty for none.
        actor: the person who decided, if one did.
        reason: why, for people.
        at: wall-clock seconds. Releases are ordered by the store, never by their times.
        withdrawn_at: since when it no longer counts; None while it does.
    """

    id: str
    partition: Partition
    asset: AssetId
    target: int | None
    kind: ReleaseKind
    basis: ReleaseBasis
    at: Moment
    content_key: Digest = Digest("")
    reads: tuple[AssetId, ...] = ()
    rollout: str = ""
    actor: str = ""
    reason: str = ""
    withdrawn_at: Moment | None = None

    @property
    def key(self) -> AssetKey:
        return AssetKey(self.partition, self.asset)


class Released(msgspec.Struct, frozen=True):
    """The release that counts for an asset.

    Attributes:
        release: its newest that was not withdrawn; None if every one was. The asset then keeps what was
            last applied to it.
    """

    asset: AssetId
    release: Release | None


class Releases:
    """The release that counts for each asset that ever had one, at one version.

    Attributes:
        version: of the partition's releases.
    """

    def __init__(self, version: int = 0, released: Mapping[AssetId, Release | None] | None = None) -> None:
        self.version = version
        self._released = released or {}

    def of(self, id: AssetId, governed: bool = False) -> Released | None:
        """The release that counts for an asset; None for one that follows intent.

        Args:
            governed: a policy governs it, so without any release it keeps what was last applied to it.
        """
        if id not in self._released:
            return Released(id, None) if governed else None
        release = self._released[id]
        return None if release is not None and release.target is None else Released(id, release)

    def knows(self, id: AssetId) -> bool:
        """Whether an asset was ever released."""
        return id in self._released

    def frees(self, id: AssetId) -> bool:
        """Whether a person has let an asset follow intent, whatever governs it."""
        release = self._released.get(id)
        return release is not None and release.target is None

    def updated(self, version: int, changed: Iterable[Released]) -> Releases:
        """These, with what has changed up to `version`."""
        return Releases(version, {**self._released, **{item.asset: item.release for item in changed}})

    def changed_from(self, before: Releases) -> list[AssetId]:
        """The assets for which another release counts than before."""
        if before.version == self.version:
            return []
        new, old = self._released, before._released
        return [id for id, release in new.items() if id not in old or old[id] != release]

    def __len__(self) -> int:
        return len(self._released)


NO_RELEASES = Releases()

"""Judges releases from outside: which content an asset may have, by code of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset
from lehr.model.decision import Decision
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry
from lehr.model.release import Release, ReleaseKind
from lehr.model.writes import WriteReleases

_NOT_CONTENT = ("lehr.AffectedClusters", "lehr.DependsOn", "lehr.Labels", "lehr.Owner")

Assets = Callable[[int], Mapping[str, Asset]]

_NOTICED_SECONDS = 90.0
"""So long after a write of releases begins, which may take a while, the Enforcer has noticed it."""


class ReleaseJudge:
    """All releases that were written.

    Attributes:
        version: of the releases.
    """

    def __init__(
        self,
        broken: Callable[[str, str], None],
        assets: Assets,
        ledger: Mapping[str, LedgerEntry],
        governance: Callable[[], str],
        policed: Callable[[str], bool],
        newest: Callable[[], int],
    ) -> None:
        """Judge by the incarnations and the ledger of the witness.

        Args:
            governance: the newest digest.
            policed: whether a policy selects an asset.
            newest: sequence of the newest incarnation.
        """
        self.version = 0
        self._broken = broken
        self._assets = assets
        self._ledger = ledger
        self._governance = governance
        self._policed = policed
        self._newest = newest
        self._written_at = 0.0
        self._of: dict[str, list[Release]] = {}
        self._withdrawn: dict[str, float] = {}
        self._taken_back: set[str] = set()

    def written(self, write: WriteReleases, answer: object) -> None:
        """This write was carried out, or refused."""
        if answer is not None:
            return
        if write.version != self.version or write.governance != self._governance():
            self._broken("I10", "releases were written by one who had not seen the newest")
        self.version += 1
        self._written_at = write.at
        self._withdrawn |= {id: write.at for id in write.withdrawn if id not in self._withdrawn}
        for release in write.releases:
            self._of.setdefault(release.asset, []).append(release)
            if release.kind is ReleaseKind.ROLLBACK and release.rollout:
                self._taken_back |= {
                    item.id
                    for item in self.history(release.asset)
                    if item.rollout == release.rollout and item.kind is ReleaseKind.FORWARD
                }
        if write.withdrawn:
            self._revived()

    def _revived(self) -> None:
        """I10: content that was taken back is not released again by withdrawing what came after it."""
        for id in self._of:
            for item in self.history(id)[-1:]:
                if item.id in self._taken_back:
                    what = f"{id} is released to {item.target} again, from which its rollout went back"
                    self._broken("I10", what)

    def pruned(self, before: float) -> None:
        """Releases that were replaced or withdrawn before that time are gone."""
        for id, releases in self._of.items():
            recent = [item.id for item in releases if self._withdrawn.get(item.id, math.inf) > before]
            stay = {*recent[-2:], *(item.id for item in self.history(id)[-2:])}
            self._of[id] = [
                item
                for item in releases
                if item.at >= before or item.id in stay or item.id == releases[-1].id
            ]

    def ids(self) -> list[str]:
        """Assets that releases govern."""
        return sorted(filter(self.governs, self._of))

    def history(self, id: str) -> list[Release]:
        """The releases of an asset that were not withdrawn, oldest first."""
        return [item for item in self._of.get(id, ()) if item.id not in self._withdrawn]

    def governs(self, id: str) -> bool:
        """Whether releases decide which content an asset has."""
        counting = self.history(id)[-1:]
        if not self._of.get(id):
            return self._policed(id)
        return not (counting and counting[0].target is None)

    def counting(self, id: str) -> int | None:
        """The incarnation of the release of an asset that counts: 0 if it is let go, None for no release."""
        return next((item.target or 0 for item in self.history(id)[-1:]), None)

    def takes_back(self, id: str) -> bool:
        """Whether the release of an asset takes newer content back."""
        return any(item.kind is ReleaseKind.ROLLBACK for item in self.history(id)[-1:])

    def knows_release(self, id: str, release: str | None) -> bool:
        """Whether a turn under `release` knew of the one that counts; a turn may begin just before it.

        Decisions do not name a release to the newest content, so without a name they may have been under one.
        """
        if release is None and any(item.target is None for item in self._of.get(id, ())):
            return False
        return next((item.id for item in self.history(id)[-1:]), None) == release

    def base(self, id: str) -> int:
        """The incarnation whose content a governed asset may have; 0 if it may have none."""
        counting = self.history(id)[-1:]
        if counting:
            return counting[0].target or 0
        entry = self._ledger.get(id)
        if entry is None or (entry.goal is Goal.ABSENT and self._comes_back(id)):
            return 0
        return entry.content

    def _comes_back(self, id: str) -> bool:
        """Whether intent has an asset, and does not ask for its removal."""
        asset = self._assets(self._newest()).get(id)
        return asset is not None and TURNDOWN not in asset.document()["addons"]

    def content(self, id: str, governing: int) -> int:
        """The incarnation at which a governed asset is read while `governing` is the newest."""
        base, counting = self.base(id), self.history(id)[-1:]
        if counting and base < governing:
            names = (id, *counting[0].reads)
            if all(self.same(name, base, governing) for name in names):
                return governing
        return min(base, governing)

    def decided(self, decision: Decision) -> None:
        """I10: a turn that knows of the last release has no content beyond it."""
        id = decision.asset
        noticed = self._written_at + _NOTICED_SECONDS < decision.at
        known = bool(self._of.get(id)) and (
            noticed or self.knows_release(id, decision.evidence.get("release"))
        )
        if known and self.governs(id):
            allowed = self.content(id, self._last_with(id, decision.governing))
            if decision.content > allowed:
                what = f"decision on {id} has content {decision.content}, and it is released to {allowed}"
                self._broken("I10", what)

    def _last_with(self, id: str, governing: int) -> int:
        """The last incarnation up to `governing` that has an asset; it is enforced as that has it."""
        return next((at for at in range(governing, 0, -1) if id in self._assets(at)), governing)

    def allows(self, id: str, content: int) -> bool:
        """Whether a governed asset may be pushed from incarnation `content` (I10)."""
        return self.same(id, self.base(id), content)

    def same(self, id: str, one: int, other: int) -> bool:
        """Whether two incarnations have the same content of an asset."""
        return bool(content_of(self._assets(one).get(id)) == content_of(self._assets(other).get(id)))

    def needed(self) -> set[int]:
        """Incarnations that must be kept: of releases that count, and of those before: a rollback's."""
        return {item.target for id in self._of for item in self.history(id)[-2:] if item.target is not None}


def content_of(asset: Asset | None) -> Any:
    """The content of an asset, as plain data; None for none."""
    if asset is None:
        return None
    document = asset.document()
    addons = {name: value for name, value in document["addons"].items() if name not in _NOT_CONTENT}
    return document["type"], document["payload"], addons

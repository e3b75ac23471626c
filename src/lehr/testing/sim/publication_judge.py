"""Judges incarnations from outside: each is what its revision declares, and takes nothing away unasked."""

from __future__ import annotations

from collections.abc import Callable

from lehr.model.asset import Asset
from lehr.model.diff import Goal
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import incarnation_digest
from lehr.model.writes import Publish
from lehr.testing.sim.intent import GUARDED
from lehr.testing.sim.witnessed_state import WitnessedState
from lehr.testing.world import THING


class PublicationJudge:
    """Invariants I2, I4 and I11 of everything that is published.

    Attributes:
        revisions: digests by id of what each revision of the source declares; None for one that
            nothing may be published from.
        guards: for each revision of a guarded source, the incarnation that its acknowledgement is for, 0 for
            none; None where the source is not guarded.
        let_go: ids that some revision has let go.
    """

    def __init__(self, broken: Callable[[str, str], None], state: WitnessedState) -> None:
        """`broken` is called with the rule and what breaks it; `state` is before each publication."""
        self.revisions: dict[str, dict[str, str] | None] = {}
        self.guards: dict[str, int | None] = {}
        self.let_go: set[str] = set()
        self._broken = broken
        self._state = state

    def published(self, write: Publish, incarnation: Incarnation) -> dict[str, Asset]:
        """The assets of an incarnation that follows the newest one."""
        before = self._state.assets()
        assets = dict(before)
        assets.update({asset.id: asset for asset in write.candidate.upserts})
        for id in write.candidate.removals:
            del assets[id]
            stays = before[id].type == THING and self._state.turndown(before[id]) is None
            if stays and id not in self.let_go:
                self._broken("I4", f"{id} is gone from intent, and was not turned down or let go")
        for asset in write.candidate.upserts:
            self._keeps_its_type(asset, before.get(asset.id))
        self._guarded(write, before, assets)
        self._as_declared(write, incarnation, assets)
        return assets

    def _as_declared(self, write: Publish, incarnation: Incarnation, assets: dict[str, Asset]) -> None:
        """An incarnation is what its revision declares, and a digest of just that (I2, I11)."""
        revision = write.candidate.sources[0].revision
        declared = self.revisions.get(revision)
        found = {id: str(asset.digest) for id, asset in assets.items()}
        if declared is None:
            self._broken("I4", f"{incarnation.name} is published from a revision that is not whole")
        elif declared != found:
            differing = sorted(
                id for id in declared.keys() | found.keys() if declared.get(id) != found.get(id)
            )
            self._broken("I11", f"{incarnation.name} is not what its revision declares: {differing}")
        if incarnation.digest != incarnation_digest((asset.id, asset.digest) for asset in assets.values()):
            self._broken("I2", f"the digest of {incarnation.name} is not that of its assets")

    def _keeps_its_type(self, asset: Asset, before: Asset | None) -> None:
        """I4: an id is used for another type only once what it was is removed, or let go."""
        last = before or self._state.last(asset.id)
        if last is None or last.type == asset.type or self._state.turndown(last) is None:
            return
        entry = self._state.ledger.get(asset.id)
        if entry is not None and entry.goal is not Goal.ABSENT:
            self._broken("I4", f"{asset.id} becomes a {asset.type}, and is still being turned down")

    def _guarded(self, write: Publish, before: dict[str, Asset], after: dict[str, Asset]) -> None:
        """I4: one change takes away only so much, unless exactly that was acknowledged."""
        acknowledged = self.guards.get(write.candidate.sources[0].revision)
        if acknowledged is None or acknowledged == max(self._state.incarnations, default=0):
            return
        for kept in (set(before), {id for id, asset in before.items() if asset.type == THING}):
            lost = [
                id
                for id in kept
                if self._state.turndown(before[id]) is None
                and (id not in after or self._state.turndown(after[id]) is not None)
            ]
            if len(lost) > GUARDED["floor"] and len(lost) * 100 > GUARDED["percent"] * len(kept):
                self._broken("I4", f"one change takes away {sorted(lost)} of {len(kept)}, beyond the guard")

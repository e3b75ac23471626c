"""Judges the order of pushes: what has to go first was seen to be in place, in that same turn."""

from __future__ import annotations

from collections.abc import Callable

from lehr.base.clock import Clock
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn
from lehr.model.asset import Asset, AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Decision
from lehr.model.diff import Diff, Goal
from lehr.model.operation import Operation
from lehr.model.types import Registry, addon_names
from lehr.testing.sim.applied_content import AppliedContent
from lehr.testing.sim.remembered_looks import RememberedLooks
from lehr.testing.sim.wanted_content import WantedContent
from lehr.testing.sim.witness import Witness

_ROUNDING = 0.01


class OrderJudge:
    """Invariant I3 between assets, by the looks that were had."""

    def __init__(
        self,
        witness: Witness,
        registry: Registry,
        clock: Clock,
        looks: RememberedLooks,
        contents: WantedContent,
        applied: AppliedContent,
    ) -> None:
        self._witness = witness
        self._broken = witness.broken
        self._registry = registry
        self._clock = clock
        self._looks = looks
        self._contents = contents
        self._applied = applied

    def admitted(self, operation: Operation, content: Asset, decision: Decision) -> None:
        """I3: an asset that goes first was seen to need nothing, in that same turn."""
        began = self._clock.monotonic() - (self._clock.now() - decision.at) - _ROUNDING
        for id in self._registry.dependencies(content):
            own = self._contents.incarnation(id, operation.governing)
            self._seen(operation, id, began, lambda diff: diff.empty, own)
        self._beyond(operation, content, began)
        effects = None if decision.diff is None else decision.diff.effects
        if effects is None:
            return
        outlives = operation.asset not in self._witness.assets(operation.governing)
        outlives = outlives and "pin" not in decision.evidence
        if effects.capacity is None or effects.capacity > 0:
            addon = self._registry.addon(content, DEPENDS_ON, DependsOn) or DependsOn()
            for name in addon.capacity:
                own = self._contents.incarnation(AssetId(name), operation.governing) if outlives else 0
                self._seen(operation, AssetId(name), began, lambda diff: not _changes(diff, 1), own)
        if effects.capacity is None or effects.capacity < 0:
            for id in self._senders(operation):
                there = id in self._witness.assets(operation.content)
                at = operation.content if there else operation.governing
                self._seen(operation, id, began, lambda diff: not _changes(diff, -1), at)

    def _senders(self, operation: Operation) -> list[AssetId]:
        """Assets that send load to the asset, and are neither removed nor held at something else."""
        found = []
        now = operation.started_at
        for asset in self._witness.assets(operation.governing).values():
            entry = self._witness.ledger.get(asset.id)
            removed = entry is not None and entry.goal is Goal.ABSENT
            pinned = self._witness.active_control(ControlKind.PIN, asset, now) is not None
            if removed or pinned or self._witness.releases.governs(asset.id):
                continue
            addon = self._registry.addon(asset, DEPENDS_ON, DependsOn) or DependsOn()
            if operation.asset in addon.capacity:
                found.append(asset.id)
        return found

    def _beyond(self, operation: Operation, content: Asset, began: float) -> None:
        """I3: what a dependency needs goes first, also where the dependency has nothing to do itself."""
        assets = self._witness.assets(operation.content)
        ahead = list(self._registry.dependencies(content))
        met = {content.id, *ahead}
        for id in ahead:  # which grows
            asset = assets.get(id)
            for further in () if asset is None else self._registry.dependencies(asset):
                if further in assets and further not in met:
                    ahead.append(further)
                    self._in_place(operation, further, began)
                met.add(further)

    def _in_place(self, operation: Operation, id: AssetId, began: float) -> None:
        """I3: an indirect dependency is as the push needs it, by its last turn or by a look."""
        there = id in self._witness.assets(operation.governing)
        if not there and id in self._witness.publications.let_go:
            return  # It is not enforced any more, so nothing would change what it waits for.
        if id in self._witness.open:
            self._broken("I3", f"{operation.asset} is pushed while {id}, which it needs indirectly, is")
            return
        wanted = max(operation.content, self._contents.incarnation(id, operation.governing))
        if id in self._witness.ledger and self._applied.matches(id, wanted, operation.governing):
            return
        looks = [
            look
            for goal in {Goal.PRESENT, self._goal(id, wanted)}
            for look in self._looks.at(id, wanted, goal)
        ]
        if not any(look.at >= began and look.diff.empty for look in looks):
            self._broken(
                "I3", f"{operation.asset} is pushed although {id}, which it needs indirectly, differs"
            )

    def _seen(
        self,
        operation: Operation,
        id: AssetId,
        since: float,
        allows: Callable[[Diff], bool],
        at: int = 0,
    ) -> None:
        """I3: an asset was seen to allow a push, at the content of the push, or later at incarnation `at`."""
        newest, governing = self._witness.assets().get(id), self._witness.assets(operation.governing).get(id)
        if id in self._witness.open:
            self._broken("I3", f"{operation.asset} is pushed while {id}, which goes first, is")
        elif (newest and newest.digest) != (governing and governing.digest):
            self._broken(
                "I3", f"{operation.asset} is pushed although {id}, which has to go first, is another"
            )
        if at and id not in self._witness.assets(at):  # Pinned to nothing: it stays as it is.
            at = operation.governing
        looks = [
            look
            for content in {operation.content, max(operation.content, at)}
            for goal in {Goal.PRESENT, self._goal(id, content)}
            for look in self._looks.at(id, content, goal)
        ]
        if not any(look.at >= since and allows(look.diff) for look in looks):
            self._broken("I3", f"{operation.asset} is pushed although {id} has to go first")

    def _goal(self, id: AssetId, content: int) -> Goal:
        """How far the turndown of an asset has progressed; its production is compared with that."""
        asset, entry = self._witness.assets(content).get(id), self._witness.ledger.get(id)
        turned_down = asset is not None and TURNDOWN in addon_names(asset)
        return entry.goal if turned_down and entry is not None else Goal.PRESENT


def _changes(diff: Diff, sign: int) -> bool:
    """Whether the capacity changes in that direction, or may."""
    capacity = diff.effects.capacity
    return not diff.empty and (capacity is None or capacity * sign > 0)

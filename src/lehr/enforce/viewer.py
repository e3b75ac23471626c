"""A turn's view: intent, controls and turndown of one asset, read once at its beginning."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lehr.base.digest import canonical
from lehr.enforce.ages import Ages
from lehr.enforce.governance import Governance
from lehr.enforce.lookups import Lookups
from lehr.enforce.slot import Slot
from lehr.enforce.state import View
from lehr.enforce.turndown import TurndownInputs, TurndownStage, plan
from lehr.model.addons import TURNDOWN, Turndown
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.diff import Goal
from lehr.model.pinning import NO_HOLDS, Holds, Pinning, applied_content, pin
from lehr.model.types import addon_names
from lehr.sdk.plugin import Fencing
from lehr.sdk.runtime import Runtime

_KEEP = TurndownStage(Goal.PRESENT)
_TURNDOWN = canonical(TURNDOWN)


class Viewer:
    """Makes `View`s. Reads intent, changes nothing."""

    def __init__(
        self,
        runtime: Runtime,
        lookups: Lookups,
        served: frozenset[str],
        needing: Callable[[AssetId, int], list[AssetId]],
    ) -> None:
        """Make views.

        Args:
            served: types that some plugin serves.
            needing: the assets that still need one, as of an incarnation.
        """
        self._lookups = lookups
        self._registry = runtime.registry
        self._clock = runtime.clock
        self._chance = runtime.chance
        self._served = served
        self._needing = needing

    def view(self, slot: Slot, governance: Governance, cause: str, epoch: int) -> View:
        """Intent and controls as they are now for the asset of `slot`.

        Repeatable: draws no chance before everything that it looks up is at hand.

        Raises:
            NeedError: something is not.
        """
        now, governing = self._clock.now(), governance.sequence
        last, came_with = self._last(slot, governing)
        newest = self._last_with(slot.key, came_with, governing) if slot.departed else governing
        holds = governance.holds(last, now)
        pinning = Pinning(newest) if holds == NO_HOLDS else self._pinning(slot, last, newest, holds)
        asset: Asset | None = last
        # To search the bytes takes a tenth of decoding them, and hardly any asset is turned down.
        asked = self._registry.addon(last, TURNDOWN, Turndown) if _TURNDOWN in last.body else None
        turndown = asked
        if pinning.held:
            asset = self._lookups.asset(slot.key, pinning.content) if pinning.content else None
            if asset is None or TURNDOWN not in addon_names(asset):
                turndown = None  # Held at content from before it was asked for: it stays.
        traits = slot.lane.traits
        stage = _KEEP
        if turndown is not None:
            stage = self._turndown_stage(slot, turndown, now, governing, came_with)
        # By position: with the names of all its fields, it would take four times as long.
        return View(
            slot.key,
            now,
            self._clock.monotonic(),
            cause,
            pinning,
            governing,
            asset,
            slot.digest,
            governance.digest,
            governance.controls_version,
            governance.releases.version,
            stage,
            epoch,
            observe=governance.observe(last),
            orphaned=slot.departed and asked is None,
            served=slot.type in self._served,
            jitter=self._chance.uniform(0.0, 1.0),
            removals=governance.removals,
            resync=traits.resync,
            newest=last,
            fenced=traits.fencing is not Fencing.NONE,
        )

    def _pinning(self, slot: Slot, last: Asset, newest: int, holds: Holds) -> Pinning:
        applied = applied_content(slot.state.ledger, last)
        return pin(last, newest, holds, applied=applied, same=self._lookups.same_content)

    def _last(self, slot: Slot, governing: int) -> tuple[Asset, int]:
        if not slot.departed:
            asset = self._lookups.asset(slot.key, governing)
            if asset is not None:
                return asset, governing
        if slot.type:
            found = self._lookups.last_of_type(slot.key, slot.type, governing)
        else:
            found = self._lookups.last(slot.key, governing)
        assert found is not None, f"slot without any version of {slot.key}"
        return found

    def _last_with(self, key: AssetKey, came_with: int, newest: int) -> int:
        """The last incarnation that had an asset that `newest` no longer has.

        Not the one that introduced its last version: what it reads may have changed since, and must
        not go back (invariant I6).
        """
        gone_with = self._lookups.next_change(key, came_with)
        return (newest if gone_with is None else min(gone_with, newest)) - 1

    def _turndown_stage(
        self, slot: Slot, addon: Turndown, now: float, governing: int, came_with: int
    ) -> TurndownStage:
        ages = slot.ages = slot.ages or Ages(self._clock)
        since, ledger = self._asked_since(slot, came_with), slot.state.ledger
        if ledger is not None:
            ledger = replace(ledger, at=ages.since(ledger.goal, ledger.at))
        inputs = TurndownInputs(
            now if since is None else ages.since(TURNDOWN, since),
            slot.lane.traits.goals,
            self._needing(slot.key.id, governing),
            ledger,
        )
        return plan(addon, inputs, now)

    def _asked_since(self, slot: Slot, came_with: int) -> float | None:
        if slot.successor is None:
            return self._lookups.addon_since(slot.key, TURNDOWN)
        # Another asset has its id now, and does not show since when: since its last version, at
        # least.
        header = self._lookups.incarnation(slot.key.partition, came_with)
        return None if header is None else header.created_at

    def entered(self, slot: Slot) -> None:
        """Note the date of the ledger's entry when it is made: later, the clock may have been set."""
        ledger = slot.state.ledger
        if ledger is not None and ledger.goal is not Goal.PRESENT:
            ages = slot.ages = slot.ages or Ages(self._clock)
            ages.since(ledger.goal, ledger.at)

"""Judges turndowns by the clock: how long each stage lasts, and how much is removed in a time."""

from __future__ import annotations

import math

from lehr.base.clock import Clock
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId
from lehr.model.diff import Goal
from lehr.model.governance import DELETION_BUDGET
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.types import addon_names
from lehr.testing.sim.witness import Witness

_ROUNDING = 0.01
_DEFAULT_BUDGET = (20, 3600.0)
"""Removals in so many seconds, where intent names no budget."""

_AT_ONCE = 0.5
"""Seconds within which an entry in the ledger is durable while the store is in order."""


class TurndownJudge:
    """Invariant I4, as far as it takes time."""

    def __init__(self, witness: Witness, clock: Clock) -> None:
        self._witness = witness
        self._broken = witness.broken
        self._clock = clock
        self._removals: dict[str, tuple[float, list[tuple[int, float]]]] = {}
        self._fenced: dict[str, tuple[int, float]] = {}
        self._fenced_at: dict[str, float] = {}

    def admitted(self, operation: Operation) -> None:
        """A push is admitted."""
        if not self._witness.jumped:
            self._check_turndown_age(operation)
            self._within_budget(operation)
        self._check_fence_age(operation)

    def pushed(self, entry: LedgerEntry) -> None:
        """The ledger has this after a push: another push fences it for its full time."""
        self._fenced_at.pop(entry.asset, None)
        self.entered(entry)

    def entered(self, entry: LedgerEntry) -> None:
        """The ledger has this, after a push or without one."""
        if entry.goal is Goal.FENCED:
            self._fenced_at.setdefault(entry.asset, entry.at)
        else:
            self._fenced_at.pop(entry.asset, None)
        self._fenced.pop(entry.asset, None)
        if entry.goal is Goal.FENCED and abs(self._clock.now() - entry.at) < _AT_ONCE:
            self._fenced[entry.asset] = self._witness.lease.epoch, self._clock.monotonic()

    def _check_fence_age(self, operation: Operation) -> None:
        """I4: by a clock that does not jump, as long as one process sees it through."""
        epoch, since = self._fenced.get(operation.asset, (0, 0.0))
        last = self._witness.last(operation.asset)
        addon = None if last is None else self._witness.turndown(last)
        if operation.goal is not Goal.ABSENT or epoch != operation.epoch or addon is None:
            return
        stood = self._clock.monotonic() - since
        if stood < addon.fence_seconds - _AT_ONCE:
            self._broken("I4", f"{operation.asset} is removed {stood:.1f} s after it was fenced")

    def _check_turndown_age(self, operation: Operation) -> None:
        """I4: a turndown is old enough before anything is touched."""
        last = self._witness.last(operation.asset)
        addon = None if last is None else self._witness.turndown(last)
        if operation.goal is Goal.PRESENT or addon is None:
            return
        due = self._asked_since(operation.asset) + addon.stand_seconds
        if operation.started_at < due - _ROUNDING:
            self._broken("I4", f"{operation.asset} goes to {operation.goal} before its turndown is due")

    def late(self, asset: Asset) -> float:
        """Seconds since when a turndown could have gone further, by time alone; below 0 if it cannot yet."""
        addon = self._witness.turndown(asset)
        if addon is None:
            return -math.inf
        now, due = self._clock.now(), self._asked_since(asset.id) + addon.stand_seconds
        # Since its last push: whatever is entered again without one, also by another process,
        # restarts nothing.
        fenced = self._fenced_at.get(asset.id)
        return now - (due if fenced is None else max(due, fenced + addon.fence_seconds))

    def _asked_since(self, id: str) -> float:
        """Since when intent has asked for the turndown of an asset without a break."""
        since = self._clock.now()
        for sequence in sorted(self._witness.incarnations, reverse=True):
            published = self._witness.incarnations[sequence]
            asset = published.assets.get(AssetId(id))
            if asset is not None and TURNDOWN not in addon_names(asset):
                break
            since = published.header.created_at if asset is not None else since
        return since

    def has_room(self, id: str, goal: Goal) -> bool:
        """Whether the limits that admission alone counts let a push of an asset begin now."""
        if self._witness.capacity is not None and len(self._witness.open) >= self._witness.capacity:
            return False
        others = [at for other, (at, _then) in self._removals.items() if other != id]
        now = self._clock.now()
        return goal is not Goal.ABSENT or all(
            sum(1 for at in others if at > now - seconds) < removals for removals, seconds in self._budgets()
        )

    def _budgets(self) -> list[tuple[int, float]]:
        declared = self._witness.payloads(DELETION_BUDGET).values()
        return [(item["removals"], item["per_seconds"]) for item in declared] or [_DEFAULT_BUDGET]

    def _within_budget(self, operation: Operation) -> None:
        """I4: only so much is removed in so long a time."""
        if operation.goal is not Goal.ABSENT:
            return
        budgets = self._budgets()
        latest = max(operation.started_at, *(at for at, _then in self._removals.values()), 0.0)
        others = [item for id, item in self._removals.items() if id != operation.asset]
        for removals, seconds in budgets:
            # Starts counted for less time, before this budget existed, may be forgotten.
            since = latest - seconds + _ROUNDING
            if sum(1 for at, then in others if at > since and (removals, seconds) in then) >= removals:
                budget = f"{removals} in {seconds:g} s"
                self._broken("I4", f"{operation.asset} is removed beyond a budget of {budget}")
        self._removals[operation.asset] = operation.started_at, budgets

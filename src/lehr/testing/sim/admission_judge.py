"""Judges admissions from outside: a push has the right content, and nothing forbids it."""

from __future__ import annotations

from collections.abc import Callable

from lehr.base.digest import Digest
from lehr.model.asset import Asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Decision
from lehr.model.diff import Goal
from lehr.model.operation import Operation, Purpose
from lehr.testing.sim.monitor_judge import MonitorJudge
from lehr.testing.sim.release_judge import ReleaseJudge
from lehr.testing.sim.witnessed_state import WitnessedState, is_active

_ROUNDING = 0.001
"""Seconds by which sums of times may differ."""

_STAGES = (Goal.PRESENT, Goal.DRAINED, Goal.FENCED, Goal.ABSENT)


class AdmissionJudge:
    """Invariants I1, I3, I4, I6 and I10 of each operation, by the state when it is admitted.

    Attributes:
        monitors: the answers that monitors got; None where nothing judges them.
    """

    def __init__(
        self, broken: Callable[[str, str], None], state: WitnessedState, releases: ReleaseJudge
    ) -> None:
        """`broken` is called with the rule and what breaks it."""
        self.monitors: MonitorJudge | None = None
        self._broken = broken
        self._state = state
        self._releases = releases
        self._applied: dict[str, int] = {}

    def admitted(self, operation: Operation, decision: Decision | None) -> Asset | None:
        """An operation is admitted: the asset whose content it pushes, if that is certain."""
        asset = self._content_of(operation, pinned=decision is not None and "pin" in decision.evidence)
        if asset is not None:
            self._held(operation, asset)
            self._taken_out(operation, asset)
            self._goes_on(operation, asset)
        self._approved(operation, decision)
        return asset

    def goes_back(self, of: Operation | Decision, content_digest: Digest) -> bool:
        """Whether this is older content than what is in place: calendars and rate limits never delay it."""
        entry = self._state.ledger.get(of.asset)
        if entry is None:
            return False
        older = of.content < entry.content
        same = entry.goal is of.goal and content_digest == entry.content_digest
        if self._releases.takes_back(of.asset) and (older or same):
            return True  # also where pushes of the newer content have failed half-way
        return entry.goal is of.goal and older and content_digest != entry.content_digest

    def _content_of(self, operation: Operation, *, pinned: bool) -> Asset | None:
        """The asset whose content is pushed; it must be the current one."""
        id, last = operation.asset, self._state.last(operation.asset)
        assert last is not None
        if pinned and self._state.pin_may_have_ended(last):
            return None  # whether the pin is active depends on the moment
        content = self._state.assets(operation.content).get(id)
        pin = self._state.active_control(ControlKind.PIN, last, operation.started_at)
        if content is None:
            self._broken("I1", f"{id} is pushed from {operation.content}, which does not have it")
            return None
        if self._releases.governs(id):
            self._as_released(operation, pin)
            return content
        if pin is not None and operation.content != pin.incarnation:
            self._broken("I6", f"{id} is pinned to {pin.incarnation} and pushed from {operation.content}")
        if pin is None:
            if operation.purpose is Purpose.ROLLBACK:
                self._broken("I6", f"{id} is rolled back without a pin")
            if content.digest != last.digest:
                self._broken("I1", f"{id} is pushed from {operation.content}, which is not its content")
            if operation.content < self._applied.get(id, 0):
                self._broken(
                    "I6", f"{id} goes back from {self._applied[id]} to {operation.content} without a pin"
                )
            self._applied[id] = operation.content
        return content

    def _as_released(self, operation: Operation, pin: Control | None) -> None:
        """I10: content that is not released is never pushed; a pin goes back further, and never ahead."""
        id, content = operation.asset, operation.content
        self._applied[id] = content
        back = pin is not None and content == pin.incarnation and content <= self._releases.base(id)
        if not back and not self._releases.allows(id, content):
            self._broken("I10", f"{id} is pushed from {content}, which is not released to it")

    def _held(self, operation: Operation, content: Asset) -> None:
        id, now = operation.asset, operation.started_at
        last = self._state.last(id)
        assert last is not None
        for asset, kind, type in (
            (last, ControlKind.PAUSE, "lehr.ObserveOnly"),
            (last, ControlKind.FREEZE, "lehr.Freeze"),
            (content, ControlKind.FREEZE, "lehr.Freeze"),
        ):
            if (found := self._state.active_control(kind, asset, now)) is not None:
                self._broken("I3", f"{id} is pushed while control {found.id} is active")
            if self._state.declared(type, asset, now):
                self._broken("I3", f"{id} is pushed while a {type} selects it")
        if self._state.jumped or self.goes_back(operation, operation.content_digest):
            return
        if closed := self._state.closed(last, now):
            self._broken("I3", f"{id} is pushed while {closed[0]} is closed")
        monitors = self._state.payloads("lehr.Monitor")
        if self.monitors is not None and (bad := self.monitors.closed(last, monitors)):
            self._broken("I3", f"{id} is pushed while {bad[0]} has no good answer")

    def _taken_out(self, operation: Operation, content: Asset) -> None:
        id, goal, now = operation.asset, operation.goal, operation.started_at
        if goal is Goal.PRESENT:
            return
        addon = self._state.turndown(content)
        if addon is None:
            self._broken("I4", f"{id} goes to {goal} although content {operation.content} asks for none")
            return
        if self._state.referrers(id):
            self._broken("I4", f"{id} goes to {goal} although {self._state.referrers(id)} refer to it")
        if goal is Goal.ABSENT and not self._state.jumped:
            entry, last = self._state.ledger.get(id), self._state.last(id)
            # The newest intent for it decides how long it stays fenced, also where a pin holds it.
            addon = (None if last is None else self._state.turndown(last)) or addon
            if (
                entry is not None
                and entry.goal is Goal.FENCED
                and now < entry.at + addon.fence_seconds - _ROUNDING
            ):
                self._broken("I4", f"{id} is removed before its fence is old enough")

    def _goes_on(self, operation: Operation, content: Asset) -> None:
        """I4: what is turned down, and no longer needed, goes from stage to stage and never back."""
        id, entry = operation.asset, self._state.ledger.get(operation.asset)
        last = self._state.last(id)
        newest, turndown = self._state.newest, self._state.turndown
        overtaken = newest is None or operation.governing != newest.header.sequence
        leaves = last is not None and all(turndown(asset) is not None for asset in (content, last))
        if entry is None or overtaken or not leaves or self._state.referrers(id):
            return
        if _STAGES.index(operation.goal) < _STAGES.index(entry.goal):
            self._broken("I4", f"{id} goes back from {entry.goal} to {operation.goal}")

    def _approved(self, operation: Operation, decision: Decision | None) -> None:
        diff = None if decision is None else decision.diff
        if diff is None or not diff.effects.destructive or operation.goal is not Goal.PRESENT:
            return
        if not any(
            item.kind is ControlKind.APPROVAL
            and item.selector.ids == (operation.asset,)
            and item.diff_digest == diff.digest()
            and is_active(item, operation.started_at)
            for item in self._state.controls.values()
        ):
            self._broken("I4", f"{operation.asset} is destroyed without an approval")

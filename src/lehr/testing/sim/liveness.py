"""Rules between one write and another, which no single write shows.

The witness judges a write by the state when it is written. This module remembers what was looked
at, what failed and when things began, and judges by that.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn
from lehr.model.asset import Asset, AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Decision, Status
from lehr.model.diff import Diff, Goal, Target
from lehr.model.governance import DELETION_BUDGET
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.reason import Reason
from lehr.model.types import Registry, addon_names
from lehr.model.writes import (
    Admit,
    Adopt,
    Finish,
    LiftControl,
    Publish,
    RecordDecision,
    Refused,
    SetControl,
    TakeLease,
    Write,
)
from lehr.testing.sim.production import Production
from lehr.testing.sim.things import intended_value
from lehr.testing.sim.witness import Witness

_ROUNDING = 0.01
_LEAST_PAUSE = 0.5
_LONGEST_PAUSE = 150.0
_REMEMBERED = 30.0
"""Seconds for which every look is remembered."""

_DEFAULT_BUDGET = (20, 3600.0)
"""Removals in so many seconds, where intent names no budget."""

_AT_ONCE = 0.5
"""Seconds within which an entry in the ledger is durable while the store is in order."""

_CHANGES = (Publish, SetControl, LiftControl)
"""Writes after which a failed push may be tried again immediately."""

Place = tuple[str, int, str]
"""An asset, the incarnation that it was compared with, and the goal."""


class _Look(msgspec.Struct, frozen=True):
    at: float
    diff: Diff


class LivenessChecker:
    """Remembers, and reports broken rules to the witness.

    Attributes:
        began: when the last push of each asset was begun by its turn, in wall-clock seconds.
        asked_again: when a person asked last for a retry of each asset, likewise.
    """

    def __init__(self, witness: Witness, production: Production, registry: Registry, clock: Clock) -> None:
        self._witness = witness
        self._broken = witness.broken
        self._production = production
        self._registry = registry
        self._clock = clock
        self._looks: dict[Place, deque[_Look]] = {}
        self._matched: set[Place] = set()
        self._failures: Counter[tuple[str, str, str]] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._told_until: dict[str, float] = {}
        self._failed_at: dict[tuple[str, str, str], float] = {}
        self._pardoned: set[str] = set()
        self._excused: set[str] = set()
        self._stalled: dict[str, tuple[Digest, Digest, Goal]] = {}
        self._wanted: dict[str, str | None] = {}
        self.began: dict[str, float] = {}
        self.asked_again: dict[str, float] = {}
        self._removals: dict[str, tuple[float, list[tuple[int, float]]]] = {}
        self._fenced: dict[str, tuple[int, float]] = {}
        self._fenced_at: dict[str, float] = {}
        self._released_at: dict[str, tuple[object, ...]] = {}
        production.looked = self._looked
        production.carries = self._carries
        self._judges: dict[type, Callable[[Any, Any], None]] = {
            Admit: lambda write, answer: self._admitted(write) if answer is None else None,
            Adopt: lambda write, answer: self._found(write.ledger),
            Finish: lambda write, answer: self._finished(write),
            RecordDecision: lambda write, answer: self._recorded(write.decision),
            **dict.fromkeys(_CHANGES, lambda write, answer: self.forget_failures()),
            TakeLease: lambda write, answer: None if isinstance(answer, Refused) else self.forget_failures(),
        }

    def committed(self, write: Write, answer: Any) -> None:
        """This write has become durable, and the witness does not know yet."""
        judge = self._judges.get(type(write))
        if judge is not None:
            judge(write, answer)

    def forget_failures(self) -> None:
        """Something has changed that may let failed pushes be tried again immediately."""
        self._failures.clear()
        self._stalled.clear()

    def retried(self) -> None:
        """A person asks that failed pushes be tried again immediately, including those yet to fail."""
        self.forget_failures()
        self._pardoned = {*self._witness.decisions, *self._witness.assets()}

    # --- calls to production --------------------------------------------------------------

    def _looked(self, target: Target, diff: Diff) -> None:
        place = (target.id, target.incarnation, str(target.goal))
        self._looks.setdefault(place, deque(maxlen=16)).append(_Look(self._clock.monotonic(), diff))
        if diff.empty:
            self._matched.add(place)

    def _carries(self, target: Target, operation: Operation, value: Any) -> None:
        """I1: what a push carries out matches its content, and that of what it reads."""
        assets = self._witness.assets(operation.content)
        if target.goal is Goal.PRESENT and target.id in assets and operation.id in self._wanted:
            wanted = self._wanted.pop(operation.id)
            if value != wanted:
                self._broken("I1", f"{target.id} becomes {value!r}; its content is {wanted!r}")

    # --- pushes -----------------------------------------------------------------------------

    def _admitted(self, write: Admit) -> None:
        operation, decision = write.operation, write.decision
        self.began[operation.asset] = operation.started_at
        if self._witness.releases.governs(operation.asset):
            self._released_at[operation.id] = self._holds
        if decision is None:
            return  # which the witness reports
        content = self._witness.assets(operation.content).get(operation.asset)
        if operation.goal is Goal.PRESENT and not self._witness.jumped:
            at = operation.started_at
            wanted = self.wanted(operation.asset, operation.content, operation.governing, at)
            self._wanted[operation.id] = wanted
        self._check_stall_holds(operation)
        if decision.diff is not None and decision.diff.look_again is not None:
            self._broken("I9", f"{operation.asset} is pushed although it recovers automatically")
        if not self._witness.jumped:
            self._pauses(operation)
            self._check_turndown_age(operation)
            self._within_budget(operation)
            if operation.goal is Goal.PRESENT and content is not None:
                self._in_order(operation, content, decision)
        self._check_fence_age(operation)

    def _check_stall_holds(self, operation: Operation) -> None:
        """I8: a diff reported to need a person or a change is not pushed without one."""
        pushed = operation.diff_digest, operation.content_digest, operation.goal
        if self._stalled.pop(operation.asset, None) == pushed:
            self._broken("I8", f"{operation.asset} is reported as stalled, and is pushed without a change")

    def _stalls(self, decision: Decision) -> None:
        condition, content = decision.condition, decision.evidence.get("content_digest")
        if condition.status.settled:
            self._stalled.pop(decision.asset, None)
        if decision.asset in self._excused:
            self._excused.discard(decision.asset)  # The retry that was asked for during its push comes next.
            return
        pushes = (
            condition.reason in (Reason.PUSH_STALLED, Reason.PUSHED_STILL_DIFFERENT)
            and not condition.automatic
        )
        if pushes and decision.diff is not None and content is not None:
            self._stalled[decision.asset] = decision.diff.digest(), content, decision.goal

    def _pauses(self, operation: Operation) -> None:
        """I9: a failing push is tried ever less often. A push of other content in between starts over."""
        key = (operation.asset, operation.content_digest, str(operation.goal))
        for other in [other for other in self._failures if other[0] == operation.asset and other != key]:
            del self._failures[other]
        times = self._failures[key]
        if not times:
            return
        pause = min(_LEAST_PAUSE * 2 ** (times - 1), _LONGEST_PAUSE)
        waited = operation.started_at - self._failed_at[key]
        if waited < pause - _ROUNDING:
            self._broken(
                "I9", f"{operation.asset} failed {times} times, and is tried again after {waited:.2f} s"
            )

    def _finished(self, write: Finish) -> None:
        operation, result = self._witness.operation(write.operation), write.outcome.result
        if operation is None or result is Result.UNKNOWN:
            return
        held = self._released_at.pop(operation.id, None)
        if held == self._holds:
            self._stops_for_unreleased(operation, write.outcome.message)
        key = (operation.asset, operation.content_digest, str(operation.goal))
        if result is Result.DONE and write.ledger is None:
            self._broken("I12", f"{operation.asset} is pushed, and the ledger does not know")
        if result is Result.DONE and write.outcome.message and write.ledger is not None:
            self._found(write.ledger)
        if write.ledger is not None:
            self._fenced_at.pop(operation.asset, None)  # another push fences it for its full time
            self._enter(write.ledger)
        self._in_a_row[operation.asset] += result in (Result.FAILED, Result.STALLED)
        self._told_until[operation.asset] = write.outcome.retry_at or 0.0
        pardoned = operation.asset in self._pardoned
        self._pardoned.discard(operation.asset)
        if pardoned:
            self._excused.add(operation.asset)
        overtaken = write.outcome.message == "superseded" or self._overtaken(operation)
        overtaken = overtaken or (held is not None and held != self._holds)
        left_behind = self._left_behind(operation)
        if result is not Result.FAILED or overtaken or pardoned or left_behind:
            self._failures.pop(key, None)
            return
        self._failures[key] += 1
        self._failed_at[key] = write.at

    @property
    def _holds(self) -> tuple[object, ...]:
        """The releases and controls that keep assets from newer content now."""
        return self._witness.releases.version, frozenset(self._witness.controls)

    def _stops_for_unreleased(self, operation: Operation, message: str) -> None:
        """I10: newer content stops a push of released content only once it is released as well."""
        newest = max(self._witness.incarnations, default=0)
        if message == "superseded" and self.content_of(operation.asset, newest) == operation.content:
            self._broken("I10", f"a push of {operation.asset} stops for content that is not released to it")

    def _left_behind(self, operation: Operation) -> bool:
        """Whether another process took over, found the push still running, and continues without its outcome.

        The push may end between that answer and the write.
        """
        late = operation.epoch < self._witness.lease.epoch
        return late and operation.id in self._production.found_running

    def _overtaken(self, operation: Operation) -> bool:
        """Whether newer content arrived since, which gets its turn immediately; it may be the same again."""
        incarnations, id = self._witness.incarnations, operation.asset
        newer = (incarnations[sequence] for sequence in incarnations if sequence > operation.governing)
        began = self._witness.assets(operation.governing).get(id)
        return any((found := item.assets.get(id)) is None or found != began for item in newer)

    def _comes_in_time(self, decision: Decision) -> None:
        """I7: an asset that has failed only a few times is tried again soon."""
        condition = decision.condition
        if condition.reason != Reason.PUSH_FAILED or condition.next_at is None or self._witness.jumped:
            return
        times = self._in_a_row[decision.asset]
        latest = max(decision.at + 2.0 ** (times - 1), self._told_until.get(decision.asset, 0.0))
        if condition.next_at > latest + _ROUNDING:
            waits = condition.next_at - decision.at
            self._broken("I7", f"{decision.asset} failed {times} times, and is tried again in {waits:.1f} s")

    def _recorded(self, decision: Decision) -> None:
        self._comes_in_time(decision)
        self._stalls(decision)
        age = self._clock.now() - decision.at  # it is written late while the store is out of order
        if decision.condition.status is Status.CONVERGED and not self._witness.jumped and age < _REMEMBERED:
            since = self._clock.monotonic() - age - _ROUNDING
            looks = self._looks.get((decision.asset, decision.content, str(decision.goal)), ())
            if not any(look.at >= since and look.diff.empty for look in looks):
                self._broken("I8", f"{decision.asset} is reported as intended without a look")
        if decision.condition.status.settled:
            self._in_a_row.pop(decision.asset, None)
            for key in [key for key in self._failures if key[0] == decision.asset]:
                del self._failures[key]

    # --- the ledger ---------------------------------------------------------------------------

    def _found(self, entry: LedgerEntry) -> None:
        """I12: a ledger's state without a push was seen in production."""
        if (entry.asset, entry.content, str(entry.goal)) not in self._matched:
            self._broken("I12", f"the ledger has {entry.content} of {entry.asset}, which no look has seen")
        self._failures = Counter({key: n for key, n in self._failures.items() if key[0] != entry.asset})
        self._enter(entry)

    def _enter(self, entry: LedgerEntry) -> None:
        if entry.goal is Goal.FENCED:
            self._fenced_at.setdefault(entry.asset, entry.at)
        else:
            self._fenced_at.pop(entry.asset, None)
        self._fenced.pop(entry.asset, None)
        if entry.goal is Goal.FENCED and abs(self._clock.now() - entry.at) < _AT_ONCE:
            self._fenced[entry.asset] = self._witness.lease.epoch, self._clock.monotonic()

    # --- turndown -------------------------------------------------------------------------------

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

    # --- order -------------------------------------------------------------------------------------

    def _in_order(self, operation: Operation, content: Asset, decision: Decision) -> None:
        """I3: an asset that goes first was seen to need nothing, in that same turn."""
        began = self._clock.monotonic() - (self._clock.now() - decision.at) - _ROUNDING
        for id in self._registry.dependencies(content):
            own = self.content_of(id, operation.governing)
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
                own = self.content_of(AssetId(name), operation.governing) if outlives else 0
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
        if id in self._witness.let_go and id not in self._witness.assets(operation.governing):
            return  # It is not enforced any more, so nothing would change what it waits for.
        if id in self._witness.open:
            self._broken("I3", f"{operation.asset} is pushed while {id}, which it needs indirectly, is")
            return
        wanted = max(operation.content, self.content_of(id, operation.governing))
        entry = self._witness.ledger.get(id)
        if entry is not None and self._same(id, wanted, entry):
            return
        looks = [
            look
            for goal in {Goal.PRESENT, self._goal(id, wanted)}
            for look in self._looks.get((id, wanted, str(goal)), ())
        ]
        if not any(look.at >= began and look.diff.empty for look in looks):
            self._broken(
                "I3", f"{operation.asset} is pushed although {id}, which it needs indirectly, differs"
            )

    def content_of(self, id: AssetId, governing: int, at: float | None = None) -> int:
        """The incarnation whose content an asset has while `governing` is the newest; 0 if it is gone."""
        asset = self._witness.assets(governing).get(id)
        if asset is None:
            return 0
        pin = self._witness.active_control(ControlKind.PIN, asset, self._clock.now() if at is None else at)
        pinned = governing if pin is None else pin.incarnation or 0
        if self._witness.releases.governs(id):
            return self._witness.releases.content(id, min(pinned, governing))
        return pinned

    def wanted(self, id: str, content: int, governing: int, at: float | None = None) -> str | None:
        """Intended production of a thing with the content of incarnation `content`; None if it has none.

        It reads others as their own pins and releases allow.
        """
        assets = self._witness.assets(content)

        def read(other: str) -> Asset:
            return self._witness.assets(self.content_of(AssetId(other), governing, at) or content)[other]

        try:
            return intended_value(assets, id, self._registry, read)
        except KeyError:
            return None

    def _same(self, id: AssetId, sequence: int, entry: LedgerEntry) -> bool:
        """Whether a ledger's entry is of the content that incarnation `sequence` has."""
        now, then = self._witness.assets(sequence), self._witness.assets(entry.content)
        if id not in now or id not in then:
            return id not in now
        # Where something holds what it reads, the contents of the two incarnations do not matter.
        reads = [
            name
            for name in now[id].document()["payload"].get("reads", ())
            if self.content_of(AssetId(name), sequence) == sequence
        ]
        return all(_digest(now, name) == _digest(then, name) for name in (id, *reads))

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
            for look in self._looks.get((id, content, str(goal)), ())
        ]
        if not any(look.at >= since and allows(look.diff) for look in looks):
            self._broken("I3", f"{operation.asset} is pushed although {id} has to go first")

    def _goal(self, id: AssetId, content: int) -> Goal:
        """How far the turndown of an asset has progressed; its production is compared with that."""
        asset, entry = self._witness.assets(content).get(id), self._witness.ledger.get(id)
        turned_down = asset is not None and TURNDOWN in addon_names(asset)
        return entry.goal if turned_down and entry is not None else Goal.PRESENT


def _digest(assets: Mapping[str, Asset], id: str) -> Digest | None:
    return None if (asset := assets.get(id)) is None else asset.digest


def _changes(diff: Diff, sign: int) -> bool:
    """Whether the capacity changes in that direction, or may."""
    capacity = diff.effects.capacity
    return not diff.empty and (capacity is None or capacity * sign > 0)

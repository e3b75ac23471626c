"""Which plans cannot change what happens, and why. Pure.

A rule explains why a plan need not be played; or gives it a key, and of the plans with one key the
first is played. The basis of the rules: a control plane that is killed leaves nothing but its
writes and production, so at equal states equal things happen afterwards. For a control plane that
is replaced while it runs, the pushes under way also belong to the state.

A test plays samples of pruned plans, and finds them like the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec

from lehr.sdk.plugin import Fencing
from lehr.testing.sim.plans.plan import Fault, FaultPlan, Point, Reference, Where


class Pruned(msgspec.Struct, frozen=True):
    """Plans divided.

    Attributes:
        played: those that are left.
        pruned: (plan, reason) of the others.
        states: number of different states in which the faults of those strike.
    """

    played: tuple[FaultPlan, ...]
    pruned: tuple[tuple[FaultPlan, str], ...]
    states: int


class Points:
    """The points of a reference, by kind and number."""

    def __init__(self, reference: Reference) -> None:
        self.all = reference.points
        self.fencing = reference.fencing
        self._by_place = {(point.where, point.number): point for point in reference.points}

    def of(self, plan: FaultPlan) -> Point:
        """Where the fault of `plan` strikes."""
        return self._by_place[plan.where, plan.number]

    def commits(self, first: int, last: int) -> list[Point]:
        """From one commit to another, both included."""
        return [self._by_place[Where.COMMIT, number] for number in range(first, last + 1)]


Rule = Callable[[FaultPlan, Points], str | None]
Key = Callable[[FaultPlan, Points], Hashable | None]


def no_second_plane(plan: FaultPlan, points: Points) -> str | None:
    """Without native fencing, another control plane starts only when the first has ended."""
    if plan.fault not in (Fault.SECOND, Fault.HELD) or points.fencing is Fencing.NATIVE:
        return None
    return "two control planes at once need a provider with native fencing"


def nothing_missed(plan: FaultPlan, points: Points) -> str | None:
    """Stale reads miss nothing if the unseen writes are never read."""
    if plan.fault is not Fault.STALE:
        return None
    window = points.commits(plan.since, plan.number - 1)
    return None if any(point.moves for point in window) else "stale reads would miss nothing"


def nothing_halved(plan: FaultPlan, points: Points) -> str | None:
    """A push that has one part only is either applied, or fails."""
    if plan.fault is not Fault.PARTIAL:
        return None
    (id,) = points.of(plan).ids
    writes = [item for item in points.all if item.where is Where.WRITE and id in item.ids]
    write = next((item for item in writes if item.at >= points.of(plan).at), None)
    return "the push has one part only" if write is not None and not write.divisible else None


def woken_anyway(plan: FaultPlan, points: Points) -> str | None:
    """An event is not missed where another one at the same instant wakes the same assets."""
    if plan.fault is not Fault.LOST:
        return None
    lost = points.of(plan)
    others = [item for item in points.all if item.where is Where.EVENT and item.number != lost.number]
    same = any(item.at == lost.at and item.ids and set(lost.ids) <= set(item.ids) for item in others)
    return "another event wakes the same assets at the same instant" if lost.ids and same else None


def killed_at(plan: FaultPlan, points: Points) -> Hashable | None:
    """A control plane that is killed leaves the state, and nothing else."""
    if plan.fault not in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        return None
    point = points.of(plan)
    return "crash", point.step, point.before if plan.fault is Fault.CRASH_BEFORE else point.after


def replaced_at(plan: FaultPlan, points: Points) -> Hashable | None:
    """Replaced or hurried at an equal state, at the same kind of point, with as many pushes under way."""
    if plan.fault not in (Fault.SECOND, Fault.HELD, Fault.EARLY):
        return None
    point = points.of(plan)
    return plan.fault, point.where, point.step, point.before, point.after, point.busy


def read_at(plan: FaultPlan, points: Points) -> Hashable | None:
    """The same damage to the same revision, read at an equal state."""
    if plan.where is not Where.READ:
        return None
    point = points.of(plan)
    return plan.fault, plan.path, point.step, point.before, point.revision


RULES: tuple[Rule, ...] = (no_second_plane, nothing_missed, nothing_halved, woken_anyway)
KEYS: tuple[tuple[Key, str], ...] = (
    (killed_at, "another crash leaves the same state"),
    (replaced_at, "the same happens at the same state"),
    (read_at, "the same damage was read at the same state"),
)


def prune(plans: Sequence[FaultPlan], reference: Reference) -> Pruned:
    """Divide `plans` into those to be played and those that cannot change what happens."""
    points = Points(reference)
    seen: set[Hashable] = set()
    played, pruned = [], []
    for plan in plans:
        reason = _reason(plan, points, seen)
        if reason is None:
            played.append(plan)
        else:
            pruned.append((plan, reason))
    states = {points.of(plan).before for plan in played} | {points.of(plan).after for plan in played}
    return Pruned(tuple(played), tuple(pruned), len(states))


def _reason(plan: FaultPlan, points: Points, seen: set[Hashable]) -> str | None:
    for rule in RULES:
        if (reason := rule(plan, points)) is not None:
            return reason
    for key, reason in KEYS:
        found = key(plan, points)
        if found is not None:
            if found in seen:
                return reason
            seen.add(found)
    return None

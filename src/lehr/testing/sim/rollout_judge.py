"""Judges rollouts from outside, by code of its own: how far they are, what is proven, and what goes back."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec

from lehr.model.asset import Asset
from lehr.model.decision import Decision, Status
from lehr.model.diff import Goal
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Fact,
    Looked,
    RolloutCommand,
    RolloutEnd,
    Updated,
    Validated,
    WentBack,
    Withdrawn,
)
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.operation import LedgerEntry
from lehr.model.release import Release, ReleaseKind
from lehr.model.writes import WriteReleases
from lehr.testing.sim.release_judge import ReleaseJudge, content_of
from lehr.testing.sim.rollout_views import Alike, View, leaves, recent
from lehr.testing.sim.witnessed_state import WitnessedState

_ROUNDING = 0.05


class _Rollout(msgspec.Struct):
    """A rollout; times are monotonic seconds.

    Attributes:
        updated: units that have the content, in the order in which they got it.
        proven: when each of them was first seen in order with the target's content.
        adopted: those of them that had it already, without a push.
        begun_at: by the wall clock.
        emergency: the reason of its emergency.
    """

    policy: str
    target: int
    begun_at: float = 0.0
    emergency: str = ""
    updated: dict[str, None] = msgspec.field(default_factory=dict)
    proven: dict[str, float] = msgspec.field(default_factory=dict)
    adopted: set[str] = msgspec.field(default_factory=set)
    released: set[str] = msgspec.field(default_factory=set)
    promoted: set[str] = msgspec.field(default_factory=set)
    over: bool = False


class RolloutJudge:
    """All rollouts.

    A unit counts as proven as soon as some incarnation that the program may take for the newest allows it.
    """

    def __init__(
        self,
        broken: Callable[[str, str], None],
        state: WitnessedState,
        releases: ReleaseJudge,
        monotonic: Callable[[], float],
    ) -> None:
        """Judge by what the witness knows: `state`, and the releases before each write."""
        self._broken = broken
        self._state = state
        self._releases = releases
        self._monotonic = monotonic
        self._alike = Alike(state.assets, content_of)
        self._rollouts: dict[str, _Rollout] = {}
        self._good: dict[str, int] = {}
        self._applied: dict[str, set[int]] = {}
        self._pushed: dict[str, int] = {}
        self._completed: list[tuple[_Rollout, float]] = []

    def pushed(self, id: str, content: int) -> None:
        """A push of an asset's content of an incarnation begins."""
        self._pushed[id] = content

    def published(self) -> None:
        """A policy that comes back in an incarnation finds units that are in order already."""
        self._look_around()

    def members(self, policy: str) -> list[str]:
        """The assets that a policy governs in the newest incarnation."""
        return [id for view in self._views(policy)[:1] for unit in view.units for id in view.members(unit)]

    def behind(self, policy: str) -> list[str]:
        """Those of them whose newest content is not released to them."""
        newest = self._state.assets()
        views = self._views(policy)[:1]
        return [id for view in views for unit in view.units for id in view.wanting(unit, newest)]

    # --- what is written --------------------------------------------------------------------

    def written(self, write: WriteReleases, answer: object) -> None:
        """This write was carried out, or refused. The judge of releases does not know of it yet."""
        if answer is not None:
            return
        self._look_around()
        for item in write.evidence:
            if isinstance(item.fact, Begun):
                begun = _Rollout(item.policy, item.fact.target, item.at, item.fact.emergency)
                self._rollouts[item.rollout] = begun
            elif (rollout := self._rollouts.get(item.rollout)) is not None:
                self._learned(rollout, item.fact, item.at)
                if isinstance(item.fact, Ended) and item.fact.how is RolloutEnd.COMPLETED:
                    self._completed.append((rollout, item.at))
        for release in write.releases:
            self._released(release)

    def _learned(self, rollout: _Rollout, fact: Fact, at: float) -> None:
        match fact:
            case Updated():
                self._updated(rollout, fact, at)
            case Withdrawn(units=units) | WentBack(units=units):
                for unit in units:
                    rollout.updated.pop(unit, None)
            case Looked():
                self._looked(rollout, fact)
            case Validated(units=units):
                for unit in units:
                    if unit not in rollout.proven:
                        self._broken("I10", f"{unit} is validated, and was not good since its push")
            case Commanded(command=RolloutCommand.PROMOTE):
                rollout.promoted |= rollout.updated.keys()
            case Ended():
                rollout.over = True

    def _released(self, release: Release) -> None:
        rollout = self._rollouts.get(release.rollout)
        if release.target is not None and release.kind is ReleaseKind.BASELINE:
            self._applied.setdefault(release.asset, set()).add(release.target)
        if rollout is None or release.target is None:
            return
        if release.kind is ReleaseKind.ROLLBACK:
            had = self._applied.get(release.asset, ())
            stays_away = self._is_absent(release.asset) and self._leaves_at(release.asset, release.target)
            if not stays_away and not any(
                self._alike.at(release.asset, release.target, before) for before in had
            ):
                self._broken("I6", f"{release.asset} goes back to {release.target}, which it never had")
        elif release.target == rollout.target and release.asset not in rollout.released:
            self._broken("I10", f"{release.asset} is released, and its rollout has no evidence of it")

    def _is_absent(self, id: str) -> bool:
        entry = self._state.ledger.get(id)
        return entry is not None and entry.goal is Goal.ABSENT

    def _leaves_at(self, id: str, sequence: int) -> bool:
        return leaves(self._state.assets(sequence).get(id))

    def entered(self, entry: LedgerEntry) -> None:
        """The ledger has an entry of what was applied or found."""
        self._applied.setdefault(entry.asset, set()).add(entry.content)
        self._look_around()

    def decided(self, decision: Decision) -> None:
        """A look at an asset: it proves its content if nothing differs."""
        good = decision.condition.status in (Status.CONVERGED, Status.TURNED_DOWN)
        self._good.pop(decision.asset, None)
        if good:
            self._good[decision.asset] = decision.content
            # Other assets may be as before, so that production had this content without an entry of it.
            self._applied.setdefault(decision.asset, set()).add(decision.content)
            self._look_around()

    # --- what is proven ---------------------------------------------------------------------

    def _look_around(self) -> None:
        """Note which units are in order now."""
        for rollout in self._rollouts.values():
            waiting = [unit for unit in rollout.updated if unit not in rollout.proven]
            if not rollout.over and waiting:
                self._prove(rollout, waiting)

    def _prove(self, rollout: _Rollout, units: list[str]) -> None:
        views = self._views(rollout.policy)
        for unit in units:
            if any(self._is_proven(view.members(unit), rollout) for view in views):
                rollout.proven[unit] = self._monotonic()
                if any(self._is_adopted(view.members(unit), rollout) for view in views):
                    rollout.adopted.add(unit)

    def _is_proven(self, members: Collection[str], rollout: _Rollout) -> bool:
        """Whether members of a unit are in order, and those of them that got the content have it."""
        return any(id in rollout.released for id in members) and all(
            self._is_good(id, rollout) for id in members
        )

    def _is_adopted(self, members: Collection[str], rollout: _Rollout) -> bool:
        """Whether production had the content of all of a unit's members that it was released to."""
        released = [id for id in members if id in rollout.released]
        return all(
            id not in self._pushed or not self._alike.at(id, self._pushed[id], rollout.target)
            for id in released
        )

    def _is_good(self, id: str, rollout: _Rollout) -> bool:
        """Whether an asset is in order, and has the content of the target if that was released to it."""
        entry = self._state.ledger.get(id)
        if id not in rollout.released:
            there = entry is not None and entry.goal is Goal.PRESENT
            brings = self._state.assets(rollout.target).get(id)
            return id in self._good or not (there or (brings is not None and not leaves(brings)))
        if entry is None:
            return False
        if entry.goal is Goal.ABSENT:
            return leaves(self._state.assets(rollout.target).get(id))
        contents = (entry.content, self._good.get(id, entry.content))
        return id in self._good and any(self._alike.at(id, content, rollout.target) for content in contents)

    def _looked(self, rollout: _Rollout, fact: Looked) -> None:
        """No look counts from before the push has ended."""
        for unit, look in fact.units.items():
            since = rollout.proven.get(unit)
            longest = 0.0 if since is None else self._monotonic() - since
            if look.exposure > longest + _ROUNDING:
                self._broken("I10", f"{unit} has {look.exposure:.1f} s of exposure after {longest:.1f} s")

    # --- what is released -------------------------------------------------------------------

    def _views(self, policy: str) -> list[View]:
        payload = self._state.payloads(ROLLOUT_POLICY).get(policy)
        if payload is None or self._state.newest is None:
            return []
        now = self._state.newest.header.created_at
        found = recent(self._state.incarnations, now)
        return [View(payload, assets, self._releases.counting, self._alike) for assets in found]

    def _updated(self, rollout: _Rollout, fact: Updated, at: float) -> None:
        """I10: only so many are unproven at a time, and the first wave is over before the second begins."""
        policy, units = rollout.policy, fact.units
        for id, had in fact.before.items():
            if self._is_absent(id) and self._leaves_at(id, had):
                self._applied.setdefault(id, set()).add(had)  # it was removed, as that asks
        payload, views = self._state.payloads(ROLLOUT_POLICY).get(policy), self._views(policy)
        if payload is None:
            self._broken("I10", f"{', '.join(units)} are released by {policy}, which is not in force")
            return
        if rollout.over:
            self._broken("I10", f"{', '.join(units)} are released by a rollout that has ended")
        target = self._state.assets(rollout.target)
        for unit in units:
            late = unit in rollout.updated and all(leaves(target.get(id)) for id in fact.before)
            if not late and not any(_is_whole(view, unit, target, fact.before) for view in views):
                self._broken("I10", f"only {', '.join(fact.before)} of {unit} are released")
        # A unit counts while it has a member that got the content.
        before, possibly = (
            [
                unit
                for unit in rollout.updated
                if how(any(id in rollout.released for id in view.members(unit)) for view in views)
            ]
            for how in (all, any)
        )
        new = [unit for unit in units if unit not in rollout.updated]
        rollout.updated.update(dict.fromkeys(units))
        rollout.released |= fact.before.keys()
        if not new:
            return  # turndowns of units that have it already
        self._prove(rollout, new)
        unproven = [unit for unit in (*before, *new) if unit not in rollout.proven.keys() | rollout.promoted]
        selection = _selection(rollout, payload, at)
        most = _most(selection.get("at_most"), rollout, views, target)
        if len(unproven) > most:
            self._broken("I10", f"{len(unproven)} units are updated and unproven; {policy} allows {most}")
        first = selection.get("waves", [{}])[0]
        if "units" in first and len(before) + len(new) > first["units"]:
            trust_for = payload.get("trust_for", 0.0)
            trusted = {unit for unit in possibly if self._is_trusted(rollout, unit, views, trust_for)}
            excused = rollout.promoted | rollout.adopted | trusted
            found = [self._unsoaked(rollout, first, units, excused) for units in (before, possibly)]
            if all(found):  # whichever incarnation decides which units are in the first wave
                unit, soaked = found[0][0]
                self._broken("I10", f"{', '.join(new)} follow {unit} after {soaked:.1f} s")

    def _is_trusted(self, rollout: _Rollout, unit: str, views: list[View], trust_for: float) -> bool:
        """Whether rollouts completed shortly before gave all of a unit's members the same content."""
        recently = [
            earlier.target
            for earlier, at in self._completed
            if earlier.policy == rollout.policy and 0 <= rollout.begun_at - at <= trust_for
        ]
        ids = {id for view in views for id in view.members(unit) if id in rollout.released}
        return bool(ids) and all(
            any(self._alike.at(id, target, rollout.target) for target in recently) for id in ids
        )

    def _unsoaked(
        self, rollout: _Rollout, first: Mapping[str, Any], before: list[str], excused: Collection[str]
    ) -> list[tuple[str, float]]:
        """The units of the first wave whose soak is not over, and for how long each has soaked."""
        found = []
        for unit in before[: first["units"]]:
            since = rollout.proven.get(unit)
            soaked = 0.0 if since is None else self._monotonic() - since
            late = since is None or soaked < first.get("soak_seconds", 0.0) - _ROUNDING
            if late and unit not in excused:
                found.append((unit, soaked))
        return found


def _selection(rollout: _Rollout, payload: Mapping[str, Any], at: float) -> Mapping[str, Any]:
    """The limits of a rollout: those of an emergency, if it was begun for one whose time is not over."""
    emergency = payload.get("emergency") or {}
    mine = (emergency.get("target"), emergency.get("reason")) == (rollout.target, rollout.emergency)
    counts = mine and at < datetime.fromisoformat(emergency["until"]).timestamp()
    found: Mapping[str, Any] = (emergency if counts else payload).get("target_selection", {})
    return found


def _most(
    limit: int | str | None, rollout: _Rollout, views: list[View], target: Mapping[str, Asset]
) -> float:
    """Units that may be unproven at a time."""
    if limit is None:
        return math.inf
    if isinstance(limit, int):
        return limit
    takes_part = [
        sum(1 for unit in view.units if unit in rollout.updated or view.wanting(unit, target))
        for view in views
    ]
    return math.ceil(max(takes_part) * float(limit.removesuffix("%")) / 100)


def _is_whole(view: View, unit: str, target: Mapping[str, Asset], granted: Collection[str]) -> bool:
    """Whether all of a unit that want the target's content get it; turndowns wait for the others."""
    wanting = view.wanting(unit, target)
    staying = [id for id in wanting if not leaves(target[id])]
    return bool(view.members(unit)) and all(id in granted for id in staying or wanting)

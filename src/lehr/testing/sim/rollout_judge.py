"""Judges rollouts from outside: how far they may be, by code of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lehr.model.decision import Decision, Status
from lehr.model.evidence import Begun, Commanded, Ended, RolloutCommand, Updated, WentBack, Withdrawn
from lehr.model.release import ReleaseKind
from lehr.model.writes import WriteReleases

_ROUNDING = 0.05

Same = Callable[[str, int, int], bool]
"""Whether two incarnations have the same content of an asset."""


class _Rollout(msgspec.Struct):
    """`proven`: when each asset was first seen in order with the target's content, in monotonic seconds."""

    target: int
    updated: dict[str, None] = msgspec.field(default_factory=dict)
    proven: dict[str, float] = msgspec.field(default_factory=dict)
    released: set[str] = msgspec.field(default_factory=set)
    promoted: set[str] = msgspec.field(default_factory=set)
    over: bool = False


class RolloutJudge:
    """All rollouts of policies whose units are single assets."""

    def __init__(
        self,
        broken: Callable[[str, str], None],
        policies: Callable[[], Mapping[str, dict[str, Any]]],
        selects: Callable[[Mapping[str, Any], str], bool],
        removed: Callable[[str, int], bool],
        same: Same,
        monotonic: Callable[[], float],
    ) -> None:
        """Judge by what the witness knows.

        Args:
            policies: payloads of those in the newest incarnation, by id.
            selects: whether a policy selects an asset of the newest incarnation.
            removed: whether an asset is removed from production already, as an incarnation asks for.
        """
        self._broken = broken
        self._policies = policies
        self._selects = selects
        self._removed = removed
        self._same = same
        self._monotonic = monotonic
        self._rollouts: dict[str, _Rollout] = {}
        self._good: dict[str, int] = {}

    def written(self, write: WriteReleases, answer: object) -> None:
        """This write was carried out, or refused."""
        if answer is not None:
            return
        for item in write.evidence:
            match item.fact:
                case Begun(target=target):
                    self._rollouts[item.rollout] = _Rollout(target)
                case Updated(units=units, before=before):
                    self._rollouts[item.rollout].released |= before.keys()
                    self._updated(item.policy, self._rollouts[item.rollout], units)
                case Withdrawn(units=units) | WentBack(units=units):
                    for unit in units:
                        self._rollouts[item.rollout].updated.pop(unit, None)
                case Commanded(command=RolloutCommand.PROMOTE):
                    rollout = self._rollouts[item.rollout]
                    rollout.promoted |= rollout.updated.keys()
                case Ended():
                    self._rollouts[item.rollout].over = True
        for release in write.releases:
            of = self._rollouts.get(release.rollout)
            if of is None or release.kind is not ReleaseKind.FORWARD or release.target != of.target:
                continue
            if release.asset not in of.released:
                self._broken("I10", f"{release.asset} is released, and its rollout has no evidence of it")

    def decided(self, decision: Decision) -> None:
        """A look at an asset: it proves its content if nothing differs."""
        id = decision.asset
        good = decision.condition.status in (Status.CONVERGED, Status.TURNED_DOWN)
        self._good.pop(id, None)
        if good:
            self._good[id] = decision.content
        for rollout in self._rollouts.values():
            if rollout.over or id not in rollout.updated or id in rollout.proven:
                continue
            if good and self._same(id, decision.content, rollout.target):
                rollout.proven[id] = self._monotonic()

    def _has(self, id: str, target: int) -> bool:
        """Whether an asset has the content already, as after a rollback that was not pushed."""
        return id in self._good and self._same(id, self._good[id], target)

    def _updated(self, policy: str, rollout: _Rollout, units: tuple[str, ...]) -> None:
        """I10: only so many are unproven at a time, and the first wave is over before the second begins."""
        payload = self._policies().get(policy)
        if payload is None:
            self._broken("I10", f"{', '.join(units)} are released by {policy}, which is not in force")
            return
        if rollout.over:
            self._broken("I10", f"{', '.join(units)} are released by a rollout that has ended")
        if payload.get("unit"):
            return  # The units of random policies are single assets.
        selection = payload.get("target_selection", {})
        before = [id for id in rollout.updated if self._selects(payload, id)]
        rollout.updated.update(dict.fromkeys(units))
        done = [id for id in units if self._removed(id, rollout.target) or self._has(id, rollout.target)]
        rollout.proven.update(dict.fromkeys(done, self._monotonic()))
        proven = rollout.proven.keys() | rollout.promoted
        unproven = [id for id in (*before, *units) if id not in proven]
        most = selection.get("at_most")
        if most is not None and len(unproven) > most:
            self._broken("I10", f"{len(unproven)} assets are updated and unproven; {policy} allows {most}")
        first = selection.get("waves", [{}])[0]
        if "units" not in first or len(before) + len(units) <= first["units"]:
            return
        for id in before[: first["units"]]:
            since = rollout.proven.get(id)
            soaked = 0.0 if since is None else self._monotonic() - since
            if id not in rollout.promoted and (
                since is None or soaked < first.get("soak_seconds", 0.0) - _ROUNDING
            ):
                self._broken("I10", f"{', '.join(units)} follow {id} after {soaked:.1f} s")

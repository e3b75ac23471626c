"""The course of a policy's rollouts, derived from their evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.evidence import (
    Begun,
    Commanded,
    Counted,
    Ended,
    Evidence,
    Fact,
    Failed,
    ForecastMade,
    Looked,
    RolloutCommand,
    UnitLook,
    Updated,
    Validated,
    WentBack,
    Withdrawn,
)

Value = TypeVar("Value")

_MOST_PASSED = 10
"""Contents of an asset that are remembered to have passed."""


class Rollout(msgspec.Struct, frozen=True):
    """One rollout, as far as it has come.

    Attributes:
        target: the incarnation whose content it brings.
        begun_at: wall-clock seconds, as are all times here.
        updated: since when each unit is released to the target.
        before: the incarnation whose content each asset of these units had; 0 for one that had none.
        looks: how each of them was when it was looked at last.
        wave: the wave in which units were released last.
        cohorts: the cohort of each of them, from 1: another one begins when another wave does.
        counted: the counters of the newest cohort that was counted.
        looked_at: when that was; 0 for never.
        validated: since when each of them is known to be good.
        promoted: units that a person has declared good enough.
        went_back: units that were released to what they had before.
        failure: why no further unit is updated, if one was not good.
        paused: who paused it, if someone did.
        asked: a command that is not carried out yet.
        forecast: how it was expected to proceed; None if that is not known.
        ended, ended_at: how it ended, and when; None while it runs.
        emergency: the reason of the emergency that began it; empty if none did.
    """

    id: str
    target: int
    begun_at: float
    updated: dict[str, float] = {}
    before: dict[AssetId, int] = {}
    looks: dict[str, UnitLook] = {}
    wave: int = 0
    cohorts: dict[str, int] = {}
    counted: tuple[Counted, ...] = ()
    looked_at: float = 0.0
    validated: dict[str, float] = {}
    promoted: frozenset[str] = frozenset()
    went_back: frozenset[str] = frozenset()
    failure: Failed | None = None
    paused: Commanded | None = None
    asked: Commanded | None = None
    forecast: ForecastMade | None = None
    ended: Ended | None = None
    ended_at: float | None = None
    emergency: str = ""

    @property
    def watched(self) -> list[str]:
        """The units that have the content, in the order in which they got it."""
        return [unit for unit in self.updated if unit not in self.went_back]

    @property
    def newest_cohort(self) -> int:
        """The cohort that began last; 0 before the first."""
        return max(self.cohorts.values(), default=0)


class Course(msgspec.Struct, frozen=True):
    """Rollouts of one policy.

    Attributes:
        last: the newest rollout; None before the first.
        quarantined: how often each content has failed, by the asset and the content's key.
        passed: when each content passed last, by the asset and the content's key, in wall-clock seconds. The
            last few of each asset.
        emergencies: target and reason of those that are over.
    """

    last: Rollout | None = None
    quarantined: dict[AssetId, dict[Digest, int]] = {}
    passed: dict[AssetId, dict[Digest, float]] = {}
    emergencies: frozenset[tuple[int, str]] = frozenset()

    @property
    def running(self) -> Rollout | None:
        """The rollout under way, if one is."""
        return None if self.last is None or self.last.ended is not None else self.last

    def failures(self, id: AssetId, key: Digest) -> int:
        """How often this content of an asset has failed."""
        return self.quarantined.get(id, {}).get(key, 0)

    def trusts(self, id: AssetId, key: Digest, within: float, now: float) -> bool:
        """Whether this content of an asset passed in the last `within` seconds, and has never failed."""
        at = self.passed.get(id, {}).get(key)
        return at is not None and 0.0 <= now - at <= within and not self.failures(id, key)


def after(course: Course, rollout: str, fact: Fact, at: float) -> Course:
    """The course once a fact about a rollout is known. Facts about none that began are of no use."""
    if isinstance(fact, Begun):
        return replace(course, last=Rollout(rollout, fact.target, at, emergency=fact.emergency))
    if isinstance(fact, Commanded) and fact.command is RolloutCommand.RETRY:
        course = replace(course, quarantined={})
    last = course.last
    if last is None or last.id != rollout or last.ended is not None:
        return course
    if isinstance(fact, Ended):
        over = {(last.target, last.emergency)} if last.emergency else set()
        return Course(
            replace(last, ended=fact, ended_at=at),
            _quarantining(course.quarantined, fact.quarantined),
            _passing(course.passed, fact.passed, at),
            course.emergencies | over,
        )
    return replace(course, last=_moved(last, fact, at))


def folded(evidence: Iterable[Evidence], course: Course | None = None) -> Course:
    """The course according to evidence of one policy, which follows on `course`."""
    course = Course() if course is None else course
    for item in evidence:
        course = after(course, item.rollout, item.fact, item.at)
    return course


def _moved(last: Rollout, fact: Fact, at: float) -> Rollout:
    match fact:
        case Updated():
            updated = {**last.updated, **{unit: at for unit in fact.units if unit not in last.updated}}
            before = {**last.before, **fact.before}  # what was withdrawn may have changed since
            cohort = last.newest_cohort + (fact.wave != last.wave or not last.updated)
            cohorts = {**dict.fromkeys(fact.units, cohort), **last.cohorts}
            return replace(last, updated=updated, before=before, wave=fact.wave, cohorts=cohorts)
        case Withdrawn():
            return _withdrawn(last, frozenset(fact.units))
        case Looked():
            return replace(last, looks={**last.looks, **fact.units}, looked_at=at)
        case Counted():
            same = last.counted and last.counted[-1].cohort == fact.cohort
            return replace(last, counted=(*last.counted, fact) if same else (fact,))
        case Validated():
            return replace(last, validated={**last.validated, **dict.fromkeys(fact.units, at)})
        case WentBack():
            return replace(last, went_back=last.went_back | set(fact.units))
        case Failed():
            return replace(last, failure=fact)
        case Commanded():
            return _commanded(last, fact, at)
        case ForecastMade():
            return replace(last, forecast=fact)
        case _:
            return last


def _withdrawn(last: Rollout, units: frozenset[str]) -> Rollout:
    """Nothing that is known of these units counts for their next release: its pushes come later."""

    def rest(known: Mapping[str, Value]) -> dict[str, Value]:
        return {unit: value for unit, value in known.items() if unit not in units}

    return replace(
        last,
        updated=rest(last.updated),
        cohorts=rest(last.cohorts),
        looks=rest(last.looks),
        validated=rest(last.validated),
        promoted=last.promoted - units,
    )


def _commanded(last: Rollout, told: Commanded, at: float) -> Rollout:
    match told.command:
        case RolloutCommand.PAUSE:
            return replace(last, paused=told)
        case RolloutCommand.RESUME:
            return replace(last, paused=None)
        case RolloutCommand.PROMOTE:
            units = last.watched
            validated = {**dict.fromkeys(units, at), **last.validated}
            return replace(last, validated=validated, promoted=last.promoted | set(units), failure=None)
        case RolloutCommand.ABORT | RolloutCommand.ROLLBACK | RolloutCommand.RESTART:
            return replace(last, asked=told)
        case _:
            return last


def _passing(
    known: dict[AssetId, dict[Digest, float]], keys: dict[AssetId, Digest], at: float
) -> dict[AssetId, dict[Digest, float]]:
    found = dict(known)
    for id, key in keys.items():
        others = {other: since for other, since in found.get(id, {}).items() if other != key}
        newest = list(others.items())[-_MOST_PASSED + 1 :]
        found[id] = {**dict(newest), key: at}
    return found


def _quarantining(
    known: dict[AssetId, dict[Digest, int]], keys: dict[AssetId, Digest]
) -> dict[AssetId, dict[Digest, int]]:
    found = dict(known)
    for id, key in keys.items():
        of_asset = found.get(id, {})
        found[id] = {**of_asset, key: of_asset.get(key, 0) + 1}
    return found

"""A look at the updated units of a rollout, and its consequences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from lehr.base.text import listed
from lehr.canary import Outcome, Verdict
from lehr.model.evidence import Counted, CounterSample, Fact, Failed, Looked, UnitLook, Validated
from lehr.rollouts.course import Course, Rollout, after
from lehr.rollouts.looking import NEVER, is_news, looked, settled_for, state_of
from lehr.rollouts.measuring import Ask, Findings, asks_about, counter_asks, counters_of, measured
from lehr.rollouts.members import Member, Units, common_labels
from lehr.rollouts.metrics import About, CanaryAnalysis
from lehr.rollouts.policy import RolloutPolicy
from lehr.rollouts.verdicts import Verdicts

_REMEMBERED_EVERY = 60.0
"""Seconds after which looks are written down at which nothing is known of any unit."""

LONGEST_GAP = 2.0
"""Of the time since the last look, so many times the usual distance count at most."""


class Seen(NamedTuple):
    """The result of a look.

    Attributes:
        asks: questions to answer first. The look is made once they are.
        late: which units are not good by their deadline, and why; empty if none is late.
        unproven: why units are not validated yet.
        verdict: of the canary analysis of the newest cohort; None before its counters are known.
        look_in: seconds until the next look; None if there is none, or it waits for findings.
    """

    facts: tuple[Fact, ...] = ()
    asks: tuple[Ask, ...] = ()
    late: str = ""
    unproven: Mapping[str, str] = {}
    verdict: Verdict | None = None
    look_in: float | None = None


NOTHING_SEEN = Seen()


def observe(
    policy: RolloutPolicy,
    rollout: Rollout,
    units: Units,
    now: float,
    since_look: float | None,
    findings: Findings | None,
    verdicts: Verdicts,
) -> Seen:
    """Look at the updated units of a rollout.

    Args:
        units: all members, by unit.
        now: wall-clock seconds.
        since_look, findings, verdicts: as in `lehr.rollouts.plan.plan`.
    """
    if not (watched := [id for id in rollout.watched if any_updated(rollout, units.get(id, ()))]):
        return NOTHING_SEEN
    return _Look(policy, rollout, units, now, verdicts).at(watched, since_look, findings)


def any_updated(rollout: Rollout, members: Sequence[Member]) -> bool:
    """Whether any of a unit's members has got the content: how others are proves nothing."""
    return any(item.id in rollout.before for item in members)


class _Look:
    """One look. Each fact counts for those that follow."""

    def __init__(
        self, policy: RolloutPolicy, rollout: Rollout, units: Units, now: float, verdicts: Verdicts
    ) -> None:
        self._validation = policy.validation
        self._waves = len(policy.target_selection.waves)
        self._rollout = rollout
        self._units = units
        self._now = now
        self._verdicts = verdicts
        self._newest_cohort = rollout.newest_cohort
        self._facts: list[Fact] = []
        self._looks: dict[str, UnitLook] = {}

    def _know(self, fact: Fact) -> None:
        self._facts.append(fact)
        last = after(Course(self._rollout), self._rollout.id, fact, self._now).last
        assert last is not None
        self._rollout = last

    def at(self, watched: Sequence[str], since_look: float | None, findings: Findings | None) -> Seen:
        """Look at units."""
        since, every = since_look or 0.0, self._validation.look_every
        due = since_look is None or since >= every or findings is not None
        asks = tuple(self._asks(watched, since)) if due and findings is None else ()
        due = due and not asks
        self._looks = {id: self._looked(id, since, findings or {}, due) for id in watched}
        self._remember(since, due, always=since_look is None or findings is not None)
        if due and self._validation.canary is not None:
            self._count(self._validation.canary, findings or {}, since)
        if good := [id for id in watched if self._is_valid(id)]:
            self._know(Validated(tuple(good)))
        self._find_failure([unit for unit in watched if unit not in self._rollout.promoted])
        look_in = None if asks else every if due or since_look is None else every - since
        unproven = {unit: self._why(unit) for unit in watched if unit not in self._rollout.validated}
        return Seen(tuple(self._facts), asks, self._late(), unproven, self._verdict(), look_in)

    def _asks(self, watched: Sequence[str], since: float) -> Iterator[Ask]:
        """The questions of a look."""
        validation, every = self._validation, self._validation.look_every
        for unit in watched if validation.metrics else ():
            if state_of(self._units[unit])[0]:
                look = self._settling(unit, since)
                yield from asks_about(validation.metrics, self._about(unit), look, every)
        if validation.canary is not None:
            canaries, controls = self._compared(validation.canary)
            for unit in (*canaries, *controls) if canaries and controls else ():
                yield from counter_asks(validation.canary, self._about(unit), every)

    def _about(self, unit: str) -> About:
        return About(unit, common_labels(self._units[unit]), self._rollout.id, self._rollout.target)

    # --- each unit --------------------------------------------------------------------------

    def _looked(self, unit: str, since: float, findings: Findings, due: bool) -> UnitLook:
        validation, before = self._validation, self._rollout.looks.get(unit)
        longest, every = LONGEST_GAP * validation.look_every, validation.look_every
        found = None
        if validation.metrics and (due or before is None):
            look, about = self._settling(unit, since), self._about(unit)
            found = measured(validation.metrics, about, look, findings, every, self._now)
        return looked(before, self._units[unit], since, longest, due, found)

    def _settling(self, unit: str, since: float) -> UnitLook:
        """The unit's last look, and for how long its pushes have ended now."""
        before = self._rollout.looks.get(unit, NEVER)
        return replace(before, settled=settled_for(before, self._units[unit], since))

    def _remember(self, since: float, due: bool, *, always: bool) -> None:
        """Write the looks down, if they are news.

        Args:
            always: write down what is due even if nothing is known, as at the first look of a process: time
                counts from there.
        """
        before, looks = self._rollout.looks, self._looks
        unknown = all(look.good is None for look in looks.values()) and since < _REMEMBERED_EVERY
        due = due and (always or not unknown)
        if any(is_news(before.get(unit), look, due) for unit, look in looks.items()):
            self._know(Looked(dict(looks)))

    # --- compared with others ---------------------------------------------------------------

    def _compared(self, analysis: CanaryAnalysis) -> tuple[list[str], list[str]]:
        """Units of the newest cohort whose pushes have ended, and units to compare them with."""
        rollout, units = self._rollout, self._units
        canaries = [
            unit
            for unit in rollout.watched
            if self._is_newest(unit) and settled_for(None, units.get(unit, ()), 0.0) is not None
        ]
        return canaries, self._controls[: analysis.controls]

    def _is_newest(self, unit: str) -> bool:
        return self._rollout.cohorts.get(unit) == self._newest_cohort

    @cached_property
    def _controls(self) -> list[str]:
        """Units that run what they had, and are still to be updated.

        What their other members run is not looked up: they are at rest.
        """
        found = []
        for unit, members in self._units.items():
            wanting = [item for item in members if item.wants_target]
            if unit not in self._rollout.updated and wanting and all(item.applied for item in wanting):
                found.append(unit)
        return found

    def _count(self, analysis: CanaryAnalysis, findings: Findings, since: float) -> None:
        """Know the counters of a look."""
        canaries, controls = self._compared(analysis)
        if not (canaries and controls):
            return
        every, samples, missing = self._validation.look_every, list[CounterSample](), ""
        for unit in (*canaries, *controls):
            about, canary = self._about(unit), unit in canaries
            found, why = counters_of(analysis, about, findings, canary=canary, every=every, now=self._now)
            samples += found
            missing = missing or why
        before = self._rollout.counted
        at = before[-1].at + since if before else 0.0
        self._know(Counted(self._newest_cohort, at, tuple(samples), missing))

    def _verdict(self) -> Verdict | None:
        """The verdict on the newest cohort; None before its counters are known."""
        analysis, rollout = self._validation.canary, self._rollout
        if analysis is None or not rollout.counted or rollout.counted[-1].cohort != self._newest_cohort:
            return None
        return self._verdicts.of(analysis, rollout, self._waves)

    # --- what follows -----------------------------------------------------------------------

    def _is_valid(self, unit: str) -> bool:
        """Whether a unit is now found to be good."""
        known = unit in self._rollout.validated
        return not known and self._looks[unit].good is True and not self._undecided(unit)

    def _undecided(self, unit: str) -> str:
        """Why the canary analysis does not let a unit pass; empty if it does, or if nothing is compared."""
        if self._validation.canary is None or not self._is_newest(unit) or not self._controls:
            return ""
        verdict = self._verdict()
        if verdict is None:
            return "canary analysis: no counters are known yet"
        last = self._rollout.counted[-1]
        if verdict.verdict is not Outcome.PASS:
            return "; ".join(text for text in (f"canary analysis: {verdict.reason}", last.missing) if text)
        if not any(sample.canary and sample.unit == unit for sample in last.samples):
            return f"canary analysis: {last.missing or 'its counters are not known yet'}"
        return ""

    def _find_failure(self, watched: Sequence[str]) -> None:
        """Know that a unit, or a cohort, has failed. Units that a person promoted are not in `watched`."""
        if self._rollout.failure is not None:
            return
        deadline = self._validation.deadline
        for unit in watched:
            look = self._looks[unit]
            if look.bad_in_a_row >= self._validation.bad_looks:
                self._know(Failed(unit, look.why))
                return
            if self._is_late(unit) and self._validation.at_deadline == "fail":
                self._know(Failed(unit, f"it was not good within {deadline:g} s: {self._why(unit)}"))
                return
        verdict = self._verdict()
        if verdict is None or verdict.verdict is not Outcome.FAIL:
            return
        if newest := [unit for unit in watched if self._is_newest(unit)]:
            self._know(Failed(listed(newest), f"canary analysis: {verdict.reason}"))

    def _is_late(self, unit: str) -> bool:
        late = self._looks[unit].watched >= self._validation.deadline
        return late and unit not in self._rollout.validated

    def _late(self) -> str:
        deadline = self._validation.deadline
        late = [unit for unit in self._looks if self._is_late(unit)]
        return "; ".join(f"{unit} is not good after {deadline:g} s: {self._why(unit)}" for unit in late)

    def _why(self, unit: str) -> str:
        return self._looks[unit].why or self._undecided(unit)

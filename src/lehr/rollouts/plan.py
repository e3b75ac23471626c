"""The next step of a policy's rollout. Pure: the same course, members and time give the same step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from typing import NamedTuple

import msgspec

from lehr.base.digest import Digest
from lehr.base.text import listed
from lehr.model.asset import AssetId
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Fact,
    Failed,
    RolloutCommand,
    RolloutEnd,
    Selected,
    Updated,
    WentBack,
    Withdrawn,
)
from lehr.model.release import ReleaseKind
from lehr.rollouts.contradictions import contradiction
from lehr.rollouts.course import Course, Rollout, after
from lehr.rollouts.emergency import emergency_of, in_effect
from lehr.rollouts.measuring import Findings
from lehr.rollouts.members import Member, Units, units_of
from lehr.rollouts.observing import NOTHING_SEEN, Seen, observe
from lehr.rollouts.policy import Emergency, RolloutPolicy
from lehr.rollouts.selection import Selection, select
from lehr.rollouts.services import UNANSWERED, Answer, nothing, question_of
from lehr.rollouts.story import in_words
from lehr.rollouts.taking_part import taking_part_in, trusted_units
from lehr.rollouts.units import Unit
from lehr.rollouts.verdicts import Verdicts
from lehr.sdk.target_selection import SelectionQuestion

EARLIER_PUSHES = "pushes that began before the policy came into force are still under way"
"""A hold that ends without a person."""

BASELINES_AT_ONCE = 1000
"""So many assets are released at most to what they have in one step."""


class Grant(NamedTuple):
    """A release to write: the asset may have the content that it has in incarnation `target`."""

    asset: AssetId
    target: int
    kind: ReleaseKind


class Step(msgspec.Struct, frozen=True):
    """Facts and releases to write now, all at once, and the state for people.

    Attributes:
        rollout: id of the rollout that the facts are about.
        withdrawn: ids of releases to withdraw.
        hold: why nothing further is updated until something changes; empty if that is not so.
        opens_in: seconds until a calendar or freeze opens that holds what would be updated; None for none.
        selection: the answer of target selection, if it was asked.
        again_in: seconds after which time alone changes the answer; None if it does not.
        question: for the selection of the policy, if that is not one of Lehr's.
        seen: of the units that are updated. Questions that it asks have to be answered for the next look.
        needs_no_soak: units that are updated, and whose wave need not wait for their exposure.
    """

    rollout: str = ""
    facts: tuple[Fact, ...] = ()
    grants: tuple[Grant, ...] = ()
    withdrawn: tuple[str, ...] = ()
    hold: str = ""
    selection: Selection | None = None
    again_in: float | None = None
    opens_in: float | None = None
    question: SelectionQuestion | None = None
    seen: Seen = NOTHING_SEEN
    needs_no_soak: frozenset[str] = frozenset()

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.facts or self.grants or self.withdrawn)


def plan(
    policy: RolloutPolicy,
    course: Course,
    members: Sequence[Member],
    newest: int,
    now: float,
    *,
    since_look: float | None,
    new_id: str,
    answer: Answer | None = None,
    findings: Findings | None = None,
    verdicts: Verdicts | None = None,
) -> Step:
    """The next step of a policy's rollout.

    Args:
        members: assets that the policy governs. Units that want no other content and got none in the rollout
            under way make no difference, and may be left out.
        newest: sequence of the newest incarnation.
        now: wall-clock seconds.
        since_look: seconds since the last look at updated units, by a clock that does not jump; None if this
            process has made none. Time without looks is not exposure.
        new_id: of a rollout that begins now.
        answer: of the policy's selection, if that is not one of Lehr's and has answered.
        findings: what was measured for the next look; None if nothing was.
        verdicts: remembers verdicts on canaries, which saves time.

    Raises:
        ValueError: the target selection has no answer.
    """
    unknown = [item for item in members if not item.known and item.applied is not None]
    free = [item for item in unknown if not item.busy][:BASELINES_AT_ONCE]
    if free:
        return Step(grants=tuple(Grant(item.id, item.applied_at, ReleaseKind.BASELINE) for item in free))
    if unknown:
        return Step(hold=EARLIER_PUSHES)
    running, emergency = course.running, emergency_of(policy, course, newest, now)
    if running is None and emergency is not None:
        return _begin_at_once(emergency, members, new_id)
    if running is None:
        return _begin(policy, course, members, newest, now, new_id)
    policy = in_effect(policy, course, newest, now)
    asked = _Asked(answer, findings, Verdicts() if verdicts is None else verdicts)
    return _Running(policy, course, running, members, newest, now, asked, emergency).step(since_look)


def _completed(units: Iterable[Unit]) -> str:
    """The reason of the end: units that cannot be pushed are left to the next rollout."""
    left = sorted(unit.id for unit in units if not unit.updated)
    if not left:
        return "every unit has it, and is good"
    return f"each unit that can be pushed has it, and is good; {listed(left)} cannot be pushed now"


def _opens_in(members: Iterable[Member], now: float) -> float | None:
    """Seconds until time alone lets one of them be pushed; None if it does not."""
    times = [item.closed_until for item in members if not item.held and item.closed_until is not None]
    return min(times) - now if times else None


def _is_untouched(released: Sequence[Member]) -> bool:
    """Whether no push of these has begun."""
    return bool(released) and not any(item.busy or item.applied == item.target for item in released)


def _begin(
    policy: RolloutPolicy, course: Course, members: Sequence[Member], newest: int, now: float, id: str
) -> Step:
    """Begin a rollout of the newest content, if some unit wants it and has not failed with it."""
    wanting = [item for item in members if item.wants_newest]
    if not wanting:
        return Step()
    if all(item.barred for item in wanting):
        opens_in = _opens_in(wanting, now)
        hold = f"{wanting[0].id} is {wanting[0].barred}"
        return Step(hold=hold, again_in=opens_in, opens_in=opens_in)
    failures = [course.failures(item.id, item.newest) for item in wanting]
    if all(failures):
        ended = None if course.last is None else course.last.ended
        return Step(
            hold="the rollout of this content " + ("has failed" if ended is None else in_words(ended))
        )
    if max(failures) > policy.retries:
        often = max(failures)
        return Step(hold=f"some of this content has failed {often} times; retries: {policy.retries}")
    return Step(id, (Begun(newest),))


def _begin_at_once(emergency: Emergency, members: Sequence[Member], id: str) -> Step:
    """Begin the rollout of an emergency, even of content that has failed: a person decided it."""
    wanting = any(item.wants_newest for item in members)
    return Step(id, (Begun(emergency.target, emergency.reason),)) if wanting else Step()


class _Asked(NamedTuple):
    """Answers from elsewhere, as in `plan`."""

    selection: Answer | None
    findings: Findings | None
    verdicts: Verdicts


class _Running:
    """One step of a rollout under way. Each fact counts for what comes after it in the same step."""

    def __init__(
        self,
        policy: RolloutPolicy,
        course: Course,
        running: Rollout,
        members: Sequence[Member],
        newest: int,
        now: float,
        asked: _Asked,
        emergency: Emergency | None,
    ) -> None:
        self._policy = policy
        self._emergency = emergency
        self._asked = asked
        self._question: SelectionQuestion | None = None
        self._seen = NOTHING_SEEN
        self._no_soak: frozenset[str] = frozenset()
        self._course = course
        self._id = running.id
        self._units: Units = units_of(members)
        self._newest = newest
        self._now = now
        self._facts: list[Fact] = []
        self._grants: list[Grant] = []
        self._withdrawn: list[str] = []

    @property
    def _rollout(self) -> Rollout:
        assert self._course.last is not None
        return self._course.last

    def _know(self, fact: Fact) -> None:
        self._facts.append(fact)
        self._course = after(self._course, self._id, fact, self._now)

    def _done(
        self,
        hold: str = "",
        selection: Selection | None = None,
        again_in: float | None = None,
        opens_in: float | None = None,
    ) -> Step:
        return Step(
            self._id,
            tuple(self._facts),
            tuple(self._grants),
            tuple(self._withdrawn),
            hold,
            selection,
            again_in,
            opens_in,
            self._question,
            self._seen,
            self._no_soak,
        )

    def _end(self, how: RolloutEnd, why: str, quarantined: Mapping[AssetId, Digest] | None = None) -> Step:
        passed = self._passed() if how is RolloutEnd.COMPLETED and self._policy.trust_for else {}
        self._know(Ended(how, why, dict(quarantined or {}), passed))
        return self._done()

    def step(self, since_look: float | None) -> Step:
        asked = self._rollout.asked
        if asked is not None:
            return self._carry_out(asked)
        emergency = self._emergency
        mine = (self._rollout.target, self._rollout.emergency)
        if emergency is not None and mine != (emergency.target, emergency.reason):
            return self._end(RolloutEnd.SUPERSEDED, f"emergency: {emergency.reason}")
        if emergency is None and self._is_overtaken():
            if self._rollout.failure is not None:
                return self._fail(self._rollout.failure, "newer content came")
            return self._end(RolloutEnd.SUPERSEDED, "newer content came before any unit had this")
        self._let_revert()
        look_in = self._look(since_look)
        if self._rollout.failure is not None:
            return self._after_failure(self._rollout.failure, look_in)
        return self._update(look_in)

    # --- the end of it ----------------------------------------------------------------------

    def _carry_out(self, given: Commanded) -> Step:
        why = f"{given.actor}: {given.reason}"
        match given.command:
            case RolloutCommand.ROLLBACK:
                self._go_back(self._rollout.watched, why)
                return self._end(RolloutEnd.ROLLED_BACK, why, self._wanted())
            case RolloutCommand.ABORT:
                return self._end(RolloutEnd.ABORTED, why, self._wanted())
            case _:
                return self._end(RolloutEnd.SUPERSEDED, why)

    def _is_overtaken(self) -> bool:
        """Whether newer content takes its place: it waits for what is released and has not failed."""
        rollout = self._rollout
        if self._newest == rollout.target or (rollout.watched and rollout.failure is None):
            return False
        members = [item for of_unit in self._units.values() for item in of_unit]
        return any(item.wants_newest and item.newest != item.target for item in members)

    def _after_failure(self, failure: Failed, look_in: float | None) -> Step:
        if self._policy.on_failure == "hold":
            self._withdraw()
            return self._done(f"{failure.unit} has failed: {failure.why}", again_in=look_in)
        return self._fail(failure, "")

    def _fail(self, failure: Failed, but: str) -> Step:
        why = f"{failure.unit}: {failure.why}"
        if self._policy.on_failure == "rollback":
            self._go_back(self._rollout.watched, why)
        return self._end(RolloutEnd.FAILED, f"{why}; {but}" if but else why, self._wanted())

    def _wanted(self) -> dict[AssetId, Digest]:
        """The keys of all content that the rollout brought, or would have brought."""
        return {
            item.id: item.target
            for unit, members in self._units.items()
            for item in members
            if item.target is not None and (item.id in self._rollout.before or item.wants_target)
        }

    def _passed(self) -> dict[AssetId, Digest]:
        """The keys of the new content of all units that were good with it."""
        rollout = self._rollout
        return {
            item.id: item.target
            for unit in rollout.watched
            if unit in rollout.validated and unit not in rollout.promoted
            for item in self._units.get(unit, ())
            if item.target is not None and item.id in rollout.before
        }

    def _go_back(self, units: Sequence[str], why: str) -> None:
        """Release units to what they had before. Assets that had nothing keep the new content."""
        before = self._rollout.before
        going = {
            unit: found
            for unit in units
            if (found := [item for item in self._brought_to(unit) if before[item.id]])
        }
        if not going:
            return
        self._grants += [
            Grant(item.id, before[item.id], ReleaseKind.ROLLBACK)
            for found in going.values()
            for item in found
        ]
        self._know(WentBack(tuple(going), why))

    def _brought_to(self, unit: str) -> list[Member]:
        """Members of a unit that are released to what the rollout brings.

        An asset may have joined the unit after it was released with another one, and its release there may
        have been withdrawn or taken back since.
        """
        rollout = self._rollout
        members = self._units.get(unit, ())
        return [item for item in members if item.id in rollout.before and item.released_at == rollout.target]

    def _withdraw(self) -> None:
        """Withdraw what is released and of which no push has begun: it waits for its wave again."""
        released = {unit: self._brought_to(unit) for unit in self._rollout.watched}
        untouched = {unit: found for unit, found in released.items() if _is_untouched(found)}
        if not untouched:
            return
        self._withdrawn += [item.release for found in untouched.values() for item in found]
        self._know(Withdrawn(tuple(untouched)))

    def _let_revert(self) -> None:
        """Units of which intent asks again for what they had before get that at once: it was good there."""
        rollout = self._rollout
        back = [unit for unit in rollout.watched if self._is_reverted(self._units.get(unit, ()))]
        if not back:
            return
        self._grants += [
            Grant(item.id, self._newest, ReleaseKind.FORWARD)
            for unit in back
            for item in self._units[unit]
            if item.wants_newest
        ]
        self._know(WentBack(tuple(back), "intent asks again for what they had before"))

    def _is_reverted(self, members: Sequence[Member]) -> bool:
        changed = [item for item in members if item.wants_newest]
        return bool(changed) and all(item.newest == item.before for item in changed)

    # --- looking ----------------------------------------------------------------------------

    def _look(self, since_look: float | None) -> float | None:
        """Look at updated units. Returns the seconds until the next look; None if it waits for no time."""
        asked = self._asked
        seen = observe(
            self._policy, self._rollout, self._units, self._now, since_look, asked.findings, asked.verdicts
        )
        for fact in seen.facts:
            self._know(fact)
        self._seen = seen
        return seen.look_in

    # --- updating ---------------------------------------------------------------------------

    def _update(self, look_in: float | None) -> Step:
        trusted = trusted_units(self._policy.trust_for, self._course, self._units)
        taking_part = taking_part_in(self._rollout, self._units, self._now, trusted)
        self._no_soak = frozenset(id for id, unit in taking_part.items() if isinf(unit.exposure_seconds))
        if not any(unit in taking_part for unit in self._rollout.watched) and not self._pending(taking_part):
            gone_back = self._rollout.went_back
            how = RolloutEnd.REVERTED if gone_back or not self._rollout.updated else RolloutEnd.COMPLETED
            return self._end(how, "no unit wants this content any longer")
        if self._rollout.paused is not None:
            paused = self._rollout.paused
            self._withdraw()
            return self._done(f"paused by {paused.actor}: {paused.reason}", again_in=look_in)
        self._let_leave()
        chosen = self._selection(list(taking_part.values()))
        if chosen.done:
            return self._end(RolloutEnd.COMPLETED, _completed(taking_part.values()))
        if chosen.update:
            by = self._policy.selected_by
            if by is not None:
                self._know(Selected(by.service, chosen.update, chosen.notes))
            self._release(chosen.update, chosen.wave)
        hold = chosen.hold or self._contradiction(chosen, taking_part) or self._seen.late
        soaked_in = None if chosen.ask_again_at is None else chosen.ask_again_at - self._now
        pending = [item for unit in taking_part if unit in chosen.others for item in self._units[unit]]
        opens_in = _opens_in(pending, self._now)
        waits = [seconds for seconds in (look_in, soaked_in, opens_in) if seconds is not None]
        return self._done(hold, chosen, min(waits, default=None), opens_in)

    def _selection(self, units: Sequence[Unit]) -> Selection:
        """The units to update now. No selection but Lehr's own is trusted to keep the limits."""
        by, selection = self._policy.selected_by, self._policy.target_selection
        if by is None:
            return select(selection, units, self._now)
        self._question = question_of(
            units, self._now, at_most=selection.at_most, new=selection.new, settings=by.settings
        )
        found = None if self._asked.selection is None else self._asked.selection.to(self._question)
        return found or nothing(self._question, UNANSWERED)

    def _contradiction(self, chosen: Selection, taking_part: Mapping[str, Unit]) -> str:
        """Only Lehr's own selections are predictable: those of a user may update anything next."""
        if self._policy.selected_by:
            return ""
        waves = self._policy.target_selection.waves
        soak = waves[chosen.wave - 1].soak_seconds if chosen.wave else 0.0
        soaking = {id for id, unit in taking_part.items() if unit.exposure_seconds < soak}
        return contradiction(self._rollout, self._units, chosen, soaking)

    def _pending(self, taking_part: Mapping[str, Unit]) -> bool:
        return any(not unit.updated for unit in taking_part.values())

    def _release(self, units: Iterable[str], wave: int) -> None:
        """Release units to the target. Turndowns wait for the others of their unit, if there are any."""
        members = [item for unit in units for item in self._first_of(self._units[unit])]
        self._grant(tuple(units), members, wave)

    def _first_of(self, members: Sequence[Member]) -> list[Member]:
        wanting = [item for item in members if item.wants_target]
        return [item for item in wanting if not item.leaves] or wanting

    def _let_leave(self) -> None:
        """Release turndowns of units of which all else is good: a rename must not be an outage."""
        rollout = self._rollout
        good = [unit for unit in rollout.watched if unit in rollout.validated]
        leaving = {
            unit: found
            for unit in good
            if (found := [item for item in self._units.get(unit, ()) if item.leaves and item.wants_target])
        }
        if leaving:
            self._grant(tuple(leaving), [item for found in leaving.values() for item in found], rollout.wave)

    def _grant(self, units: tuple[str, ...], members: Sequence[Member], wave: int) -> None:
        target = self._rollout.target
        self._grants += [Grant(item.id, target, ReleaseKind.FORWARD) for item in members]
        # A release that was never carried out, as of content that was given up, is nothing to go back to.
        self._withdrawn += [item.release for item in members if item.given_up]
        self._know(Updated(units, {item.id: item.has for item in members}, wave))

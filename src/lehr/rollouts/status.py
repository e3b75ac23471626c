"""The status of a policy's rollouts, for people. Pure: it decides nothing, and asks `plan` what is next."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from lehr.base.moments import Moment, span
from lehr.base.text import listed
from lehr.canary import Verdict
from lehr.model.asset import AssetId
from lehr.model.evidence import Begun, Ended, RolloutCommand, UnitLook
from lehr.model.release import ReleaseKind
from lehr.rollouts.comparison import Comparison, compared
from lehr.rollouts.course import Course, Rollout
from lehr.rollouts.emergency import in_effect
from lehr.rollouts.figures import RolloutState, is_blocked, state_of
from lehr.rollouts.lanes import Lane, lanes_of
from lehr.rollouts.looking import looked
from lehr.rollouts.members import Member, units_of
from lehr.rollouts.past import PastRollout
from lehr.rollouts.plan import EARLIER_PUSHES, Step, plan
from lehr.rollouts.policy import Policy
from lehr.rollouts.selection import Selection
from lehr.rollouts.services import UNANSWERED


class UnitState(enum.StrEnum):
    """State of a unit in a rollout.

    WAITING: for its wave. NEXT: it is released as soon as `lehr run` looks. HELD: it cannot be pushed now.
    RELEASED: the content is released to it, and its push has not begun. PUSHING: the content is being pushed.
    VALIDATING: it has the content and is healthy; the canary analysis has not decided. GOOD, BAD: it has the
    content. GONE_BACK: it has its earlier content again.
    """

    WAITING = "waiting"
    NEXT = "next"
    HELD = "held"
    RELEASED = "released"
    PUSHING = "pushing"
    VALIDATING = "validating"
    GOOD = "good"
    BAD = "bad"
    GONE_BACK = "gone back"


class UnitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a rollout.

    Attributes:
        assets: those that belong to it.
        since: since when the content is released to it; None if it is not.
        exposure: seconds for which it was good under observation.
        soak_left: seconds of that which its wave still requires.
        validated: whether it has been good at least once, or was promoted.
        why: it is in this state.
        metrics: as they were found last.
    """

    id: str
    assets: tuple[AssetId, ...]
    state: UnitState
    since: Moment | None = None
    exposure: float = 0.0
    soak_left: float = 0.0
    validated: bool = False
    why: str = ""
    metrics: tuple[MetricStatus, ...] = ()


class MetricStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a unit.

    Attributes:
        good: None if that is not known.
        value: what the source answered.
        bounds: which values are good.
        why: it is not good.
    """

    name: str
    good: bool | None
    value: float | bool | None
    bounds: str
    why: str = ""


class RolloutSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The rollouts of one policy now, without units and earlier rollouts.

    Attributes:
        rollout: id of the one under way; empty if none is.
        target: the incarnation whose content it brings; 0 if none is under way.
        wave, waves: the wave under way, and how many there are; 0 if unknown.
        unchanged: units that already have their newest content.
        waits_for: what must happen next, in words; empty if nothing is left to do.
        until: when time alone continues it.
        unblock: what a person can do.
        notes: further remarks.
        canary: verdict of the canary analysis of the wave under way; None if there is none.
        forecast: how it was expected to proceed, and how it does; None without a forecast.
    """

    policy: AssetId
    state: RolloutState
    rollout: str = ""
    target: int = 0
    begun_at: Moment | None = None
    wave: int = 0
    waves: int = 0
    unchanged: int = 0
    waits_for: str = ""
    until: Moment | None = None
    unblock: str = ""
    notes: tuple[str, ...] = ()
    canary: Verdict | None = None
    forecast: Comparison | None = None


class RolloutStatus(RolloutSummary, frozen=True, kw_only=True):
    """The rollouts of one policy now.

    Attributes:
        units: that take part, in the order in which they got the content; then the others, by id.
        lanes: the waves; none while no rollout is under way, or if a selection of the user's own decides.
        past: the rollouts that have ended, newest first.
    """

    units: tuple[UnitStatus, ...] = ()
    lanes: tuple[Lane, ...] = ()
    past: tuple[PastRollout, ...] = ()

    @property
    def summary(self) -> RolloutSummary:
        """The same without units and earlier rollouts."""
        return RolloutSummary(**{name: getattr(self, name) for name in RolloutSummary.__struct_fields__})

    def unit_of(self, asset: AssetId) -> UnitStatus | None:
        """The unit that an asset belongs to, if it takes part."""
        return next((unit for unit in self.units if asset in unit.assets), None)


def status_of(
    policy: Policy,
    course: Course,
    members: Sequence[Member],
    newest: int,
    now: float,
    past: tuple[PastRollout, ...] = (),
) -> RolloutStatus:
    """The rollouts of a policy at `now`, in wall-clock seconds.

    Args:
        members: all assets that the policy governs.
        newest: sequence of the newest incarnation.

    Raises:
        ValueError: the target selection has no answer.
    """
    policy = Policy(policy.id, in_effect(policy.payload, course, newest, now))
    step = _decided(policy, course, members, newest, now)
    running = course.running
    if running is None:
        found = _without(policy, course, members, step, past)
        return found if step.opens_in is None else replace(found, until=now + step.opens_in)
    shown = _decided(policy, replace(course, last=_unheld(running)), members, newest, now)
    units = _units(policy, running, members, shown)
    selection = shown.selection
    taking_part = {unit.id for unit in units}
    state = state_of(running, step)
    waits_for, unblock = _waiting(policy, running, units, step)
    until = None if selection is None or state is not RolloutState.RUNNING else selection.ask_again_at
    if until is None and state is RolloutState.RUNNING and step.opens_in is not None:
        until = now + step.opens_in
    wave = 0 if selection is None else selection.wave
    return RolloutStatus(
        policy=policy.id,
        state=state,
        rollout=running.id,
        target=running.target,
        begun_at=running.begun_at,
        wave=wave,
        lanes=() if selection is None else lanes_of(policy, running, members, now, wave, waits_for),
        waves=len(policy.payload.target_selection.waves),
        units=units,
        unchanged=sum(unit not in taking_part for unit in units_of(members)),
        waits_for=waits_for,
        until=until,
        unblock=unblock,
        notes=_notes(running, selection),
        canary=shown.seen.verdict,
        forecast=compared(running, members),
        past=past,
    )


def _notes(running: Rollout, selection: Selection | None) -> tuple[str, ...]:
    notes = () if selection is None else selection.notes
    return (f"emergency: {running.emergency}", *notes) if running.emergency else notes


def unusable(policy: Policy, course: Course, cause: str, past: tuple[PastRollout, ...] = ()) -> RolloutStatus:
    """The status of a policy whose target selection has no answer."""
    running = course.running
    return RolloutStatus(
        policy=policy.id,
        state=RolloutState.HOLDING,
        rollout="" if running is None else running.id,
        target=0 if running is None else running.target,
        begun_at=None if running is None else running.begun_at,
        waves=len(policy.payload.target_selection.waves),
        waits_for=f"a person: the target selection cannot be used: {cause}",
        unblock="correct `target_selection` of the policy",
        past=past,
    )


def _decided(policy: Policy, course: Course, members: Sequence[Member], newest: int, now: float) -> Step:
    # No time has passed since the last look: so this counts neither as exposure nor as a look.
    return plan(policy.payload, course, members, newest, now, since_look=0.0, new_id="")


def _unheld(running: Rollout) -> Rollout:
    """The rollout without what holds it, so that the selection answers which wave is under way."""
    looks = {unit: replace(look, watched=0.0, bad_in_a_row=0) for unit, look in running.looks.items()}
    return replace(running, paused=None, asked=None, failure=None, looks=looks)


def _without(
    policy: Policy,
    course: Course,
    members: Sequence[Member],
    step: Step,
    past: tuple[PastRollout, ...],
) -> RolloutStatus:
    """The status while no rollout is under way."""
    state, waits_for, unblock = RolloutState.IDLE, step.hold, ""
    blocked: list[UnitStatus] = []
    if begun := [fact for fact in step.facts if isinstance(fact, Begun)]:
        target = begun[0].target
        waits_for = f"a rollout of incarnation {target}, which begins as soon as `lehr run` is active"
    elif step.grants:
        waits_for = _BASELINES
    elif is_blocked(course, members, step):
        state = RolloutState.BLOCKED
        unblock = f"commit other content, or run `lehr rollout retry {policy.id} --reason TEXT`"
        blocked = [
            UnitStatus(id=unit, assets=tuple(item.id for item in of_unit), state=UnitState.WAITING)
            for unit, of_unit in units_of(members).items()
            if any(item.wants_newest for item in of_unit)
        ]
    return RolloutStatus(
        policy=policy.id,
        state=state,
        waves=len(policy.payload.target_selection.waves),
        units=tuple(blocked),
        unchanged=len(units_of(members)) - len(blocked),
        waits_for=waits_for,
        unblock=unblock,
        past=past,
    )


def _units(
    policy: Policy, running: Rollout, members: Sequence[Member], shown: Step
) -> tuple[UnitStatus, ...]:
    by_unit = units_of(members)
    order = [*running.updated, *(unit for unit in by_unit if unit not in running.updated)]
    found = (_unit(unit, by_unit.get(unit, []), policy, running, shown) for unit in order)
    return tuple(item for item in found if item is not None)


def _unit(id: str, members: list[Member], policy: Policy, running: Rollout, shown: Step) -> UnitStatus | None:
    """One unit; None if it does not take part."""
    assets = tuple(item.id for item in members)
    updated_at = running.updated.get(id)
    if id in running.went_back:
        return UnitStatus(id=id, assets=assets, state=UnitState.GONE_BACK, since=updated_at)
    if updated_at is not None:
        return _updated(id, members, policy, running, shown)
    if not any(item.wants_target for item in members):
        return None
    held = "; ".join(f"{item.id} is {item.barred}" for item in members if item.barred)
    if held:
        return UnitStatus(id=id, assets=assets, state=UnitState.HELD, why=held)
    selection = shown.selection
    if selection is not None and id in selection.update:
        return UnitStatus(id=id, assets=assets, state=UnitState.NEXT, why="it is next in its wave")
    why = _first(shown) or ("" if selection is None else selection.others.get(id, ""))
    return UnitStatus(id=id, assets=assets, state=UnitState.WAITING, why=why)


def _updated(id: str, members: list[Member], policy: Policy, running: Rollout, shown: Step) -> UnitStatus:
    look = looked(running.looks.get(id), members, 0.0, 0.0, due=False)
    unproven = "" if id in running.validated else shown.seen.unproven.get(id, "")
    selection, soak = shown.selection, 0.0
    if selection is not None and selection.wave and id not in shown.needs_no_soak:
        soak = policy.payload.target_selection.waves[selection.wave - 1].soak_seconds
    return UnitStatus(
        id=id,
        assets=tuple(item.id for item in members),
        state=_state(look, members, unproven),
        since=running.updated[id],
        exposure=look.exposure,
        soak_left=max(0.0, soak - look.exposure),
        validated=id in running.validated,
        why=look.why or unproven or _no_soak(id, running, shown),
        metrics=tuple(
            MetricStatus(name=name, good=found.good, value=found.value, bounds=metric.bounds, why=found.why)
            for name, metric in policy.payload.validation.metrics.items()
            if (found := look.metrics.get(name)) is not None
        ),
    )


def _no_soak(id: str, running: Rollout, shown: Step) -> str:
    """Why a unit needs no soak; empty if it does."""
    if id in running.promoted:
        return "promoted by a person"
    return "it needs no soak: it had this content before" if id in shown.needs_no_soak else ""


def _state(look: UnitLook, members: list[Member], unproven: str) -> UnitState:
    if look.good:
        return UnitState.VALIDATING if unproven else UnitState.GOOD
    if look.good is not None:
        return UnitState.BAD
    return UnitState.PUSHING if any(item.busy for item in members) else UnitState.RELEASED


_BASELINES = "`lehr run`, which records the content that these assets have"


# --- what it waits for --------------------------------------------------------------------


_ASKED = {
    RolloutCommand.ABORT: "it is aborted",
    RolloutCommand.ROLLBACK: "it is rolled back",
    RolloutCommand.RESTART: "it begins again with the newest content",
}


def _waiting(policy: Policy, running: Rollout, units: Sequence[UnitStatus], step: Step) -> tuple[str, str]:
    """The cause of the wait, and how a person can end it."""
    if running.asked is not None and running.asked.command in _ASKED:
        asked = running.asked
        what = f"`lehr run`: {_ASKED[asked.command]}, as {asked.actor} requested: {asked.reason}"
        return what, ""
    if running.paused is not None:
        why = f"a person: paused by {running.paused.actor}: {running.paused.reason}"
        return why, f"run `lehr rollout resume {policy.id}`"
    if first := _first(step):
        return first, ""
    by = policy.payload.selected_by
    if by is not None and step.hold == UNANSWERED:
        return f"the selection {by.service}; the log of `lehr run` has why it has no answer", ""
    if step.hold and step.opens_in is not None:
        return step.hold, ""
    if step.hold:
        return f"a person: {step.hold}", _unhold(policy, running, step)
    return _next(policy, running, units, step)


def _first(step: Step) -> str:
    """The next step of `lehr run`, if it comes before any further unit is updated; else empty."""
    if step.hold == EARLIER_PUSHES:
        return step.hold
    ends = next((fact for fact in step.facts if isinstance(fact, Ended)), None)
    if ends is not None:
        return f"`lehr run`, which ends the rollout: {ends.why or ends.how}"
    baselines = step.grants and all(grant.kind is ReleaseKind.BASELINE for grant in step.grants)
    return _BASELINES if baselines else ""


def _unhold(policy: Policy, running: Rollout, step: Step) -> str:
    """The steps that end a hold."""
    rest = f"{policy.id} --reason TEXT"
    if step.selection is not None and step.selection.hold and not step.selection.overdue:
        return f"correct the policy, or what holds its units; or run `lehr rollout abort {rest}`"
    if not running.watched:  # the release to what has failed was withdrawn, and nothing can be promoted
        return f"fix the cause, then run `lehr rollout restart {rest}`; or commit other content"
    steps = (f"`lehr rollout promote {rest}`", f"`lehr rollout rollback {rest}`")
    return f"fix the cause or commit other content; or run {' or '.join(steps)}"


def _next(policy: Policy, running: Rollout, units: Sequence[UnitStatus], step: Step) -> tuple[str, str]:
    """The next event that the wave under way needs, and what a person can do if it may never come."""
    if coming := [unit.id for unit in units if unit.state is UnitState.NEXT]:
        return f"`lehr run`, which releases the content to {listed(coming)}", ""
    watched = [unit for unit in units if unit.since is not None and unit.state is not UnitState.GONE_BACK]
    if unproven := [unit.id for unit in watched if not unit.validated]:
        looks = (running.looks.get(unit, UnitLook(None)) for unit in unproven)
        left = policy.payload.validation.deadline - max(look.watched for look in looks)
        then = "fails" if policy.payload.validation.at_deadline == "fail" else "waits for a person"
        limit = f"; after {span(left)} more without that, the rollout {then}" if left > 0 else ""
        why = _in_brackets(step.seen.unproven.get(unit, "") for unit in unproven)
        return f"{listed(unproven)} to be good{why}{limit}", ""
    if bad := [unit for unit in watched if unit.state is not UnitState.GOOD]:
        why = _in_brackets(unit.why for unit in bad)
        return f"{listed([unit.id for unit in bad])} to be good again{why}", _despite_bad(policy)
    soaking = [unit for unit in watched if unit.soak_left > 0]
    most = max((unit.soak_left for unit in soaking), default=0.0)
    return (
        f"{listed([unit.id for unit in soaking])} to stay good for {span(most)} more" if soaking else "",
        "",
    )


def _despite_bad(policy: Policy) -> str:
    """The steps while a unit that was good is not known to be: no deadline ends that wait."""
    rest = f"{policy.id} --reason TEXT"
    return (
        f"fix the cause; or run `lehr rollout promote {rest}`, or `lehr rollout restart {rest}`, which begins"
        " again with the newest content"
    )


def _in_brackets(reasons: Iterable[str]) -> str:
    """The one reason that all have; empty if there is none."""
    found = set(reasons)
    return f" ({found.pop()})" if len(found) == 1 and all(found) else ""

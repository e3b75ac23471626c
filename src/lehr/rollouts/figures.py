"""The rollouts of a policy in figures, and in which state they are. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from lehr.base.moments import Moment
from lehr.model.asset import AssetId
from lehr.model.evidence import RolloutCommand
from lehr.rollouts.course import Course, Rollout
from lehr.rollouts.members import Member, units_of
from lehr.rollouts.plan import EARLIER_PUSHES, Step
from lehr.rollouts.services import UNANSWERED
from lehr.rollouts.taking_part import taking_part_in

ENDING = (RolloutCommand.ABORT, RolloutCommand.ROLLBACK, RolloutCommand.RESTART)
"""Commands that end a rollout."""


class RolloutState(enum.StrEnum):
    """State of a policy's rollouts.

    RUNNING: one is under way. PAUSED: a person paused it. HOLDING: it waits until a person decides. BLOCKED:
    none begins, because the content has failed. IDLE: there is nothing to roll out.
    """

    RUNNING = "running"
    PAUSED = "paused"
    HOLDING = "holding"
    BLOCKED = "blocked"
    IDLE = "idle"


class RolloutFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The rollouts of one policy now.

    Attributes:
        begun_at: when the one under way began, in wall-clock seconds; None if none is.
        waiting: units that are still to get its content.
        updated: those that it is released to, and that are not validated yet.
        validated: those that are.
        failed: those that were not good with it, or went back.
    """

    policy: AssetId
    state: RolloutState
    begun_at: Moment | None = None
    waiting: int = 0
    updated: int = 0
    validated: int = 0
    failed: int = 0


def state_of(running: Rollout, step: Step) -> RolloutState:
    """The state of a rollout under way, by its next step."""
    if running.asked is not None and running.asked.command in ENDING:
        return RolloutState.RUNNING
    if running.paused is not None:
        return RolloutState.PAUSED
    goes_on = step.hold in ("", UNANSWERED, EARLIER_PUSHES) or step.opens_in is not None
    return RolloutState.RUNNING if goes_on else RolloutState.HOLDING


def is_blocked(course: Course, members: Sequence[Member], step: Step) -> bool:
    """Whether no rollout begins because the content has failed."""
    return bool(step.hold) and any(
        course.failures(item.id, item.newest) for item in members if item.wants_newest
    )


def figures_of(policy: AssetId, course: Course, members: Sequence[Member], step: Step) -> RolloutFigures:
    """The rollouts of a policy, by the next step."""
    running = course.running
    if running is None:
        blocked = is_blocked(course, members, step)
        return RolloutFigures(policy=policy, state=RolloutState.BLOCKED if blocked else RolloutState.IDLE)
    failed = set(running.went_back)
    if running.failure is not None:
        failed.add(running.failure.unit)
    sound = [unit for unit in running.watched if unit not in failed]
    validated = sum(unit in running.validated for unit in sound)
    return RolloutFigures(
        policy=policy,
        state=state_of(running, step),
        begun_at=running.begun_at,
        waiting=_waiting(running, members, step),
        updated=len(sound) - validated,
        validated=validated,
        failed=len(failed),
    )


def _waiting(running: Rollout, members: Sequence[Member], step: Step) -> int:
    if step.selection is not None:  # it names every unit that takes part
        return sum(unit not in running.updated for unit in (*step.selection.update, *step.selection.others))
    units = taking_part_in(running, units_of(members), running.begun_at)
    return sum(not unit.updated for unit in units.values())

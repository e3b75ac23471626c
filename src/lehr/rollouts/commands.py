"""Commands of people about rollouts: as evidence, and their results in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.base.errors import LehrError
from lehr.base.text import listed
from lehr.model.asset import AssetId, Partition
from lehr.model.evidence import Commanded, Evidence, RolloutCommand
from lehr.rollouts.course import Course
from lehr.rollouts.policy import Policy

_DONE = {
    RolloutCommand.PAUSE: "paused",
    RolloutCommand.RESUME: "resumed",
    RolloutCommand.PROMOTE: "promoted: what has the new content counts as good",
    RolloutCommand.ABORT: "aborted: what has the new content keeps it",
    RolloutCommand.ROLLBACK: "being rolled back",
    RolloutCommand.RESTART: "being restarted with the newest content",
    RolloutCommand.RETRY: "free to try content again that has failed",
}

_HAS_ENDED = (RolloutCommand.RETRY,)
"""Commands that do not need a rollout under way."""


def chosen_policy(name: str, policies: Sequence[Policy]) -> AssetId:
    """The policy that a command is about: the one of this name, or the only one if it is empty.

    Raises:
        LehrError: there is no such policy, or the command has to name one.
    """
    ids = [policy.id for policy in policies]
    if name in ids:
        return AssetId(name)
    known = f"policies in force: {listed(ids)}" if ids else "no rollout policy is in force"
    if name:
        raise LehrError(f"there is no rollout policy {name}", code="CTL140", why=known)
    if len(ids) != 1:
        raise LehrError("name a rollout policy", code="CTL141", why=known)
    return ids[0]


def commanded(
    action: RolloutCommand,
    policy: AssetId,
    course: Course,
    *,
    partition: Partition,
    actor: str,
    reason: str,
    now: float,
) -> Evidence:
    """The evidence of a command.

    Raises:
        LehrError: it would have no effect, or has no reason.
    """
    if action is not RolloutCommand.RESUME:
        require_reason(reason)
    rollout = course.last if action in _HAS_ENDED else course.running
    if rollout is None:
        raise LehrError(
            f"no rollout of {policy} is under way",
            code="CTL142",
            fix=f"see `lehr rollout show {policy}`",
        )
    if action is RolloutCommand.RESUME and rollout.paused is None:
        raise LehrError(f"the rollout of {policy} is not paused", code="CTL143")
    if action is RolloutCommand.PROMOTE and not rollout.watched:
        raise LehrError(
            f"the rollout of {policy} has updated nothing yet",
            code="CTL144",
            why="only what has the new content can be promoted",
            fix=f"to try again after a failure, run `lehr rollout restart {policy} --reason TEXT`",
        )
    fact = Commanded(action, actor, reason)
    return Evidence(partition=partition, policy=policy, rollout=rollout.id, at=now, fact=fact)


def summary(action: RolloutCommand, policy: AssetId) -> str:
    """The result of a command, on one line."""
    return f"the rollout of {policy} is {_DONE[action]}"


def require_reason(reason: str) -> None:
    """Check that a command has a reason.

    Raises:
        LehrError: it has none.
    """
    if not reason.strip():
        raise LehrError(
            "a reason is needed", code="CTL109", why="later readers need to know why", fix="--reason TEXT"
        )

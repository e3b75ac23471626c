"""Translates commands about rollouts into evidence, with pure functions of the known state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lehr.base.errors import LehrError
from lehr.base.text import listed
from lehr.control.messages import CommandRollout, ReleaseToIntent
from lehr.enforce.governance import Governance
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.evidence import Commanded, Evidence, RolloutCommand
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
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


def chosen_policy(request: CommandRollout, policies: Sequence[Policy]) -> AssetId:
    """The policy that a command is about: the only one, if it names none.

    Raises:
        LehrError: there is no such policy, or the command has to name one.
    """
    ids = [policy.id for policy in policies]
    if request.policy in ids:
        return AssetId(request.policy)
    known = f"policies in force: {listed(ids)}" if ids else "no rollout policy is in force"
    if request.policy:
        raise LehrError(f"there is no rollout policy {request.policy}", code="CTL140", why=known)
    if len(ids) != 1:
        raise LehrError("name a rollout policy", code="CTL141", why=known)
    return ids[0]


def commanded(
    request: CommandRollout, policy: AssetId, course: Course, *, partition: Partition, actor: str, now: float
) -> Evidence:
    """The evidence of a command.

    Raises:
        LehrError: it would have no effect, or has no reason.
    """
    if request.action is not RolloutCommand.RESUME:
        _require_reason(request.reason)
    rollout = course.last if request.action in _HAS_ENDED else course.running
    if rollout is None:
        raise LehrError(
            f"no rollout of {policy} is under way",
            code="CTL142",
            fix=f"see `lehr rollout show {policy}`",
        )
    if request.action is RolloutCommand.RESUME and rollout.paused is None:
        raise LehrError(f"the rollout of {policy} is not paused", code="CTL143")
    if request.action is RolloutCommand.PROMOTE and not rollout.watched:
        raise LehrError(
            f"the rollout of {policy} has updated nothing yet",
            code="CTL144",
            why="only what has the new content can be promoted",
        )
    fact = Commanded(request.action, actor, request.reason)
    return Evidence(partition=partition, policy=policy, rollout=rollout.id, at=now, fact=fact)


def summary(action: RolloutCommand, policy: AssetId) -> str:
    """The result of a command, on one line."""
    return f"the rollout of {policy} is {_DONE[action]}"


def to_intent(
    request: ReleaseToIntent,
    assets: Sequence[Asset],
    governance: Governance,
    *,
    actor: str,
    now: float,
    identifier: Callable[[], str],
) -> tuple[Release, ...]:
    """The releases after which those of `assets` follow intent that releases hold.

    Args:
        assets: as intent last had them.
        identifier: makes ids of releases, each greater than the one before.

    Raises:
        LehrError: a policy governs one of them, or releases hold none of them; or there is no reason.
    """
    _require_reason(request.reason)
    for asset in assets:
        policy = governance.policies.of(asset)
        if policy is not None and not governance.releases.frees(asset.id):
            raise LehrError(
                f"a rollout policy governs {asset.id}",
                code="CTL146",
                why=f"{policy.id} selects it",
                fix=f"see `lehr rollout show {policy.id}`; or change what the policy selects",
            )
    held = [asset.id for asset in assets if governance.releases.of(asset.id) is not None]
    if not held:
        why = "they follow intent already"
        raise LehrError(f"no release holds an asset of {request.selector}", code="CTL147", why=why)
    return tuple(
        Release(
            id=identifier(),
            partition=governance.incarnation.partition,
            asset=id,
            target=None,
            kind=ReleaseKind.PERSON,
            basis=ReleaseBasis(governance.digest),
            at=now,
            actor=actor,
            reason=request.reason,
        )
        for id in held
    )


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise LehrError(
            "a reason is needed", code="CTL109", why="later readers need to know why", fix="--reason TEXT"
        )

"""Parts that the steps of a turn share: what its state holds, and when an asset is looked at again."""

from __future__ import annotations

from lehr.base.backoff import delay as backoff
from lehr.base.digest import Digest, digest_all
from lehr.enforce.state import Commit, Effect, State, Trouble, Turn, View
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Status
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.reason import Reason
from lehr.model.writes import Write

StepResult = tuple[State, tuple[Effect, ...]]

LOOK_AGAIN = 5.0
"""Seconds until something is looked at again that ends without a notification."""

LOOK_AT_LEAST = 60.0
"""The longest time, in seconds, until something is looked at again."""

ASK_AGAIN = 0.2
"""The shortest, for something that changes soon."""


def turn_of(state: State) -> Turn:
    """The turn under way."""
    assert state.turn is not None
    return state.turn


def diff_of(turn: Turn) -> Diff:
    """The result of the comparison of a turn."""
    assert turn.diff is not None
    return turn.diff


def operation_of(state: State) -> Operation:
    """The push under way, or whose outcome is not known."""
    assert state.operation is not None
    return state.operation


def target_of(state: State, operation: Operation) -> Target:
    """The target of a push."""
    partition, asset, type = operation.partition, operation.asset, operation.type
    content, goal = operation.content, operation.goal
    restart = turn_of(state).view.restart(goal)
    return state.identified(Target(partition, asset, type, content, goal, restart=restart))


def type_of(state: State) -> str:
    """Of the asset that the plugin was asked about."""
    asset = turn_of(state).view.asset
    return asset.type if state.operation is None and asset is not None else operation_of(state).type


def goal_of(state: State) -> Goal:
    """The goal that production was compared with."""
    return turn_of(state).view.goal if state.operation is None else state.operation.goal


def content_key(turn: Turn) -> Digest:
    """The content of a turn, with its goal: failures count for this alone."""
    assert turn.content_digest is not None
    return digest_all((turn.content_digest, turn.view.goal))


def ledger_entry(operation: Operation, at: float) -> LedgerEntry:
    """The entry of a push that has succeeded."""
    return LedgerEntry(
        operation.partition,
        operation.asset,
        operation.content_digest,
        operation.content,
        operation.goal,
        operation.id,
        at,
    )


def committed(writes: tuple[Write, ...]) -> tuple[Commit, ...]:
    """These writes as an effect; none if there are none."""
    return (Commit(writes),) if writes else ()


def failed_again(state: State, key: Digest, view: View, failure: tuple[str, str, str]) -> Trouble:
    """The trouble of an asset after one more failure in a row."""
    failures = state.trouble.failures + 1
    not_before = view.monotonic + backoff(failures, view.jitter)
    return Trouble(key, failures, not_before=not_before, last_failure=failure)


def mutual_block(cycle: tuple[AssetId, ...]) -> Condition:
    """The condition of an asset that waits for itself, through these assets."""
    chain = " waits for ".join((*cycle, cycle[0]))
    return Condition(
        Status.WAITING,
        Reason.MUTUAL_BLOCK,
        f"{chain}: none of them can go first",
        "change one of these dependencies, or what one of these changes does",
    )

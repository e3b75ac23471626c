"""How a turn ends: a condition, and a decision if the verdict has changed. Pure.

A turn that ends like the last one is only counted, so history stays readable: one record for
each change, with the number of turns that had confirmed the one before.
"""

from __future__ import annotations

import functools
from typing import Any

from msgspec.structs import replace

from lehr.base.errors import LehrError, StalledError
from lehr.enforce.state import Broke, Commit, Effect, Phase, Rest, State
from lehr.model.asset import AssetId, AssetKey
from lehr.model.damage import DamagedError
from lehr.model.decision import LEFT, Condition, Decision, Status
from lehr.model.diff import Goal
from lehr.model.operation import Operation
from lehr.model.reason import Reason
from lehr.model.writes import RecordDecision, Reschedule, Write

_SAME_TIME = 1.0
_BROKEN_SECONDS = 10.0
_LONGEST_BROKEN_SECONDS = 300.0

_key = functools.lru_cache(1024)(Condition.key)
"""Most turns end in one of few conditions, and a key takes 1.3 us."""


def conclude(
    state: State,
    condition: Condition,
    *,
    delay: float | None = None,
    wait_for: tuple[AssetId, ...] = (),
    writes: tuple[Write, ...] = (),
    operation: str | None = None,
    settled: bool = False,
    looks: bool = True,
) -> tuple[State, tuple[Effect, ...]]:
    """End the turn of `state` with `condition`.

    Args:
        delay: seconds until the next turn that is already due; None for the resync.
        wait_for: assets whose settling wakes this one.
        writes: written before the decision, in the same commit.
        operation: id of the push that the decision is about.
        looks: False when a regular turn would not compare production.
    """
    assert state.turn is not None
    view = state.turn.view
    if view.pinning.until is not None:
        # A control expires then, and the turn may end differently.
        left = view.pinning.until - view.now
        delay = left if delay is None else min(delay, left)
    key = _key(condition)
    if delay is not None:
        condition = replace(condition, next_at=view.now + delay)
    if looks and not settled:
        condition = replace(condition, resync=view.resync)
    changed = key != state.condition_key
    if changed:
        writes = (*writes, RecordDecision(decision_of(state, condition, operation=operation)))
    elif _due_time_changed(state.next_at, condition.next_at):
        writes = (*writes, Reschedule(view.key, condition, view.now))
    ended = replace(
        state,
        phase=Phase.IDLE,
        turn=None,
        condition_key=key,
        turns=0 if changed else state.turns + 1,
        next_at=condition.next_at,
        left=condition.status in LEFT,
        refused=0,
    )
    diff = state.turn.diff
    quiet = not settled and diff is not None and diff.empty
    rest = Rest(delay, wait_for, settled, quiet)
    return ended, ((Commit(writes), rest) if writes else (rest,))


def broke(key: AssetKey, governing: int, now: float, cause: str, error: LehrError | str) -> Broke:
    """The event of a turn that could not be finished.

    Args:
        governing, now, cause: of the turn.
        error: the failure, on one line.
    """
    return Broke(key, governing, now, cause, _condition_of(error))


def broken(state: State, event: Broke) -> tuple[State, tuple[Commit, Rest]]:
    """End a turn that could not be finished: the store could not be read, or something else failed.

    An asset that needs an operator stalls. Any other is retried automatically, less and less often.

    Args:
        state: as it was when it failed, with or without a turn.
    """
    condition, now = event.condition, event.now
    delay: float | None = None
    if condition.status is not Status.STALLED:
        again = state.turns + 1 if condition.key() == state.condition_key else 0
        delay = min(_BROKEN_SECONDS * 2 ** min(again, 8), _LONGEST_BROKEN_SECONDS)
        condition = replace(condition, next_at=now + delay)
    writes: tuple[Write, ...] = ()
    if condition.key() != state.condition_key:
        decision = Decision(
            partition=event.key.partition,
            asset=event.key.id,
            at=now,
            content=0,  # its basis is not reliable
            governing=event.governing,
            goal=Goal.PRESENT if state.ledger is None else state.ledger.goal,
            condition=condition,
            event=event.cause,
            turns=state.turns,
        )
        writes = (RecordDecision(decision),)
    ended = replace(
        state,
        phase=Phase.IDLE,
        turn=None,
        condition_key=condition.key(),
        turns=0 if writes else state.turns + 1,
        next_at=condition.next_at,
        left=False,
        refused=0,
    )
    return ended, (Commit(writes), Rest(delay))


def _condition_of(error: LehrError | str) -> Condition:
    if isinstance(error, LehrError):
        message = f"{error.what}: {error.why}" if error.why else error.what
        if isinstance(error, StalledError):
            reason = Reason.DAMAGED if isinstance(error, DamagedError) else Reason.UNREADABLE
            return Condition(Status.STALLED, reason, message, error.fix or "see the log of `lehr run`")
        unblock = error.fix or "wait; Lehr retries automatically"
        return Condition(Status.RETRYING, Reason.STORE_UNAVAILABLE, message, unblock)
    unblock = "see the traceback in the log of `lehr run`; Lehr retries automatically"
    return Condition(Status.RETRYING, Reason.TURN_BROKE, f"the turn failed: {error}", unblock)


def _due_time_changed(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(before - after) > _SAME_TIME


def decision_of(state: State, condition: Condition, *, operation: str | None = None) -> Decision:
    """The record of the turn under way."""
    assert state.turn is not None
    turn = state.turn
    view = turn.view
    return Decision(
        partition=view.key.partition,
        asset=view.key.id,
        at=view.now,
        content=view.pinning.content if view.asset is not None else 0,
        governing=view.governing,
        goal=view.goal,
        condition=condition,
        event=view.cause,
        diff=turn.diff,
        verdicts=turn.verdicts,
        awaits=turn.awaits,
        operation=operation,
        turns=state.turns,
        evidence=_evidence(state),
    )


def _evidence(state: State) -> dict[str, Any]:
    assert state.turn is not None
    turn, trouble = state.turn, state.trouble
    found: dict[str, Any] = {}
    if turn.content_digest is not None:
        found["content_digest"] = turn.content_digest
    if turn.view.pinning.pin is not None:
        found["pin"] = turn.view.pinning.pin.id
    if turn.view.pinning.restarts:
        found["restart"] = turn.view.pinning.restart
    if turn.view.pinning.released is not None and turn.view.pinning.released.release is not None:
        found["release"] = turn.view.pinning.released.release.id
    if turn.elsewhere:
        found["read_at"] = dict(turn.elsewhere)
    if trouble.failures:
        found["failures"] = trouble.failures
    if trouble.failed_diffs:
        found["failed_diffs"] = trouble.failed_diffs
    if trouble.ineffective:
        found["ineffective_pushes"] = trouble.ineffective
    if state.contest.level:
        found["contested_pushes"] = state.contest.level
    return found


def pushing_condition(operation: Operation) -> Condition:
    """The condition of an asset while its push is under way."""
    return Condition(
        Status.PUSHING, Reason.PUSHING, f"push {operation.id} is under way", "wait until the push ends"
    )

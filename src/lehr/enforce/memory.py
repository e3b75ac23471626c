"""The memory that the loop of an asset has of pushes that did not succeed, from its last decision. Pure.

The running process keeps it in memory, and records it with each decision. Another process reads it from there
to find out how the next turn would end.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from lehr.enforce.contest import NO_CONTEST, Contest
from lehr.enforce.kept_turn import TurnInputs, unpack
from lehr.enforce.state import NO_TROUBLE, Begin, Ended, State, Trouble
from lehr.enforce.step import step
from lehr.model.decision import Decision


class Memory(NamedTuple):
    """The part of a `State` that only a running process has."""

    trouble: Trouble = NO_TROUBLE
    contest: Contest = NO_CONTEST

    @property
    def slows(self) -> bool:
        """Whether a retry would make a difference: it forgets what keeps the asset from being pushed."""
        trouble = self.trouble
        troubled = trouble.failures or trouble.failed_diffs or trouble.ineffective or trouble.stalled
        return bool(troubled or self.contest.level)


NO_MEMORY = Memory()


def memory_after(decision: Decision, inputs: bytes, now: float, monotonic: float) -> Memory:
    """The memory after a decision.

    Args:
        now: wall-clock seconds; `monotonic`: of the same moment. Both of the caller, since the monotonic
            clock of the process that decided may be another one.

    Raises:
        msgspec.DecodeError: these are not inputs of a decision.
    """
    recorded = unpack(inputs, decision)
    state: State = recorded.state
    for event in recorded.events:
        state, _effects = step(state, event)
    trouble, contest = state.trouble, state.contest
    then = _monotonic_of(recorded)
    if then is None:
        return Memory(replace(trouble, not_before=0.0), replace(contest, not_before=0.0))
    # From the clock of the process that decided to that of the caller.
    ahead = monotonic - then - (now - decision.at)
    return Memory(
        replace(trouble, not_before=trouble.not_before + ahead) if trouble.not_before else trouble,
        replace(contest, not_before=contest.not_before + ahead) if contest.not_before else contest,
    )


def _monotonic_of(recorded: TurnInputs) -> float | None:
    """The monotonic seconds at the time of the decision; None for a turn that broke before it began."""
    for event in reversed(recorded.events):
        if isinstance(event, Ended):
            return event.monotonic
        if isinstance(event, Begin):
            return event.view.monotonic
    return None

"""The inputs of decisions, and the same decisions once more. Pure.

`step` is a function of a state and an event, so the state before a turn and the events of the turn are enough
to decide it again. `kept_turn` has the form in which they are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lehr.enforce.kept_turn import pack, unpack
from lehr.enforce.state import (
    AskAdmission,
    Commit,
    Effect,
    Event,
    Rest,
    State,
)
from lehr.enforce.step import step
from lehr.model.decision import Decision
from lehr.model.writes import RecordDecision


def with_inputs(state: State, events: Sequence[Event], effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """The effects of the last event, with the inputs of their decision if they have one.

    Args:
        state: before the turn.
        events: of the turn so far.
    """
    last = effects[-1]
    if type(last) is AskAdmission:
        admit = last.admit
        assert admit.decision is not None
        packed = pack(state, events, admit.decision)
        return (*effects[:-1], AskAdmission(replace(admit, inputs=packed), last.retry))
    if len(effects) > 1 and type(last) is Rest:
        # A turn that ends writes its decision last.
        commit = effects[-2]
        assert isinstance(commit, Commit)
        if commit.writes and isinstance(write := commit.writes[-1], RecordDecision):
            decided = RecordDecision(write.decision, pack(state, events, write.decision))
            return (*effects[:-2], Commit((*commit.writes[:-1], decided)), last)
    return effects


def decide_again(decision: Decision, inputs: bytes) -> Decision | None:
    """What `step` decides on the inputs of `decision`: the same, unless `step` has changed; None for nothing.

    Raises:
        msgspec.DecodeError: these are not inputs of a decision.
    """
    recorded = unpack(inputs, decision)
    state: State = recorded.state
    effects: tuple[Effect, ...] = ()
    for event in recorded.events:
        state, effects = step(state, event)
    return _decision_in(effects)


def _decision_in(effects: Sequence[Effect]) -> Decision | None:
    for effect in effects:
        if isinstance(effect, AskAdmission):
            return effect.admit.decision
        if isinstance(effect, Commit):
            for write in effect.writes:
                if isinstance(write, RecordDecision):
                    return write.decision
    return None

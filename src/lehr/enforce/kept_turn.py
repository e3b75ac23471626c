"""Turns in the form that is kept with their decisions. Pure.

It leaves out

* what the decision has: its times, cause, incarnations, diff, verdicts;
* what intent has: of an asset, only its type is kept;
* handles and outputs, which are records of their own and decide nothing;
* what only admission looks at: the basis of the verdicts, and the budget of removals;
* what no step looks at before it is replaced, such as the diff of a push that has succeeded.

Values that production or plugins choose are kept as JSON, as in the decision; all else by the positions of
the fields of the classes below, so a field that is added goes to the end and has a default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.contest import NO_CONTEST, Contest
from lehr.enforce.state import (
    NO_TROUBLE,
    Admitted,
    Begin,
    Broke,
    Checked,
    Deferred,
    Diffed,
    DiffFailed,
    Ended,
    Event,
    NotAdmitted,
    Phase,
    State,
    StatusReported,
    Trouble,
    Turn,
    View,
)
from lehr.enforce.turndown import TurndownStage
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Decision, Verdict
from lehr.model.diff import Diff, Goal
from lehr.model.operation import LedgerEntry, Operation, Outcome, Progress, Purpose, Result
from lehr.model.pinning import Pinning
from lehr.model.writes import Refused

T = TypeVar("T")


class TurnInputs(Struct, frozen=True):
    """The state before a turn, and the events of the turn up to the one that decided it."""

    state: State
    events: tuple[Event, ...]


class _View(Struct, array_like=True, frozen=True):
    """`type`: None where there is no asset; `stage`, `pinning`: None for the usual one."""

    monotonic: float
    epoch: int
    jitter: float
    type: str | None
    resync: float | None = None
    stage: TurndownStage | None = None
    pinning: Pinning | None = None
    observe: str | None = None
    orphaned: bool = False
    served: bool = True
    fenced: bool = False


class _Compared(Struct, array_like=True, frozen=True):
    """`diff`: True for that of the decision, or as JSON; None for none. The others: None for its."""

    diff: bytes | bool | None
    content_digest: Digest | None
    elsewhere: tuple[tuple[AssetId, int], ...] | None


class _Ledger(Struct, array_like=True, frozen=True):
    content_digest: Digest
    content: int
    goal: str
    operation: str | None
    at: float


class _Push(Struct, array_like=True, frozen=True):
    """The operation that the turn has started."""

    id: str
    started_at: float
    purpose: Purpose
    diff_digest: Digest


class _State(Struct, array_like=True, frozen=True):
    """`verdicts`: None for those of the decision; or as JSON."""

    phase: int = 0
    refused: int = 0
    ledger: _Ledger | None = None
    trouble: Trouble | None = None
    contest: Contest | None = None
    operation: Operation | None = None
    view: _View | None = None
    compared: _Compared | None = None
    verdicts: bytes | None = None
    push: _Push | None = None


class _Begin(Struct, array_like=True, frozen=True, tag=0):
    view: _View


class _StatusReported(Struct, array_like=True, frozen=True, tag=1):
    progress: Progress | None
    message: str


class _Diffed(Struct, array_like=True, frozen=True, tag=2):
    compared: _Compared


class _DiffFailed(Struct, array_like=True, frozen=True, tag=3):
    """`message`, `awaits`: None for those of the decision."""

    message: str | None
    fix: str
    stalled: bool
    until: float | None
    refers_to: tuple[AssetId, ...]
    awaits: tuple[AssetId, ...] | None
    cycle: tuple[AssetId, ...]


class _Checked(Struct, array_like=True, frozen=True, tag=4):
    """`verdicts`: None for those of the decision; or as JSON."""

    verdicts: bytes | None
    operation_id: str
    cycle: tuple[AssetId, ...]


class _Admitted(Struct, array_like=True, frozen=True, tag=5):
    operation: Operation


class _NotAdmitted(Struct, array_like=True, frozen=True, tag=6):
    """`message`: None for that of the decision's condition."""

    reason: str
    message: str | None
    until: float | None
    wait_for: tuple[AssetId, ...]


class _Deferred(Struct, array_like=True, frozen=True, tag=7):
    reason: str
    message: str
    delay: float | None


class _Ended(Struct, array_like=True, frozen=True, tag=8):
    """At the time of the decision."""

    result: Result
    message: str
    retry_at: float | None
    monotonic: float
    superseded: bool


class _Broke(Struct, array_like=True, frozen=True, tag=9):
    """With the condition of the decision, except for its times."""


_Event = (
    _Begin
    | _StatusReported
    | _Diffed
    | _DiffFailed
    | _Checked
    | _Admitted
    | _NotAdmitted
    | _Deferred
    | _Ended
    | _Broke
)


class _Inputs(Struct, array_like=True, frozen=True):
    state: _State
    events: tuple[_Event, ...]


_encode = msgspec.msgpack.Encoder(order="deterministic").encode  # sets are sorted
_decode = msgspec.msgpack.Decoder(_Inputs).decode
_NONE = Digest("")
_json = msgspec.json.Encoder().encode
_diff_of = msgspec.json.Decoder(Diff).decode
_verdicts_of = msgspec.json.Decoder(tuple[Verdict, ...]).decode
_PHASES = {phase: place for place, phase in enumerate(Phase)}


# --- packing -----------------------------------------------------------------
# Into tuples, in the order of the fields of the classes above: thousands of turns are recorded a second, and
# a tuple is made in a fraction of the time of an object.


def pack(state: State, events: Sequence[Event], decision: Decision) -> bytes:
    """The kept form of the inputs of `decision`; arguments as of `with_inputs`."""
    packed = [_PACKERS[type(event)](event, decision) for event in events]
    if state.turn is None:
        return _encode(((*_remembered(state), state.operation), packed))
    return _encode(((*_remembered(state), None, *_packed_turn(state, events[0], decision)), packed))


def _remembered(state: State) -> tuple[Any, ...]:
    ledger, trouble, contest = state.ledger, state.trouble, state.contest
    return (
        _PHASES[state.phase],
        state.refused,
        ledger and (ledger.content_digest, ledger.content, ledger.goal, ledger.operation, ledger.at),
        None if trouble is NO_TROUBLE else trouble,
        None if contest is NO_CONTEST else contest,
    )


def _packed_turn(state: State, first: Event, decision: Decision) -> tuple[Any, ...]:
    turn, operation = state.turn, state.operation
    assert turn is not None
    assert operation is not None
    # No step looks at the diff of a push that succeeded.
    pushed = type(first) is Ended and first.outcome.result is Result.DONE
    return (
        _packed_view(turn.view),
        _compared(None if pushed else turn.diff, turn.content_digest, turn.elsewhere, decision),
        _verdicts(turn.verdicts, decision),
        (operation.id, operation.started_at, operation.purpose, operation.diff_digest),
    )


def _packed_view(view: View) -> tuple[Any, ...]:
    asset, pinning, stage = view.asset, view.pinning, view.stage
    plain = stage.until is None and stage.obstacle is None and not stage.held and not stage.wait_for
    free = not (pinning.held or pinning.pause or pinning.until or pinning.approved or pinning.restarts)
    return (
        view.monotonic,
        view.epoch,
        view.jitter,
        None if asset is None else asset.type,
        view.resync,
        None if plain else stage,
        None if free and asset is not None else pinning,
        view.observe,
        view.orphaned,
        view.served,
        view.fenced,
    )


def _compared(
    diff: Diff | None,
    digest: Digest | None,
    elsewhere: tuple[tuple[AssetId, int], ...],
    decision: Decision,
) -> tuple[Any, ...]:
    evidence = decision.evidence
    return (
        None if diff is None else diff is decision.diff or diff == decision.diff or _json(diff),
        None if digest == evidence.get("content_digest") else digest,
        None if dict(elsewhere) == evidence.get("read_at", {}) else elsewhere,
    )


def _packed_diffed(event: Diffed, decision: Decision) -> tuple[Any, ...]:
    diff = event.diff
    if diff.handle is not UNSET or diff.outputs is not UNSET:
        diff = replace(diff, handle=UNSET, outputs=UNSET)
    return 2, _compared(diff, event.content_digest, event.elsewhere, decision)


def _verdicts(verdicts: tuple[Verdict, ...], decision: Decision) -> bytes | None:
    return None if verdicts is decision.verdicts or verdicts == decision.verdicts else _json(verdicts)


def _packed_checked(event: Checked, decision: Decision) -> tuple[Any, ...]:
    return 4, _verdicts(event.verdicts, decision), event.operation_id, event.cycle


def _packed_failure(event: DiffFailed, decision: Decision) -> tuple[Any, ...]:
    message = None if event.message == decision.condition.message else event.message
    awaits = None if event.awaits == decision.awaits else event.awaits
    return 3, message, event.fix, event.stalled, event.until, event.refers_to, awaits, event.cycle


def _packed_refusal(event: NotAdmitted, decision: Decision) -> tuple[Any, ...]:
    refused = event.refused
    message = None if refused.message == decision.condition.message else refused.message
    return 6, refused.reason, message, refused.until, event.wait_for


def _packed_end(event: Ended, decision: Decision) -> tuple[Any, ...]:
    outcome = event.outcome
    return 8, outcome.result, outcome.message, outcome.retry_at, event.monotonic, event.superseded


_PACKERS: dict[type, Callable[[Any, Decision], tuple[Any, ...]]] = {
    Begin: lambda event, decision: (0, _packed_view(event.view)),
    StatusReported: lambda event, decision: (1, event.progress, event.message),
    Diffed: _packed_diffed,
    DiffFailed: _packed_failure,
    Checked: _packed_checked,
    Admitted: lambda event, decision: (5, event.operation),
    NotAdmitted: _packed_refusal,
    Deferred: lambda event, decision: (7, event.reason, event.message, event.delay),
    Ended: _packed_end,
    Broke: lambda event, decision: (9,),
}


# --- unpacking ---------------------------------------------------------------


def unpack(data: bytes, decision: Decision) -> TurnInputs:
    """The inputs of `decision`. Assets are without their bodies.

    Raises:
        msgspec.DecodeError: these are not inputs of a decision.
    """
    kept = _decode(data)
    state = _state_of(kept.state, decision)
    return TurnInputs(state, tuple([_event_of(event, decision) for event in kept.events]))


def _state_of(kept: _State, decision: Decision) -> State:
    partition, asset = decision.partition, decision.asset
    ledger = kept.ledger
    state = State(
        phase=tuple(Phase)[kept.phase],
        operation=kept.operation,
        ledger=None
        if ledger is None
        else LedgerEntry(
            partition,
            asset,
            ledger.content_digest,
            ledger.content,
            Goal(ledger.goal),
            ledger.operation,
            ledger.at,
        ),
        trouble=kept.trouble or NO_TROUBLE,
        contest=kept.contest or NO_CONTEST,
        turns=decision.turns,
        refused=kept.refused,
    )
    if kept.view is None or kept.compared is None:
        return state
    diff, digest, elsewhere = _found(kept.compared, decision)
    verdicts = _verdicts_in(kept.verdicts, decision)
    turn = Turn(_view_of(kept.view, decision), diff, digest, verdicts, elsewhere)
    push = kept.push
    return replace(
        state, turn=turn, operation=state.operation if push is None else _pushed(push, turn, decision)
    )


def _pushed(push: _Push, turn: Turn, decision: Decision) -> Operation:
    """The operation as it was admitted from the turn."""
    view = turn.view
    assert view.asset is not None
    assert turn.content_digest is not None
    return Operation(
        push.id,
        decision.partition,
        decision.asset,
        view.asset.type,
        view.goal,
        view.pinning.content,
        view.governing,
        turn.content_digest,
        push.diff_digest,
        view.epoch,
        push.started_at,
        purpose=push.purpose,
        release=view.pinning.release,
    )


def _view_of(kept: _View, decision: Decision) -> View:
    return View(
        AssetKey(decision.partition, decision.asset),
        decision.at,
        kept.monotonic,
        decision.event,
        kept.pinning or Pinning(decision.content),
        decision.governing,
        None if kept.type is None else Asset(decision.asset, kept.type, b"", _NONE),
        newest_digest=None,
        governance=_NONE,
        controls=0,
        releases=0,
        stage=kept.stage or TurndownStage(decision.goal),
        epoch=kept.epoch,
        observe=kept.observe,
        orphaned=kept.orphaned,
        served=kept.served,
        jitter=kept.jitter,
        resync=kept.resync,
        fenced=kept.fenced,
    )


def _found(
    kept: _Compared, decision: Decision
) -> tuple[Diff | None, Digest | None, tuple[tuple[AssetId, int], ...]]:
    evidence, diff = decision.evidence, kept.diff
    digest = kept.content_digest or evidence.get("content_digest")
    elsewhere = tuple(evidence.get("read_at", {}).items()) if kept.elsewhere is None else kept.elsewhere
    if isinstance(diff, bytes):
        return _diff_of(diff), digest, elsewhere
    return decision.diff if diff else None, digest, elsewhere


def _verdicts_in(kept: bytes | None, decision: Decision) -> tuple[Verdict, ...]:
    return decision.verdicts if kept is None else _verdicts_of(kept)


def _event_of(kept: _Event, decision: Decision) -> Event:
    match kept:
        case _Begin():
            return Begin(_view_of(kept.view, decision))
        case _StatusReported():
            return StatusReported(kept.progress, kept.message)
        case _Diffed():
            return _diffed_of(kept.compared, decision)
        case _DiffFailed():
            message = decision.condition.message if kept.message is None else kept.message
            awaits = decision.awaits if kept.awaits is None else kept.awaits
            return DiffFailed(message, kept.fix, kept.stalled, kept.until, kept.refers_to, awaits, kept.cycle)
        case _Checked():
            verdicts = _verdicts_in(kept.verdicts, decision)
            return Checked(verdicts, kept.operation_id, cycle=kept.cycle)
        case _Admitted():
            return Admitted(kept.operation)
        case _NotAdmitted():
            message = decision.condition.message if kept.message is None else kept.message
            return NotAdmitted(Refused(kept.reason, message, kept.until), kept.wait_for)
        case _Deferred():
            return Deferred(kept.reason, kept.message, kept.delay)
        case _Ended():
            outcome = Outcome(kept.result, kept.message, kept.retry_at)
            return Ended(outcome, decision.at, kept.monotonic, kept.superseded)
        case _Broke():
            condition = replace(decision.condition, next_at=None, resync=None)
            key = AssetKey(decision.partition, decision.asset)
            return Broke(key, decision.governing, decision.at, decision.event, condition)


def _diffed_of(kept: _Compared, decision: Decision) -> Diffed:
    diff, digest, elsewhere = _found(kept, decision)
    assert diff is not None
    assert digest is not None
    return Diffed(diff, digest, elsewhere)

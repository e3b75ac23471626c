"""Each decision can be made again from the inputs that are kept with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from lehr.base.digest import digest_all
from lehr.base.errors import StalledError, TransientError
from lehr.enforce.conclude import broke
from lehr.enforce.contest import Contest
from lehr.enforce.kept_turn import unpack
from lehr.enforce.state import (
    Admitted,
    AskAdmission,
    Begin,
    Broke,
    Checked,
    Commit,
    Deferred,
    Diffed,
    DiffFailed,
    Ended,
    Event,
    NotAdmitted,
    State,
    StatusReported,
    Trouble,
)
from lehr.enforce.step import RETRY, step
from lehr.enforce.turn_inputs import decide_again, with_inputs
from lehr.enforce.turndown import TurndownStage
from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Decision, Reservation, Verdict
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal
from lehr.model.handle import Handle
from lehr.model.operation import DONE, Outcome, Progress, Result
from lehr.model.outputs import Outputs
from lehr.model.pinning import Pinning
from lehr.model.reason import Reason
from lehr.model.release import Release, ReleaseBasis, Released, ReleaseKind
from lehr.model.writes import RecordDecision, Refused
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import (
    ASSET,
    CONTENT,
    DESTRUCTIVE,
    DIFF,
    KEY,
    OTHER_DIFF,
    after,
    control,
    diffed,
    entry,
    operation,
    view,
)

PIN = control(ControlKind.PIN, incarnation=1)
PAUSE = control(ControlKind.PAUSE, expires_at=EPOCH + 60)
ALLOWED = Checked(
    (Verdict("free", True, reservations=(Reservation("rate", 3, 60.0),)),), "o1", ((AssetId("b"), CONTENT),)
)
REFUSED = Checked(
    (Verdict("a", False, Reason.RATE_LIMITED, "b is not there", until=EPOCH + 9, wait_for=(AssetId("b"),)),),
    "o1",
)
BEGIN = Begin(view(jitter=0.25, resync=60.0))
HANDLE = Handle(KEY.partition, KEY.id, ASSET.type, "vol-1", EPOCH)
OUTPUTS = Outputs(KEY.partition, KEY.id, ASSET.type, {"port": 1}, EPOCH)
ELSEWHERE = Diffed(DIFF, CONTENT, ((AssetId("c"), 1), (AssetId("b"), 2)))
RELEASE = Release(
    id="r1",
    partition=KEY.partition,
    asset=KEY.id,
    target=1,
    kind=ReleaseKind.FORWARD,
    basis=ReleaseBasis(CONTENT),
    at=EPOCH,
    reads=(AssetId("b"),),
)
RELEASED = Released(KEY.id, RELEASE)
NOTHING = Released(KEY.id, None)
FAILING = Trouble(
    digest_all((CONTENT, Goal.PRESENT)), 2, not_before=900.0, last_failure=("PushFailed", "no", "time")
)
ODD = Diff(
    (Change("a/b", {"n": [1, None, 2**70]}, "\u2028"),),
    Effects(None, "1", "2", disruptive=True),
    notes=("n",),
)


def pushing(diff: Diff = DIFF, state: State | None = None, compared: Diffed | None = None) -> State:
    """The state while a push of `diff` is under way."""
    state, effects = after(state or State(), BEGIN, compared or Diffed(diff, CONTENT), ALLOWED)
    [ask] = [effect for effect in effects if isinstance(effect, AskAdmission)]
    return after(state, Admitted(ask.admit.operation))[0]


def ended(outcome: Outcome, *, superseded: bool = False) -> Ended:
    return Ended(outcome, EPOCH + 5, 1005.0, superseded)


def not_admitted(reason: str, until: float | None = None) -> list[Event]:
    return [BEGIN, diffed(), ALLOWED, NotAdmitted(Refused(reason, "it is so", until), (AssetId("c"),))]


TURNS: dict[str, tuple[State, Sequence[Event]]] = {
    "it is as intended": (State(), [BEGIN, diffed(NO_DIFF)]),
    "with notes and a handle": (
        State(turns=3),
        [BEGIN, Diffed(Diff(notes=("it ran",), handle="vol-2"), CONTENT)],
    ),
    "a push": (State(), [BEGIN, diffed(), ALLOWED]),
    "a repair": (
        State(ledger=entry(by="o0"), handle=HANDLE, trouble=FAILING),
        [BEGIN, Diffed(ODD, CONTENT), ALLOWED],
    ),
    "a check": (State(turns=2), [BEGIN, diffed(), REFUSED]),
    "a cycle": (State(), [BEGIN, diffed(), replace(REFUSED, cycle=(AssetId("a"), AssetId("b")))]),
    "a pause": (State(), [Begin(view(pinning=Pinning(2, pause=PAUSE, until=EPOCH + 60)))]),
    "a pin": (State(), [Begin(view(pinning=Pinning(1, PIN))), diffed(NO_DIFF)]),
    "a pin to nothing": (State(), [Begin(view(pinning=Pinning(1, PIN), asset=None))]),
    "an orphan": (State(ledger=entry()), [Begin(view(orphaned=True))]),
    "no plugin": (State(), [Begin(view(served=False))]),
    "observed only": (State(), [Begin(view(observe="by rule")), diffed()]),
    "a missing approval": (State(), [BEGIN, diffed(DESTRUCTIVE)]),
    "an approval": (
        State(),
        [
            Begin(view(pinning=Pinning(2, approved=frozenset({DESTRUCTIVE.digest()})))),
            diffed(DESTRUCTIVE),
            ALLOWED,
        ],
    ),
    "production recovers": (State(), [BEGIN, diffed(Diff(DIFF.changes, look_again=3.0))]),
    "a turndown that waits": (
        State(ledger=entry()),
        [
            Begin(view(stage=TurndownStage(Goal.DRAINED, EPOCH + 99, wait_for=(AssetId("b"),)))),
            diffed(NO_DIFF),
        ],
    ),
    "a removal": (State(ledger=entry(goal=Goal.FENCED)), [Begin(view(goal=Goal.ABSENT)), diffed(), ALLOWED]),
    "no comparison": (
        State(trouble=Trouble(failed_diffs=2)),
        [BEGIN, DiffFailed("no answer", "ask", until=EPOCH + 70, refers_to=(AssetId("b"),))],
    ),
    "no comparison ever": (State(), [BEGIN, DiffFailed("cannot be read", stalled=True)]),
    "still failing": (State(trouble=replace(FAILING, not_before=2000.0)), [BEGIN, diffed()]),
    "tried again": (
        State(trouble=replace(FAILING, not_before=2e9)),
        [Begin(view(cause=RETRY)), diffed(), ALLOWED],
    ),
    "contested": (
        State(contest=Contest(digest_all((CONTENT, Goal.PRESENT)), ((999.0, DIFF.digest()),), 2, 1500.0)),
        [BEGIN, diffed()],
    ),
    "no room": (State(), not_admitted(Reason.LIMIT_REACHED, EPOCH + 30)),
    "the store is away": (State(), not_admitted(Reason.STORE_UNAVAILABLE)),
    "a lease is lost": (State(), not_admitted(Reason.LEASE_LOST)),
    "claimed": (State(), not_admitted(Reason.CLAIMED_HERE)),
    "refused again and again": (State(refused=4), not_admitted(Reason.OVERTAKEN)),
    "no place": (State(), [BEGIN, diffed(), ALLOWED, Deferred(Reason.RETRY_BUDGET, "used up", 3.5)]),
    "its outcome is not known": (State(operation=operation()), [BEGIN, StatusReported(Progress.RUNNING)]),
    "nor can it be": (State(operation=operation(), turns=1), [BEGIN, StatusReported(None, "no answer")]),
    "nor compared": (
        State(operation=operation()),
        [BEGIN, StatusReported(Progress.ENDED), DiffFailed("no", refers_to=(AssetId("b"),))],
    ),
    "a push is verified": (pushing(), [ended(DONE), diffed(NO_DIFF)]),
    "its handle is kept": (
        pushing(state=State(handle=HANDLE)),
        [ended(Outcome(Result.DONE, handle="vol-3")), diffed(NO_DIFF)],
    ),
    "a push has not helped": (pushing(ODD), [ended(DONE), diffed(OTHER_DIFF)]),
    "a push cannot be verified": (pushing(), [ended(DONE), DiffFailed("no answer")]),
    "a push has failed": (
        pushing(ODD, State(trouble=FAILING)),
        [ended(Outcome(Result.FAILED, "no", EPOCH + 90))],
    ),
    "a push is stalled": (pushing(), [ended(Outcome(Result.STALLED, "no such port"))]),
    "a push is lost": (pushing(), [ended(Outcome(Result.UNKNOWN, "it hung"))]),
    "an output that is not there yet": (
        State(trouble=Trouble(failed_diffs=1)),
        [BEGIN, DiffFailed("b has no port yet", "wait", awaits=(AssetId("b"),))],
    ),
    "outputs in a circle": (
        State(),
        [BEGIN, DiffFailed("no port", awaits=(AssetId("b"),), cycle=(AssetId("a"), AssetId("b")))],
    ),
    "an outcome that waits for an output": (
        State(operation=operation()),
        [BEGIN, StatusReported(Progress.ENDED), DiffFailed("no port", awaits=(AssetId("b"),))],
    ),
    "content of several incarnations": (State(), [BEGIN, ELSEWHERE, ALLOWED]),
    "a failed push of such content": (
        pushing(compared=ELSEWHERE),
        [ended(Outcome(Result.FAILED, "no"))],
    ),
    "a push of such content": (pushing(compared=ELSEWHERE), [ended(DONE), diffed(NO_DIFF)]),
    "a release": (State(), [Begin(view(pinning=Pinning(2, released=RELEASED))), diffed(NO_DIFF)]),
    "newer content is not released": (
        State(),
        [Begin(view(pinning=Pinning(1, released=RELEASED, awaits_release=True))), diffed(NO_DIFF)],
    ),
    "nothing is released": (
        State(),
        [Begin(view(pinning=Pinning(0, released=NOTHING, awaits_release=True), asset=None))],
    ),
    "the store cannot be read": (
        State(ledger=entry(), turns=2),
        [broke(KEY, 2, EPOCH, "start", TransientError("locked", fix="wait"))],
    ),
    "the store is damaged": (State(), [broke(KEY, 2, EPOCH, "start", StalledError("damaged", why="so"))]),
    "a defect": (State(), [broke(KEY, 2, EPOCH, "start", "KeyError: 'x'")]),
}


def decided(state: State, events: Sequence[Event]) -> tuple[Decision, bytes]:
    """What the turn writes: its decision, with the inputs."""
    before = state
    for number, event in enumerate(events):
        state, effects = step(state, event)
        effects = with_inputs(before, events[: number + 1], effects)
    last = effects[-1]
    if isinstance(last, AskAdmission):
        assert last.admit.decision is not None
        return last.admit.decision, last.admit.inputs
    [write] = [
        write
        for effect in effects
        if isinstance(effect, Commit)
        for write in effect.writes
        if isinstance(write, RecordDecision)
    ]
    return write.decision, write.inputs


@pytest.mark.parametrize("name", TURNS)
def test_a_decision_is_made_again_from_its_inputs(name: str) -> None:
    decision, inputs = decided(*TURNS[name])
    stored = msgspec.json.decode(msgspec.json.encode(decision), type=Decision)
    assert decide_again(stored, inputs) == stored == decision


def test_there_is_a_turn_with_each_event() -> None:
    found = {type(event) for _state, events in TURNS.values() for event in events}
    assert found | {Admitted} == set(Event.__args__)  # an admitted push is decided on before
    assert Broke in found


def test_no_body_of_an_asset_is_kept_with_a_decision() -> None:
    for state, events in TURNS.values():
        _decision, inputs = decided(state, events)
        assert b"payload" not in inputs


def test_other_inputs_lead_to_another_decision() -> None:
    decision, _inputs = decided(*TURNS["a check"])
    _other, inputs = decided(State(trouble=FAILING), [BEGIN, DiffFailed("no answer")])
    again = decide_again(decision, inputs)
    assert again is not None
    assert again.condition.reason == Reason.DIFF_FAILED


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x92\x90", b"text"])
def test_what_are_not_inputs_is_refused(data: bytes) -> None:
    decision, _inputs = decided(*TURNS["a check"])
    with pytest.raises(msgspec.DecodeError):
        decide_again(decision, data)


def test_the_state_before_a_turn_comes_back_as_far_as_steps_look_at_it() -> None:
    state = State(ledger=entry(by="o0"), trouble=FAILING, turns=3, refused=2)
    decision, inputs = decided(replace(state, handle=HANDLE, outputs=OUTPUTS), [BEGIN, diffed(), REFUSED])
    assert unpack(inputs, decision).state == state


def test_handles_and_outputs_are_not_kept_again_with_each_decision() -> None:
    found = Diff(DIFF.changes, handle="vol-3", outputs={"port": 5432})
    state = State(handle=HANDLE, outputs=OUTPUTS)
    _decision, inputs = decided(state, [BEGIN, Diffed(found, CONTENT), REFUSED])
    assert not any(text in inputs for text in (b"vol", b"port"))

"""Verified pushes that are undone again and again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lehr.base.digest import digest
from lehr.enforce.contest import ANY_DIFF, FIRST_DELAY, NO_CONTEST, SAME_DIFF, WINDOW, Contest
from lehr.enforce.state import Admitted, AskAdmission, Begin, Diffed, RunChecks, State
from lehr.enforce.step import RETRY
from lehr.model.decision import Status
from lehr.model.diff import NO_DIFF, Change, Diff
from lehr.model.operation import Outcome, Result
from lehr.model.reason import Reason
from tests.unit.enforce.test_step import ALLOWED, ended, pushing, rest, said
from tests.unit.enforce.turns import DIFF, OTHER_DIFF, after, diffed, view

CONTENT, DRIFT = digest("content"), digest("drift")
DONE = Outcome(Result.DONE)


def repaired(state: State, at: float, diff: Diff = DIFF) -> State:
    """A diff is found, pushed, and verified."""
    asked = after(state, Begin(view(after=at)), diffed(diff), ALLOWED)[1][-1]
    assert isinstance(asked, AskAdmission)
    admitted = Admitted(asked.admit.operation)
    begun = after(state, Begin(view(after=at)), diffed(diff), ALLOWED, admitted)[0]
    return after(begun, ended(DONE, at), diffed(NO_DIFF))[0]


def contested(at: float = 0.0) -> State:
    state = State()
    for push in range(SAME_DIFF):
        state = repaired(state, at + push)
    return state


def pushes(state: State, at: float, diff: Diff = DIFF) -> bool:
    """Whether a diff that is found then goes on to the checks."""
    return isinstance(after(state, Begin(view(after=at)), diffed(diff))[1][-1], RunChecks)


def test_drift_that_is_repaired_once_or_twice_is_repaired_at_once() -> None:
    state = State()
    for push in range(SAME_DIFF):
        assert pushes(state, push)
        state = repaired(state, push)


def test_the_same_diff_after_verified_pushes_is_contested_and_waits() -> None:
    last = SAME_DIFF - 1
    state, effects = after(contested(), Begin(view(after=last + 1)), diffed())
    assert said(effects) == (Status.RETRYING, Reason.CONTESTED)
    assert rest(effects).delay == pytest.approx(FIRST_DELAY - 1)
    assert not pushes(state, last + FIRST_DELAY - 0.1)
    assert pushes(state, last + FIRST_DELAY)


def test_a_contested_asset_is_pushed_ever_more_slowly_but_never_given_up() -> None:
    state, at, delays = contested(), SAME_DIFF - 1.0, []
    for _ in range(8):
        _, effects = after(state, Begin(view(after=at)), diffed())
        delay = rest(effects).delay
        assert delay is not None
        delays.append(round(delay))
        at += delay
        state = repaired(state, at)
    assert delays == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_writer_that_writes_something_new_each_time_is_noticed_too() -> None:
    state = State()
    for push in range(ANY_DIFF):
        diff = Diff((Change("value", "1", str(push)),))
        assert pushes(state, push, diff)
        state = repaired(state, push, diff)
    assert not pushes(state, ANY_DIFF, OTHER_DIFF)


def test_repairs_that_are_far_apart_never_make_an_asset_contested() -> None:
    state = State()
    for push in range(20):
        at = push * WINDOW / (SAME_DIFF - 1) * 1.01
        assert pushes(state, at)
        state = repaired(state, at)


def test_a_calm_period_new_content_and_a_persons_retry_clear_it() -> None:
    state = contested()
    assert not pushes(state, SAME_DIFF)
    calm = repaired(state, 2 * WINDOW)
    assert pushes(calm, 2 * WINDOW + 1)
    _, effects = after(state, Begin(view(after=SAME_DIFF)), Diffed(DIFF, digest("new content")))
    assert isinstance(effects[-1], RunChecks)
    _, effects = after(state, Begin(replace(view(after=SAME_DIFF), cause=RETRY)), diffed())
    assert isinstance(effects[-1], RunChecks)


def test_pushes_that_were_not_verified_do_not_count() -> None:
    state = State()
    for push in range(SAME_DIFF):
        state, _ = after(pushing(state, after=1000.0 * push), ended(DONE, 1000.0 * push), diffed(OTHER_DIFF))
    assert state.contest == NO_CONTEST


def test_the_memory_is_bounded() -> None:
    contest = Contest()
    for push in range(1000):
        contest = contest.verified(CONTENT, DRIFT, push / 10, 1.0)
    assert len(contest.repairs) == ANY_DIFF

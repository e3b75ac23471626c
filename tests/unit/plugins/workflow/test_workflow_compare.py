"""Diffs of `lehr.Workflow`, and how ends of runs are reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.model.diff import NO_DIFF, Change, Effects, Goal
from lehr.model.operation import Result
from lehr.plugins.workflow.compare import compared
from lehr.plugins.workflow.engines import Run, RunState
from lehr.plugins.workflow.outcomes import outcome_of, shortened
from lehr.plugins.workflow.payload import Workflow
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden, SecretValue
from tests.unit.plugins.workflow.test_workflow_payload import read

HIDDEN = Hidden([SecretValue(b"hunter2-hunter2")])


def changes(workflow: Workflow, observed: Any, goal: Goal = Goal.PRESENT) -> tuple[Change, ...]:
    return compared(workflow, observed, goal, HIDDEN).changes


def test_only_declared_fields_are_compared() -> None:
    as_intended = {"version": "2", "ports": {"up": 4, "down": 1}, "uptime": 3}
    assert compared(read(), as_intended, Goal.PRESENT, HIDDEN) == NO_DIFF
    assert changes(read(), {**as_intended, "version": "1"}) == (Change("version", "2", "1"),)
    assert changes(read(), {**as_intended, "ports": {"up": 3}}) == (Change("ports/up", 4, 3),)


def test_nothing_differs_in_everything() -> None:
    assert changes(read(), None) == (
        Change("observed", "present", None),
        Change("version", "2", None),
        Change("ports/up", 4, None),
    )


def test_a_secret_in_production_is_hidden() -> None:
    assert "hunter2" not in msgspec.json.encode(changes(read(), {"version": "hunter2-hunter2"})).decode()


def test_effects_are_those_that_intent_declares() -> None:
    workflow = read(version="/version", disruptive=True, destructive=True)
    effects = compared(workflow, {"version": "1", "ports": {"up": 4}}, Goal.PRESENT, HIDDEN).effects
    assert effects == Effects(version_from="1", version_to="2", disruptive=True, destructive=True)
    assert compared(workflow, {"version": "2", "ports": {"up": 4}}, Goal.PRESENT, HIDDEN) == NO_DIFF


@pytest.mark.parametrize(
    ("intended", "observed", "expected"),
    [
        (None, None, ()),
        (None, {"version": "2"}, (Change("observed", None, "present"),)),
        ({"serving": False}, {"serving": False}, ()),
        ({"serving": False}, {"serving": True}, (Change("serving", False, True),)),
    ],
)
def test_a_removal_has_an_intent_of_its_own(intended: Any, observed: Any, expected: Any) -> None:
    workflow = read(remove={"workflow": "Remove", "intended": intended})
    assert changes(workflow, observed, Goal.ABSENT) == expected


def test_messages_are_short_and_without_secrets() -> None:
    text = f"one\ntwo \x1b[31m hunter2-hunter2 {'x' * 1000}"
    run = Run("lehr:p:a", RunState.FAILED, message=text)
    outcome = outcome_of(run, read(), "Update", HIDDEN)
    assert outcome.result is Result.STALLED
    assert outcome.message.startswith("Update failed (lehr:p:a): one | two")
    assert "[secret]" in outcome.message
    assert outcome.message.isprintable()
    assert len(outcome.message) < 700
    at_the_edge = f"{'x' * 495}hunter2-hunter2"
    assert "hunter" not in shortened(at_the_edge, HIDDEN)
    assert shortened("", NOTHING_HIDDEN) == ""

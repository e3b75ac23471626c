"""A plan as text: what destroys or removes stands out, and the summary counts every result."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lehr.cli import terminal
from lehr.cli.plan_text import planned_lines, summary
from lehr.dry_run.intent_changes import IntentChanges
from lehr.dry_run.planned import Planned, PlannedResult
from lehr.model.asset import AssetId
from lehr.model.diff import Change, Diff, Effects, Goal
from lehr.model.operation import Purpose
from lehr.query.compare import ChangeKind, FieldChange
from lehr.sdk.plugin import TextChange


def planned(result: PlannedResult, goal: Goal = Goal.PRESENT, **fields: Any) -> Planned:
    return Planned(AssetId("a"), "test.Thing", goal, 1, result, "Because", **fields)


def lines(item: Planned, *texts: TextChange, full: bool = False) -> list[str]:
    return list(planned_lines(item, texts, full=full))


def test_the_summary_counts_every_result_and_begins_with_pushes() -> None:
    items = [planned(result) for result in PlannedResult]
    items += [planned(PlannedResult.PUSHED, goal) for goal in Goal]
    assert summary(items) == (
        "2 to push, 3 to remove, 1 waiting, 1 to approve, 1 held, 1 orphaned, 1 not known, 1 as intended"
    )
    assert summary([]) == "no assets"


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (Goal.DRAINED, "will be removed (drained first)"),
        (Goal.FENCED, "will be removed (fenced first)"),
        (Goal.ABSENT, "will be removed"),
    ],
)
def test_each_step_of_a_turndown_is_a_removal(goal: Goal, words: str) -> None:
    assert lines(planned(PlannedResult.PUSHED, goal)) == [f"a (test.Thing): {words}"]
    assert lines(planned(PlannedResult.HELD, goal))[0] == f"a (test.Thing, goal {goal}): held"


def test_what_needs_a_person_says_how_to_continue() -> None:
    held = planned(PlannedResult.HELD, message="it is paused", unblock="lehr resume a")
    assert lines(held)[1:] == ["  because    it is paused", "  unblock    lehr resume a"]
    waits = planned(PlannedResult.WAITS, message="b differs", unblock="wait", wait_for=(AssetId("b"),))
    assert lines(waits)[1:] == ["  because    b differs"]


def test_of_many_changes_the_first_are_listed_and_the_option_shows_all() -> None:
    diff = Diff(tuple(Change(f"path/{number}", 1, 2) for number in range(25)))
    item = planned(PlannedResult.PUSHED, diff=diff)
    assert lines(item)[-1] == "    and 5 more; see --full-diff"
    assert lines(item, full=True)[-1] == "    path/24: is 2, should be 1"


def test_a_text_takes_the_place_of_its_change_and_a_hidden_one_keeps_it() -> None:
    diff = Diff((Change("content", "size 1", "size 2"), Change("mode", "0644", "0600")))
    item = planned(PlannedResult.PUSHED, diff=diff)
    assert lines(item, TextChange("content", "old\n", "new\n"))[2:] == [
        "    content:",
        "      @@ -1 +1 @@",
        "      -old",
        "      +new",
        "    mode: is 0600, should be 0644",
    ]
    assert lines(item, TextChange("content", hidden="it is binary"))[2:4] == [
        "    content: is size 2, should be size 1",
        "      text hidden: it is binary",
    ]


@pytest.mark.parametrize(
    ("purpose", "cause"),
    [
        (Purpose.REPAIR, "drift: production no longer matches shop@3"),
        (Purpose.RESTART, "a person asked for a restart"),
        (Purpose.ROLLBACK, "rollback from shop@3"),
        (Purpose.FORWARD, "new content since shop@3"),
    ],
)
def test_the_cause_of_a_push_is_named(purpose: Purpose, cause: str) -> None:
    diff = Diff((Change("value", 1, 2),))
    item = planned(PlannedResult.PUSHED, diff=diff, purpose=purpose, since="shop@3")
    assert lines(item)[1] == f"  cause      {cause}"
    for without in (replace(item, since=""), replace(item, diff=None)):
        assert not any("cause" in line for line in lines(without))


def test_new_content_lists_what_has_changed_in_intent() -> None:
    diff = Diff((Change("value", 1, 2),))
    item = planned(PlannedResult.PUSHED, diff=diff, purpose=Purpose.FORWARD, since="shop@3")
    fields = tuple(
        FieldChange(f"/payload/{number}", ChangeKind.CHANGED, number, number + 1) for number in range(25)
    )
    intent = IntentChanges(fields[:2], (AssetId("b"),))
    shown = list(planned_lines(item, (), intent, full=False))
    assert shown[2:5] == [
        "    ~ /payload/0: 0 -> 1",
        "    ~ /payload/1: 1 -> 2",
        "    ~ b, which it refers to",
    ]
    shown = list(planned_lines(item, (), IntentChanges(fields), full=False))
    assert "    and 5 more; see --full-diff" in shown
    shown = list(planned_lines(item, (), IntentChanges(fields), full=True))
    assert "    ~ /payload/24: 24 -> 25" in shown


def test_what_destroys_or_removes_is_red_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "coloured", lambda stream=None: True)
    red = "\x1b[31m"
    diff = Diff((Change("value", 1, 2),), Effects(destructive=True))
    assert red in lines(planned(PlannedResult.PUSHED, Goal.ABSENT))[0]
    assert red in lines(planned(PlannedResult.PUSHED, diff=diff))[1]
    assert red not in lines(planned(PlannedResult.PUSHED, diff=Diff((Change("value", 1, 2),))))[0]

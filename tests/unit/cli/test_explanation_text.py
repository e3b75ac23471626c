"""What `lehr why` says of the next turn is one thing, and true."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lehr.cli.explanation_text import explanation_lines, values
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Status
from lehr.model.reason import Reason
from lehr.query.asset_rows import Row
from lehr.query.explain import Explanation

NOW = 1_767_571_200.0


def row(condition: Condition) -> Row:
    return Row(
        AssetId("a"),
        "lehr.File",
        str(condition.status),
        condition.reason,
        condition.message,
        condition.unblock,
        NOW,
        condition.next_at,
        resync=condition.resync,
        automatic=condition.automatic,
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (
            Condition(Status.RETRYING, Reason.PUSH_FAILED, next_at=NOW + 5, resync=60.0),
            "retries in 5s (2026-01-05T00:00:05Z), or as soon as something changes",
        ),
        (
            Condition(Status.WAITING, Reason.DEPENDENCY_DIFFERS, resync=60.0),
            "retries within 1m, or as soon as something changes",
        ),
        (
            Condition(Status.STALLED, Reason.DIFF_STALLED, resync=60.0),
            "retries within 1m, or as soon as something changes",
        ),
        (
            Condition(Status.STALLED, Reason.PUSH_STALLED, resync=60.0),
            "no push until then; production is checked again within 1m",
        ),
        (
            Condition(Status.WAITING, Reason.APPROVAL_NEEDED, resync=60.0),
            "no push until then; production is checked again within 1m",
        ),
        (Condition(Status.HELD, Reason.PAUSED), "no push until then"),
    ],
)
def test_what_is_said_of_the_next_turn(condition: Condition, expected: str) -> None:
    lines = list(explanation_lines(Explanation(row=row(condition)), None, NOW, alive=True))
    assert [line.split(None, 1)[1] for line in lines if line.startswith("  next ")] == [expected]


def test_nothing_is_said_of_a_next_turn_when_no_lehr_runs() -> None:
    condition = Condition(Status.WAITING, Reason.DEPENDENCY_DIFFERS, resync=60.0)
    lines = list(explanation_lines(Explanation(row=row(condition)), None, NOW, alive=False))
    assert not any(line.startswith("  next ") for line in lines)


def test_of_two_long_texts_the_part_is_shown_where_they_begin_to_differ() -> None:
    before, after = values("x" * 200 + "old" + "y" * 200, "x" * 200 + "new" + "y" * 200)
    assert before == "…" + "x" * 20 + "old" + "y" * 35 + "…"
    assert after == "…" + "x" * 20 + "new" + "y" * 35 + "…"
    assert values("x" * 200, "x" * 200 + "end") == ("…" + "x" * 20, "…" + "x" * 20 + "end")
    assert values("a" + "x" * 200, "b" + "x" * 200) == ("a" + "x" * 58 + "…", "b" + "x" * 58 + "…")
    assert values("short", "other") == ("short", "other")


@given(st.text(max_size=200), st.text(max_size=200), st.text(min_size=100, max_size=300))
@example("", "0", "0" * 100)
def test_what_differs_looks_different_and_fits(one: str, other: str, same: str) -> None:
    before, after = values(same + one, same + other)
    assert len(before) <= 60
    assert len(after) <= 60
    if one.isprintable() and other.isprintable() and same.isprintable() and one != other:
        assert before != after

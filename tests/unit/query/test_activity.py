"""The work on a partition."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Goal
from lehr.model.operation import Operation, Result
from lehr.model.outputs import Outputs
from lehr.query.activity import MOST, Activity, activity
from lehr.query.asset_rows import Row
from lehr.query.run_state import Load, RunState, turns_per_second

SHOP, NONE, NOW = Partition("shop"), Digest(""), 10_000.0


def push(
    id: int,
    asset: str,
    ago: float,
    took: float | None = None,
    result: Result | None = None,
    message: str = "",
) -> Operation:
    """A push that began `ago` seconds before now."""
    began = NOW - ago
    return Operation(
        id=f"o{id}",
        partition=SHOP,
        asset=AssetId(asset),
        type="lehr.File",
        goal=Goal.PRESENT,
        content=1,
        governing=1,
        content_digest=NONE,
        diff_digest=NONE,
        epoch=1,
        started_at=began,
        ended_at=None if took is None else began + took,
        result=result,
        message=message,
    )


def row(id: str, status: str, reason: str = "", type: str = "lehr.File", since: float | None = None) -> Row:
    return Row(AssetId(id), type, status, reason, since=since)


def outputs(asset: str, **values: Any) -> Outputs:
    return Outputs(SHOP, AssetId(asset), "lehr.Process", values, NOW)


def work(*pushes: Operation, rows: list[Row] | None = None, now: float = NOW, **more: Any) -> Activity:
    return activity(pushes, rows or [], more.pop("outputs", ()), now, **more)


def test_pushes_under_way_are_shown_longest_first_however_long_they_take() -> None:
    found = work(push(2, "a", 3), push(1, "b", 5000, 2, Result.UNKNOWN), push(0, "c", 9, 1, Result.DONE))
    assert [(item.asset, item.seconds, item.unknown) for item in found.running] == [
        ("b", 5000.0, True),
        ("a", 3.0, False),
    ]
    assert found.open_pushes == 2


def test_more_pushes_are_counted_than_shown() -> None:
    found = work(*(push(number, f"a{number}", 1) for number in range(MOST + 5)))
    assert (found.open_pushes, len(found.running)) == (MOST + 5, MOST)


def test_a_clock_that_was_set_back_makes_no_push_shorter_than_nothing() -> None:
    assert work(push(1, "a", -50)).running[0].seconds == 0.0


def test_only_the_last_minute_counts_for_rates() -> None:
    done = [push(age, "a", age, 1, Result.DONE) for age in (10, 59, 61)]
    failed = [push(age, "b", age, 1, Result.FAILED) for age in (20, 90)]
    found = work(*done, *failed)
    assert found.pushes_per_second == pytest.approx(3 / 60)
    assert found.failures_per_second == pytest.approx(1 / 60)


def test_of_very_many_pushes_the_rate_is_that_of_the_time_for_which_they_are_known() -> None:
    pushes = [push(number, "a", number / 100, 0, Result.DONE) for number in range(1000)]
    assert work(*pushes, known=10.0).pushes_per_second == pytest.approx(100.0)


def test_assets_are_shown_by_how_often_their_pushes_failed_with_the_newest_message() -> None:
    found = work(
        push(5, "a", 10, 1, Result.FAILED, "newest"),
        push(4, "b", 20, 1, Result.STALLED, "no port"),
        push(3, "a", 30, 1, Result.FAILED, "older"),
        push(2, "c", 40, 1, Result.DONE),
        push(1, "d", 700, 1, Result.FAILED, "long ago"),
    )
    assert [(item.asset, item.failures, item.message) for item in found.failing] == [
        ("a", 2, "newest"),
        ("b", 1, "no port"),
    ]


def test_assets_that_are_not_settled_are_counted_by_reason_and_type() -> None:
    found = work(
        rows=[
            row("a", "Waiting", "RateLimited", since=5.0),
            row("b", "Waiting", "RateLimited", since=3.0),
            row("c", "Waiting", "RateLimited", "lehr.Process", since=1.0),
            row("d", "NoTurnYet"),
            row("e", "Converged", "AsIntended"),
        ]
    )
    assert [(item.status, item.type, item.count, item.asset, item.since) for item in found.blocked] == [
        ("Waiting", "lehr.File", 2, "b", 3.0),
        ("NoTurnYet", "lehr.File", 1, "d", None),
        ("Waiting", "lehr.Process", 1, "c", 1.0),
    ]
    assert found.counts == {"Converged": 1, "NoTurnYet": 1, "Waiting": 3}


def test_restarts_are_shown_crash_loops_first() -> None:
    seen = [
        outputs("calm", restarts=0, crash_loops=[]),
        outputs("few", restarts=2, crash_loops=[]),
        outputs("many", restarts=9, crash_loops=[]),
        outputs("loop", restarts=6, crash_loops=[0]),
        outputs("other", address="10.0.0.1", restarts="often"),
    ]
    found = work(outputs=seen).restarting
    assert [(item.asset, item.restarts, item.looping) for item in found] == [
        ("loop", 6, True),
        ("many", 9, False),
        ("few", 2, False),
    ]


def run(now: float, turns: int | None, process: int = 7) -> RunState:
    load = None if turns is None else Load(turns=turns, queued={})
    return RunState(active=load is not None, now=now, process=process, load=load)


@pytest.mark.parametrize(
    ("before", "after", "rate"),
    [
        (run(1.0, 10), run(3.0, 30), 10.0),
        (run(1.0, 10), run(1.0, 30), None),
        (run(3.0, 10), run(1.0, 30), None),
        (run(1.0, 10), run(3.0, 30, process=8), None),
        (run(1.0, 10), run(3.0, 2), 0.0),
        (run(1.0, None), run(3.0, 30), None),
        (run(1.0, 10), run(3.0, None), None),
    ],
)
def test_turns_per_second_are_known_of_one_process(
    before: RunState, after: RunState, rate: float | None
) -> None:
    assert turns_per_second(before, after) == rate

"""Recorded pushes as samples: those that brought new content, and succeeded."""

from __future__ import annotations

from typing import Any

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Goal
from lehr.model.operation import Operation, Purpose, Result
from lehr.rollouts.push_samples import push_samples


def operation(took: float | None, type: str = "lehr.File", **more: Any) -> Operation:
    ended = None if took is None else 100.0 + took
    return Operation(
        "o",
        Partition("p"),
        AssetId("a"),
        type,
        more.pop("goal", Goal.PRESENT),
        1,
        1,
        Digest("c"),
        Digest("d"),
        1,
        100.0,
        ended,
        more.pop("result", Result.DONE),
        **more,
    )


def test_durations_are_listed_by_type() -> None:
    found = push_samples([operation(3.0), operation(1.0, "lehr.Process"), operation(0.0)])
    assert found == {"lehr.File": [3.0, 0.0], "lehr.Process": [1.0]}


def test_other_pushes_are_left_out() -> None:
    others = [
        operation(None, result=None),
        operation(-1.0),
        operation(1.0, result=Result.FAILED),
        operation(1.0, result=Result.UNKNOWN),
        operation(1.0, purpose=Purpose.REPAIR),
        operation(1.0, purpose=Purpose.ROLLBACK),
        operation(1.0, goal=Goal.ABSENT),
    ]
    assert push_samples(others) == {}

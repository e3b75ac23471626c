"""What remains of a group without its worst replica and its worst burst."""

from __future__ import annotations

from lehr.canary.outliers import Remaining, without_outliers
from lehr.canary.spread import ReplicaTotals


def blocks(**rows: list[float]) -> list[dict[str, ReplicaTotals]]:
    """Events of each replica in each block, in which the other group would have had 10."""
    return [
        {name: ReplicaTotals(it, 0.0, 100, 10) for name, it in zip(rows, numbers, strict=True)}
        for numbers in zip(*rows.values(), strict=True)
    ]


def test_the_worst_replica_is_left_out() -> None:
    assert without_outliers(blocks(a=[10, 12], b=[40, 40]), higher=True) == Remaining("b", 22, 20)
    assert without_outliers(blocks(a=[10, 12], b=[40, 40]), higher=False) == Remaining("a", 80, 20)


def test_a_burst_of_another_replica_is_left_out_as_well() -> None:
    found = blocks(a=[90, 90, 90, 90, 90], b=[10, 90, 12, 10, 10], c=[10, 10, 10, 10, 10])
    assert without_outliers(found, higher=True) == Remaining("a", 80, 80)


def test_one_replica_is_never_left_out() -> None:
    assert without_outliers(blocks(a=[10, 50]), higher=True) == Remaining("", 60, 20)
    assert without_outliers([], higher=True) == Remaining("", 0, 0)


def test_a_replica_may_come_later() -> None:
    found = blocks(a=[10, 10], b=[10, 10])
    found[1]["c"] = ReplicaTotals(60, 0.0, 100, 10)
    assert without_outliers(found, higher=True).replica == "c"

"""Restarts are counted once each, whatever a process knew when it started."""

from __future__ import annotations

from lehr.control.restart_count import RestartCount
from lehr.model.asset import AssetId, Partition
from lehr.model.outputs import Outputs

TYPE = "lehr.Process"


def report(id: str, **values: int) -> Outputs:
    return Outputs(Partition("prod"), AssetId(id), TYPE, dict(values), 0.0)


def counting(*recorded: Outputs) -> RestartCount:
    count = RestartCount()
    count.begin()
    count.recovered(recorded)
    return count


def test_what_a_report_adds_is_counted() -> None:
    count = counting()
    for restarts in (0, 2, 2, 5):
        count.reported(report("web", restarts=restarts, crash_loops=1))
    count.reported(report("api", restarts=1))
    assert dict(count.by_type) == {TYPE: 6}


def test_restarts_that_the_store_knew_are_not_counted_again() -> None:
    count = counting(report("web", restarts=7))
    count.reported(report("web", restarts=8))
    assert dict(count.by_type) == {TYPE: 1}


def test_a_report_before_the_store_was_read_is_where_counting_begins() -> None:
    count = RestartCount()
    count.reported(report("web", restarts=8))
    count.recovered([report("web", restarts=7)])
    count.reported(report("web", restarts=9))
    assert dict(count.by_type) == {TYPE: 1}


def test_a_number_that_has_fallen_was_started_again() -> None:
    count = counting(report("web", restarts=7))
    count.reported(report("web", restarts=2))
    assert dict(count.by_type) == {TYPE: 2}


def test_an_asset_that_was_removed_starts_again() -> None:
    count = counting(report("web", restarts=7))
    count.reported(report("web"))
    count.reported(report("web", restarts=1))
    assert dict(count.by_type) == {TYPE: 1}


def test_types_without_restarts_are_not_counted() -> None:
    count = counting(report("net", arn=1))
    count.reported(report("net", arn=2))
    assert dict(count.by_type) == {}

"""Rows of a list of assets, one for each change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from lehr.model.asset import AssetId, Partition
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Goal
from lehr.model.feed import ChangeKind, FeedEntry, RecordChange
from lehr.query.asset_rows import GONE, NO_TURN, Row
from lehr.query.partition_view import Reading
from lehr.query.record_changes import RowChanges, decisions_after

SHOP = Partition("shop")


def row(id: str, status: str = "Converged", **more: Any) -> Row:
    return Row(AssetId(id), "lehr.File", status, **more)


class World:
    """Rows and decisions of a partition, and the feed entries since a reader last looked."""

    def __init__(self, *rows: Row, status: str | None = None) -> None:
        self.rows = list(rows)
        self.decisions: list[tuple[int, Decision]] = []
        self.lists = 0
        self._kinds: list[ChangeKind] = []
        self._changes = RowChanges(self._list, status)
        records = SimpleNamespace(decisions=self._decisions)
        self.reading = cast(Reading, SimpleNamespace(records=records, partition=SHOP))

    def _list(self, _reading: Reading) -> list[Row]:
        self.lists += 1
        return self.rows

    def _decisions(self, _partition: Partition, asset: str | None, limit: int) -> list[tuple[int, Decision]]:
        return [item for item in reversed(self.decisions) if asset in (None, item[1].asset)][:limit]

    def decide(self, id: str, status: Status, message: str = "") -> None:
        decision = Decision(
            partition=SHOP,
            asset=AssetId(id),
            at=float(len(self.decisions)),
            content=1,
            governing=1,
            goal=Goal.PRESENT,
            condition=Condition(status, "Because", message),
            event="start",
        )
        self.decisions.append((len(self.decisions) + 1, decision))
        self._kinds.append(ChangeKind.DECISION)

    def publish(self, *rows: Row) -> None:
        self.rows = list(rows)
        self._kinds.append(ChangeKind.INCARNATION)

    def all(self) -> list[tuple[str, str]]:
        return [(item.id, item.status) for item in self._changes.since(self.reading, None)]

    def new(self) -> list[tuple[str, str]]:
        entries = [FeedEntry(1, 0.0, tuple(map(RecordChange, self._kinds)))] if self._kinds else []
        self._kinds = []
        return [(item.id, item.status) for item in self._changes.since(self.reading, entries)]


def test_each_decision_is_a_row_and_nothing_is_listed_for_it() -> None:
    world = World(row("a"), row("b"))
    assert world.all() == [("a", "Converged"), ("b", "Converged")]
    world.decide("a", Status.PUSHING)
    world.decide("a", Status.CONVERGED)
    world.decide("elsewhere", Status.PUSHING)
    assert world.new() == [("a", "Pushing"), ("a", "Converged")]
    assert world.new() == []
    assert world.lists == 1


def test_a_decision_that_changes_nothing_that_is_shown_is_not_a_row() -> None:
    world = World(row("a"))
    world.all()
    world.decide("a", Status.PUSHING, "one")
    world.decide("a", Status.PUSHING, "one")
    world.decide("a", Status.PUSHING, "two")
    assert world.new() == [("a", "Pushing"), ("a", "Pushing")]


def test_an_incarnation_adds_and_removes_rows() -> None:
    world = World(row("a"), row("b"))
    world.all()
    world.publish(row("b"), row("c", NO_TURN))
    assert world.new() == [("a", GONE), ("c", NO_TURN)]


def test_an_incarnation_and_the_decisions_about_it_are_shown_in_their_order() -> None:
    world = World(row("a"))
    world.all()
    world.publish(row("a", "Pushing"), row("c", "Converged"))
    world.decide("c", Status.PUSHING)
    world.decide("c", Status.CONVERGED)
    assert world.new() == [("c", "Pushing"), ("c", "Converged")]
    # A status that is newer than the decisions that were read comes with its own decision.
    world.decide("a", Status.PUSHING)
    assert world.new() == [("a", "Pushing")]


def test_an_asset_that_left_intent_unsettled_is_shown_as_departed() -> None:
    world = World(row("a", "Retrying"))
    world.all()
    world.publish(structs.replace(row("a", "Retrying"), departed=True))
    assert world.new() == [("a", "Retrying")]


def test_after_a_gap_in_the_feed_only_what_differs_is_shown() -> None:
    world = World(row("a"), row("b", since=1.0), row("c"))
    world.all()
    world.decide("a", Status.RETRYING)
    world.rows = [row("a", "Retrying"), row("b", since=2.0, next_at=3.0)]
    assert world.all() == [("c", GONE), ("a", "Retrying")]
    assert world.new() == []


def test_of_a_status_the_row_that_leaves_it_is_shown_as_well() -> None:
    world = World(row("a", "Waiting"), row("b"), status="Waiting")
    assert world.all() == [("a", "Waiting")]
    world.decide("a", Status.PUSHING)
    world.decide("a", Status.CONVERGED)
    world.decide("b", Status.WAITING)
    assert world.new() == [("a", "Pushing"), ("b", "Waiting")]


@pytest.mark.parametrize("count", [0, 99, 100, 101, 2500])
def test_all_decisions_after_a_number_are_found(count: int) -> None:
    world = World()
    for _ in range(count):
        world.decide("a", Status.PUSHING)
    numbers = [number for number, _ in decisions_after(world.reading, 7)]
    assert numbers == list(range(8, count + 1))

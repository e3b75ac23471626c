"""References are asked backwards: who points at an asset, through which field, and who at those."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import AssetType, Reference, Registry, Schema
from lehr.query.partition_view import Reading
from lehr.query.referrers import Referrer, behind_at, matches, referrers
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, publication

PLACE = AssetType("t.Place", Schema({}, {"/parent": Reference(), "/power/*": Reference()}))
REGISTRY = Registry([PLACE])


def place(id: str, parent: str | None = None, power: tuple[str, ...] = ()) -> tuple[str, dict[str, object]]:
    return id, {**({} if parent is None else {"parent": parent}), "power": list(power)}


PLACES = [
    make_asset(AssetId(id), "t.Place", payload, {})
    for id, payload in (
        place("cell"),
        place("row", "cell"),
        place("rack-1", "row", ("ups-1", "ups-2")),
        place("rack-2", "row", ("ups-2",)),
        place("host", "rack-1"),
        place("ups-1"),
        place("ups-2", "cell"),
        place("snake", "snake"),
    )
]


def who_refers(id: AssetId) -> list[tuple[AssetId, str]]:
    return [
        (item.id, found.path) for item in PLACES for found in REGISTRY.mentions(item) if found.target == id
    ]


def found(id: str, field: str | None = None, most_deep: int | None = 1) -> list[tuple[str, int]]:
    return [(item.id, item.depth) for item in referrers(who_refers, AssetId(id), field, most_deep=most_deep)]


def test_who_points_at_an_asset_is_told_with_the_field() -> None:
    assert list(referrers(who_refers, AssetId("row"))) == [
        Referrer(AssetId("rack-1"), "/payload/parent", AssetId("row")),
        Referrer(AssetId("rack-2"), "/payload/parent", AssetId("row")),
    ]


def test_each_field_is_a_hierarchy_of_its_own_over_the_same_assets() -> None:
    assert found("cell", "parent", None) == [
        ("row", 1),
        ("ups-2", 1),
        ("rack-1", 2),
        ("rack-2", 2),
        ("host", 3),
    ]
    assert found("ups-2", "power", None) == [("rack-1", 1), ("rack-2", 1)]
    assert found("cell", "power", None) == []


def test_a_cycle_ends() -> None:
    assert found("snake", None, None) == [("snake", 1)]


def test_depth_is_bounded() -> None:
    assert found("cell", "parent", 2)[-1] == ("rack-2", 2)


@pytest.mark.parametrize(
    ("field", "path", "leads"),
    [
        ("parent", "/payload/parent", True),
        ("parent", "/payload/parents", False),
        ("parent", "/payload/place/parent", False),
        ("power", "/payload/power/3", True),
        ("members.who", "/payload/members/0/who", True),
        ("members.*.who", "/payload/members/0/who", True),
        ("members.1.who", "/payload/members/0/who", False),
        ("/members/who", "/payload/members/0/who", True),
        ("weights", "/payload/weights/a~1b", True),
        ("/payload/parent", "/payload/parent", True),
        ("/addons/lehr.DependsOn/assets", "/addons/lehr.DependsOn/assets/0", True),
        ("/addons/lehr.DependsOn", "/addons/lehr.DependsOn/assets/0", True),
        ("parent", "/addons/parent", False),
    ],
)
def test_a_field_is_told_by_names_or_pointer(field: str, path: str, leads: bool) -> None:
    assert matches(field, path) is leads


def test_who_referred_to_an_asset_in_an_older_incarnation_is_told_as_it_was_there(tmp_path: Path) -> None:
    def moved(id: str, parent: str) -> Asset:
        return make_asset(AssetId(id), "t.Place", place(id, parent)[1], {})

    store = SqliteStore(tmp_path / "state.sqlite")
    try:
        store.commit([publication(0, moved("host", "rack-1"), mentions={"host": ["rack-1"]})])
        store.commit([publication(1, moved("host", "rack-2"), mentions={"host": ["rack-2"]})])
        store.commit([publication(2, moved("spare", "rack-1"), mentions={"spare": ["rack-1"]})])
        store.commit([publication(3, removals=(AssetId("host"),))])
        reading = Reading(store, PARTITION, 0.0, lambda type: False)

        def told(sequence: int, id: str) -> list[tuple[str, str]]:
            behind = behind_at(reading, sequence, REGISTRY)
            return [(item.id, item.path) for item in referrers(behind, AssetId(id))]

        assert told(1, "rack-1") == [("host", "/payload/parent")]
        assert told(2, "rack-1") == []
        assert told(2, "rack-2") == [("host", "/payload/parent")]
        assert told(3, "rack-1") == [("spare", "/payload/parent")]
        assert told(4, "rack-2") == []
    finally:
        store.close()

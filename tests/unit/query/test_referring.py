"""References are asked backwards: who points at an asset, through which field, and who at those."""

from __future__ import annotations

import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.model.types import AssetType, Reference, Registry, Schema
from lehr.query.referring import Referrer, behind_in, matches, referrers

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
BEHIND = behind_in(PLACES, REGISTRY)


def found(id: str, field: str | None = None, most_deep: int | None = 1) -> list[tuple[str, int]]:
    return [(item.id, item.depth) for item in referrers(BEHIND, AssetId(id), field, most_deep=most_deep)]


def test_who_points_at_an_asset_is_told_with_the_field() -> None:
    assert list(referrers(BEHIND, AssetId("row"))) == [
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


def test_a_circle_ends() -> None:
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

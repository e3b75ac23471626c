"""An incarnation as files: one for each asset, canonical, and with the version of its type."""

from __future__ import annotations

import json

from lehr.base.diagnostics import Position
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.sources.released import documents_of
from tests.codes import raises


def made(id: str, type: str = "team.Thing", **more: object) -> Asset:
    return make_asset(AssetId(id), type, {"b": 1, "a": [2]}, {"lehr.Owner": {"team": "web"}}, **more)  # type: ignore[arg-type]


def test_each_asset_is_a_file_below_its_type() -> None:
    files = documents_of([made("a/b"), made("c", "team.Other")])
    assert sorted(files) == ["team.Other/c.json", "team.Thing/a/b.json"]
    assert json.loads(files["team.Thing/a/b.json"]) == {
        "id": "a/b",
        "type": "team.Thing",
        "version": 1,
        "payload": {"a": [2], "b": 1},
        "addons": {"lehr.Owner": {"team": "web"}},
        "versions": {"lehr.Owner": 1},
    }


def test_the_versions_of_types_are_said() -> None:
    files = documents_of([made("a", versions={"team.Thing": 3, "lehr.Owner": 2})])
    document = json.loads(files["team.Thing/a.json"])
    assert document["version"] == 3
    assert document["versions"] == {"lehr.Owner": 2}


def test_where_an_asset_was_made_does_not_count() -> None:
    assert documents_of([made("a")]) == documents_of([made("a", origin=Position("elsewhere", 3))])


def test_a_file_cannot_be_a_folder_too() -> None:
    with raises("SRC131", StalledError, match=r"a\.json.*team\.Thing/a\.json/b\.json"):
        documents_of([made("a"), made("a.json/b")])

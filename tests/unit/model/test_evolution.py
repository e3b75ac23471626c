"""Types evolve: what was written in an old form is read in the form that the reader understands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.model.evolution import Evolution, Step, stepped
from lehr.model.types import AddonType, AssetType, Mention, Reference, Registry, Schema
from tests.codes import raises

WAS = [
    {"version": 1, "steps": [{"rename": {"/mail": "/contact/mail"}}, {"default": {"/level": "silver"}}]},
    {
        "version": 2,
        "steps": [
            {"split": {"field": "/address", "by": ":", "into": ["/host", "/port"]}},
            {"retype": {"/port": "integer"}},
            {"within": "/members/*", "rename": {"/name": "/who"}},
        ],
    },
]
FIRST = {"mail": "x@y", "address": "db:5432", "members": [{"name": "a"}, {}]}
THIRD = {
    "contact": {"mail": "x@y"},
    "level": "silver",
    "host": "db",
    "port": 5432,
    "members": [{"who": "a"}, {}],
}


def declared(version: int = 3, **more: Any) -> Asset:
    payload = {"schema": {}, "version": version, "was": WAS[: version - 1], **more}
    return make_asset(declaration_id("shop.Team"), TYPE, payload, {})


def registry(version: int = 3, **more: Any) -> Registry:
    known = Registry()
    known.declare([declared_type(declared(version, **more))])
    return known


def team(payload: Any = FIRST, version: int = 1) -> Asset:
    versions = {"shop.Team": version} if version > 1 else None
    return make_asset(AssetId("core"), "shop.Team", payload, {}, versions=versions)


def test_what_was_written_in_an_old_form_is_read_in_the_newest() -> None:
    assert registry().payload(team(), dict) == THIRD


def test_a_reader_gets_the_version_that_it_asks_for() -> None:
    known = registry()
    second = {
        "contact": {"mail": "x@y"},
        "level": "silver",
        "address": "db:5432",
        "members": [{"name": "a"}, {}],
    }
    assert known.payload(team(), dict, 1) == FIRST
    assert known.payload(team(), dict, 2) == second
    assert known.payload(team(second, 2), dict, 3) == THIRD


def test_a_reader_that_understands_less_is_told_so_and_reads_nothing() -> None:
    with raises("MOD102", StalledError) as caught:
        registry().payload(team(THIRD, 3), dict, 2)
    assert "shop.Team of asset core cannot be read: it has version 3" in caught.value.what
    assert "understands version 2" in caught.value.what


def test_an_installation_that_knows_less_than_intent_is_told_so() -> None:
    with raises("MOD102", StalledError, match="version 3.*version 1"):
        registry(1).payload(team(THIRD, 3), dict)


def test_a_reader_that_understands_more_than_there_is_gets_what_there_is() -> None:
    assert registry().payload(team(), dict, 4) == THIRD
    assert registry(1).payload(team(THIRD, 3), dict, 4) == THIRD


def test_data_that_resists_is_told_with_what_is_wrong() -> None:
    with raises("MOD103", StalledError) as caught:
        registry().payload(team({"address": "nowhere"}), dict)
    assert "version 2 cannot become data of version 3" in caught.value.what
    assert "`/address` does not have 2 parts" in caught.value.why


def test_references_of_old_content_are_looked_for_where_they_are_now() -> None:
    known = registry(references={"/members/*/who": {"types": []}})
    assert known.mentions(team()) == [Mention("/payload/members/0/who", AssetId("a"), ())]


def test_an_asset_says_its_versions_only_if_they_are_not_the_first() -> None:
    assert b"versions" not in team().body
    assert team(THIRD, 3).version("shop.Team") == 3
    assert team(THIRD, 3).document()["versions"] == {"shop.Team": 3}
    assert team({"versions": {"shop.Team": 9}}).version("shop.Team") == 1
    assert team(FIRST, 2).digest != team(FIRST, 1).digest


class Node(msgspec.Struct, frozen=True):
    name: str
    colour: str = "red"


class Note(msgspec.Struct, frozen=True):
    text: str


def upgrade(version: int, value: dict[str, Any]) -> dict[str, Any]:
    return {"name" if key == "title" else key: item for key, item in value.items()}


NODES = Registry(
    [
        AssetType("test.Node", Node, evolution=Evolution(2, upgrade)),
        AddonType("test.Note", Note, Evolution(2, lambda _version, value: {"text": value["words"]})),
    ]
)


def node(payload: Any, addons: Any = None, **versions: int) -> Asset:
    named = {f"test.{name}": version for name, version in versions.items()}
    return make_asset(AssetId("n"), "test.Node", payload, addons or {}, versions=named)


def test_types_of_packages_evolve_by_a_function_and_fields_with_defaults_may_just_come() -> None:
    assert NODES.payload(node({"title": "a"}), Node) == Node("a", "red")
    assert NODES.payload(node({"name": "a", "colour": "blue"}, Node=2), Node) == Node("a", "blue")
    with raises("MOD102", StalledError, match="version 3.*version 2"):
        NODES.payload(node({"names": "a"}, Node=3), Node)


def test_addons_evolve_like_payloads() -> None:
    assert NODES.addon(node({}, {"test.Note": {"words": "a"}}), "test.Note", Note) == Note("a")
    assert NODES.addon(node({}, {"test.Note": {"text": "a"}}, Note=2), "test.Note", Note) == Note("a")


def test_a_declared_addon_is_an_addon_and_no_asset_type() -> None:
    known = registry(1, kind="addon", references={"/owner": {"types": ["shop.Team"]}})
    assert isinstance(known.addons["shop.Team"], Schema)
    assert "shop.Team" not in known.types
    asset = make_asset(AssetId("a"), "test.Node", {}, {"shop.Team": {"owner": "b"}})
    assert known.mentions(asset) == [Mention("/addons/shop.Team/owner", AssetId("b"), ("shop.Team",))]
    known.declare([])
    assert known.addons == {}


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        ({"rename": {"/a": "/b", "/b": "/a"}}, {"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ({"rename": {"/a": "/b/c"}}, {}, {}),
        ({"join": {"fields": ["/h", "/p"], "by": ":", "into": "/at"}}, {"h": "x", "p": 1}, {"at": "x:1"}),
        ({"join": {"fields": ["/h", "/p"], "by": ":", "into": "/at"}}, {"h": "x"}, {"h": "x"}),
        ({"retype": {"/a": "string", "/b": "number"}}, {"a": 1, "b": "1.5"}, {"a": "1", "b": 1.5}),
        ({"replace": {"/a": {"high": "gold"}}}, {"a": "high"}, {"a": "gold"}),
        ({"replace": {"/a": {"high": "gold"}}}, {"a": "low"}, {"a": "low"}),
        ({"default": {"/a": [], "/b": 1}}, {"b": 2}, {"a": [], "b": 2}),
        ({"remove": ["/a/b", "/c"]}, {"a": {"b": 1, "d": 2}}, {"a": {"d": 2}}),
        ({"within": "/m/*", "remove": ["/a"]}, {"m": {"x": {"a": 1}, "y": 2}}, {"m": {"x": {}, "y": 2}}),
    ],
)
def test_each_step_does_what_it_says(step: Any, before: Any, after: Any) -> None:
    kept = msgspec.json.encode(before)
    assert stepped(before, [msgspec.convert(step, Step)]) == after
    assert msgspec.json.encode(before) == kept


@pytest.mark.parametrize(
    ("step", "before"),
    [
        ({"retype": {"/a": "integer"}}, {"a": 1.5}),
        ({"retype": {"/a": "integer"}}, {"a": 1e300}),
        ({"retype": {"/a": "integer"}}, {"a": "9" * 30}),
        ({"retype": {"/a": "integer"}}, {"a": "hunter2"}),
        ({"retype": {"/a": "number"}}, {"a": 2**53 + 1}),
        ({"retype": {"/a": "number"}}, {"a": "nan"}),
        ({"retype": {"/a": "number"}}, {"a": "1e999"}),
        ({"rename": {"/a": "/b"}}, {"a": 1, "b": 2}),
        ({"split": {"field": "/a", "by": ":", "into": ["/b", "/c"]}}, {"a": "1:2", "c": 3}),
        ({"join": {"fields": ["/a", "/b"], "by": ":", "into": "/c"}}, {"a": 1, "b": 2, "c": 3}),
    ],
)
def test_a_step_that_would_lose_something_is_refused_without_telling_it(step: Any, before: Any) -> None:
    with pytest.raises(ValueError, match="`/") as told:
        stepped(before, [msgspec.convert(step, Step)])
    assert not any(str(value) in str(told.value) for value in before.values() if isinstance(value, str))


def test_a_number_without_a_fraction_may_become_an_integer() -> None:
    assert stepped({"a": 2.0}, [msgspec.convert({"retype": {"/a": "integer"}}, Step)]) == {"a": 2}


def test_a_reference_of_a_declared_type_may_be_the_key_of_a_map() -> None:
    known = Registry([AssetType("t", Schema({}, {"/weights/#": Reference()}))])
    asset = make_asset(AssetId("n"), "t", {"weights": {"a": 1}}, {})
    assert known.mentions(asset) == [Mention("/payload/weights/a", AssetId("a"), ())]

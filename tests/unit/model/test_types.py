"""References are found wherever they stand, and types decode what they wrote."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from lehr.model.addons import ADDONS, DEPENDS_ON, OWNER, DependsOn, Owner
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import AddonType, AnyReference, AssetType, Dependency, Mention, Reference, Registry


class Inner(msgspec.Struct, frozen=True):
    to: Annotated[str, Reference(("test.Node",))]


class Node(msgspec.Struct, frozen=True):
    one: AnyReference | None = None
    many: list[Dependency] = []
    named: dict[str, list[AnyReference]] = {}
    inner: list[Inner] = []
    text: str = ""


NODE = AssetType("test.Node", Node, claims=lambda node: (f"text:{node.text}",) if node.text else ())
REGISTRY = Registry([NODE], ADDONS)


def node(addons: dict[str, object] | None = None, **fields: object) -> Asset:
    return make_asset(AssetId("n"), "test.Node", Node(**fields), addons or {})  # type: ignore[arg-type]


def test_references_are_found_in_fields_lists_maps_and_nested_structures() -> None:
    asset = node(
        {DEPENDS_ON: DependsOn(["e"])},
        one="a",
        many=["b"],
        named={"x": ["c"]},
        inner=[Inner("d")],
        text="not-a-reference",
    )
    assert REGISTRY.mentions(asset) == [
        Mention("/payload/one", AssetId("a"), ()),
        Mention("/payload/many/0", AssetId("b"), (), goes_first=True),
        Mention("/payload/named/x/0", AssetId("c"), ()),
        Mention("/payload/inner/0/to", AssetId("d"), ("test.Node",)),
        Mention("/addons/lehr.DependsOn/assets/0", AssetId("e"), (), goes_first=True),
    ]


def test_dependencies_are_the_references_that_go_first_each_once() -> None:
    asset = node({DEPENDS_ON: DependsOn(["b", "c"])}, one="a", many=["b"])
    assert REGISTRY.dependencies(asset) == ["b", "c"]


def test_absent_references_are_not_mentioned() -> None:
    assert REGISTRY.mentions(node()) == []


def test_references_are_those_of_the_types_that_are_known_now() -> None:
    registry, asset = Registry(), node({DEPENDS_ON: DependsOn(["a"])}, one="b")
    assert registry.mentions(asset) == []
    registry.add(AddonType(DEPENDS_ON, DependsOn))
    registry.mentions(asset).clear()  # a list of the caller's own
    assert [item.target for item in registry.mentions(asset)] == ["a"]
    registry.declare([AssetType(asset.type, Node)])
    assert [item.target for item in registry.mentions(asset)] == ["b", "a"]
    registry.declare([])
    assert [item.target for item in registry.mentions(asset)] == ["a"]


def test_payloads_and_addons_come_back_as_they_were_written() -> None:
    asset = node({OWNER: Owner("web")}, text="x")
    assert REGISTRY.payload(asset, Node) == Node(text="x")
    assert REGISTRY.addon(asset, OWNER, Owner) == Owner("web")
    assert REGISTRY.addon(asset, DEPENDS_ON, DependsOn) is None
    with pytest.raises(TypeError, match=r"test\.Node"):
        REGISTRY.payload(asset, Inner)


def test_claims_are_what_the_type_says() -> None:
    assert REGISTRY.claims(node(text="x")) == ("text:x",)
    assert REGISTRY.claims(node()) == ()
    assert REGISTRY.claims(make_asset(AssetId("o"), "test.Other", {}, {})) == ()


def test_a_type_is_registered_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        Registry([NODE, NODE])


def test_equal_content_has_an_equal_digest_wherever_it_was_declared() -> None:
    assert node(text="x").digest == node(text="x").digest
    assert node(text="x").digest != node(text="y").digest
    plain = make_asset(AssetId("n"), "test.Node", msgspec.to_builtins(Node(text="x")), {})
    assert plain.digest == node(text="x").digest

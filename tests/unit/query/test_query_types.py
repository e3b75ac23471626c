"""Every type explains itself: what it is, what each field is for, and what it may hold."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.model.asset import make_asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.model.evolution import Evolution
from lehr.model.schema import Form
from lehr.model.secret import Secret
from lehr.model.types import AnyReference, AssetType, External, Reference, Registry, Schema
from lehr.query.types import FieldPage, find, page, pages

REGISTRY = wiring.registry()
SCHEMA = {
    "type": "object",
    "required": ["mail"],
    "properties": {
        "mail": {"type": "string", "description": "Where they are reached.", "maxLength": 80},
        "level": {"enum": ["gold", "silver"], "default": "silver"},
        "rota": {"type": "array", "items": {"type": "object", "properties": {"day": {"type": "string"}}}},
        "limits": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
    },
}


@pytest.fixture
def declaring() -> Registry:
    payload = {"schema": SCHEMA, "description": "People who answer.\n\nDay and night."}
    known = REGISTRY.copy()
    known.declare([declared_type(make_asset(declaration_id("shop.Team"), TYPE, payload, {}))])
    return known


@pytest.mark.parametrize("name", sorted((*REGISTRY.types, *REGISTRY.addons)))
def test_every_shipped_type_says_what_it_is_and_what_each_field_is_for(name: str) -> None:
    found = page(REGISTRY, name)
    assert found.summary.endswith(".")
    assert [field.name for field in found.fields if not field.meaning and name != "lehr.DatabaseSchema"] == []


def test_pages_are_of_all_types_and_addons_by_name(declaring: Registry) -> None:
    names = [item.name for item in pages(declaring)]
    assert names == sorted((*REGISTRY.types, *REGISTRY.addons, "shop.Team"))


def test_a_declared_type_is_explained_like_one_of_a_package(declaring: Registry) -> None:
    found = page(declaring, "shop.Team")
    assert (found.role, found.origin) == ("reference", "type/shop.Team")
    assert (found.summary, found.description) == ("People who answer.", "Day and night.")
    assert found.fields == (
        FieldPage("level", "gold or silver", False, '"silver"'),
        FieldPage("limits", "mapping to integer or nothing", False),
        FieldPage("mail", "text", True, None, ("at most 80 characters",), "Where they are reached."),
        FieldPage("rota", "list of mapping", False, fields=(FieldPage("day", "text", False),)),
    )


def test_a_field_is_found_within_what_a_list_holds(declaring: Registry) -> None:
    found, field = find(declaring, "shop.Team.rota.day")
    assert (found.name, field) == ("shop.Team", FieldPage("day", "text", False))
    _, port = find(REGISTRY, "lehr.Process.ports.base")
    assert port is not None
    assert port.limits == ("at least 1", "at most 65535")
    _, command = find(REGISTRY, "lehr.Process.command")
    assert command is not None
    assert command.limits == ("at least 1 item",)


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("shop.Nothing", "unknown type shop.Nothing", "`lehr types` lists all types"),
        (
            "shop.Team.mial",
            "shop.Team has no field mial at that place",
            "its fields: level, limits, mail, rota",
        ),
        ("shop.Team.mail.x", "shop.Team has no field x at that place", "its fields: none"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(declaring: Registry, text: str, said: str, fix: str) -> None:
    with pytest.raises(LehrError) as caught:
        find(declaring, text)
    assert (caught.value.what, caught.value.fix) == (said, fix)


class Node(msgspec.Struct, frozen=True):
    """One of several.

    Attributes:
        next: who comes after it.
    """

    next: Annotated[str, Reference(("shop.Node",), goes_first=True)]
    weights: dict[AnyReference, int] = {}
    image: External | None = None
    password: Secret | None = None


class Tree(msgspec.Struct, frozen=True):
    """Holds trees."""

    owner: AnyReference
    children: list[Tree] = []


def test_a_field_says_what_it_names() -> None:
    found = page(Registry([AssetType("shop.Node", Node)]), "shop.Node")
    assert {field.name: field.limits for field in found.fields} == {
        "next": ("names an asset of type shop.Node, which is pushed first",),
        "weights": ("names an asset",),
        "image": ("names something outside of intent",),
        "password": ("refers to a secret",),
    }


def test_a_type_that_holds_values_of_itself_is_explained_once() -> None:
    [owner, children] = page(Registry([AssetType("shop.Tree", Tree)]), "shop.Tree").fields
    assert (owner.name, children.name, children.fields) == ("owner", "children", ())


MESSAGE = {
    "$ref": "#/$defs/shop.Message",
    "$defs": {
        "shop.Message": {
            "type": "object",
            "protobuf": "message",
            "protobufOneofs": {"place": ["room", "desk"]},
            "additionalProperties": False,
            "properties": {
                "room": {"type": "string", "protobuf": "string"},
                "desk": {"$ref": "#/$defs/shop.Message"},
                "size": {"type": "string", "pattern": "^[0-9]+$", "protobuf": "uint64", "default": "0"},
            },
        }
    },
}


def test_a_message_is_explained_like_any_other_type() -> None:
    schema = Schema(MESSAGE, {}, "What is sent.", form=Form.PROTOBUF)
    found = page(Registry([AssetType("shop.Message", schema, evolution=Evolution(3))]), "shop.Message")
    assert (found.form, found.version, found.origin) == ("protobuf", 3, "a package")
    assert found.fields == (
        FieldPage("room", "text", False, limits=("at most one of room, desk",)),
        FieldPage("desk", "mapping", False, limits=("at most one of room, desk",)),
        FieldPage("size", "unsigned 64-bit integer", False, '"0"'),
    )


def test_a_declared_addon_is_an_addon(declaring: Registry) -> None:
    payload = {"schema": SCHEMA, "kind": "addon", "version": 2}
    declaring.declare([declared_type(make_asset(declaration_id("shop.Seen"), TYPE, payload, {}))])
    found = page(declaring, "shop.Seen")
    assert (found.role, found.origin, found.version) == ("addon", "type/shop.Seen", 2)

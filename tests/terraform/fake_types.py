"""What the fake provider manages: its schemas."""

from __future__ import annotations

from typing import Any

from lehr.plugins.terraform.provider import (
    Attribute,
    Block,
    NestedBlock,
    NestedObject,
    Nesting,
    ProviderSchema,
    Schema,
)


def _has(name: str, type_: Any, *words: str, nested: NestedObject | None = None) -> Attribute:
    return Attribute(name=name, type=type_, nested=nested, **dict.fromkeys(words, True))  # type: ignore[arg-type]


def _required(name: str, type_: Any = "string", *words: str) -> Attribute:
    return _has(name, type_, "required", *words)


def _optional(name: str, type_: Any = "string", *words: str) -> Attribute:
    return _has(name, type_, "optional", *words)


def _computed(name: str, type_: Any = "string", *words: str) -> Attribute:
    return _has(name, type_, "computed", *words)


def _sticky(name: str, type_: Any = "string") -> Attribute:
    return _has(name, type_, "optional", "computed")


PROVIDER = Block(
    attributes=(
        _required("store"),
        _optional("token", "string", "sensitive"),
        _optional("bad_days", ["map", "string"]),
    ),
    blocks=(
        NestedBlock(
            "defaults", Block(attributes=(_optional("tags", ["map", "string"]),)), Nesting.LIST, most=1
        ),
    ),
)

_PART = Block(attributes=(_required("host"), _sticky("zone")))

_RULE = Block(
    attributes=(
        _required("port", "number"),
        _optional("name"),
        _computed("id"),
        _sticky("zone"),
        _optional("key", "string", "sensitive"),
    ),
    blocks=(
        NestedBlock("part", _PART, Nesting.SET),
        NestedBlock("lone", _PART, Nesting.SINGLE),
        NestedBlock("row", _PART, Nesting.LIST),
    ),
)

_REPEATED = (Nesting.SINGLE, Nesting.LIST, Nesting.SET, Nesting.MAP)

_ITEM = (_optional("name"), _sticky("zone"), _computed("id"), _optional("size", "number"))


def _nested(name: str, nesting: Nesting, *words: str) -> Attribute:
    pair = (_optional("a"), _sticky("b"))
    inner = _has("inner", None, "optional", nested=NestedObject(pair, Nesting.SINGLE))
    inners = _has("inners", None, "optional", nested=NestedObject(pair, Nesting.LIST))
    return _has(name, None, *words, nested=NestedObject((*_ITEM, inner, inners), nesting))


_GIVEN = Block(
    attributes=(
        _computed("id"),
        _required("name"),
        _optional("text"),
        _optional("size", "number"),
        _optional("enabled", "bool"),
        _optional("tags", ["map", "string"]),
        _optional("labels", ["set", "string"]),
        _optional("force", "bool"),
        _optional("protected", "bool"),
        _has("former", "string", "optional", "deprecated"),
        _sticky("class"),
        _computed("etag"),
    )
)

RESOURCES: dict[str, Block] = {
    "fake_given": _GIVEN,
    "fake_made": Block(
        attributes=(
            _computed("id"),
            _optional("name"),
            _optional("size", "number"),
            _optional("zone"),
            _optional("tags", ["map", "string"]),
            _sticky("class"),
            _computed("etag"),
        )
    ),
    "fake_blocks": Block(
        attributes=(_computed("id"), _required("name"), _sticky("class")),
        blocks=(
            NestedBlock("only", _RULE, Nesting.SINGLE),
            NestedBlock("options", Block(attributes=(_optional("x", "number"), _sticky("y"))), Nesting.GROUP),
            NestedBlock("step", _RULE, Nesting.LIST),
            NestedBlock("rule", _RULE, Nesting.SET, most=5),
            NestedBlock("keyed", _RULE, Nesting.MAP),
        ),
    ),
    "fake_types": Block(
        attributes=(
            _computed("id"),
            _required("name"),
            _optional("any", "dynamic"),
            _optional("pair", ["tuple", ["string", "number"]]),
            _optional("objects", ["list", ["object", {"a": "string", "b": "number"}]]),
            _optional("object_set", ["set", ["object", {"a": "string", "b": ["list", "string"]}]]),
            _optional("numbers", ["map", "number"]),
            _sticky("sets", ["set", "string"]),
        )
    ),
    "fake_secret": Block(
        attributes=(
            _computed("id"),
            _required("name"),
            _optional("value", "string", "sensitive"),
            _optional("value_wo", "string", "write_only", "sensitive"),
            _optional("value_wo_version", "number"),
            _computed("generated", "string", "sensitive"),
        )
    ),
    "fake_slow": Block(attributes=(_computed("id"), _required("name"), _optional("seconds", "number"))),
    "fake_tainted": Block(
        attributes=(_computed("id"), _required("name"), _optional("text"), _optional("fail", "bool"))
    ),
}

NESTED_RESOURCES: dict[str, Block] = {
    "fake_nested": Block(
        attributes=(
            _computed("id"),
            _required("name"),
            *(_nested(nesting.value, nesting, "optional") for nesting in _REPEATED),
            *(_nested(f"sticky_{nesting.value}", nesting, "optional", "computed") for nesting in _REPEATED),
        )
    )
}
"""Nested attributes: only in version 6."""

REPLACES = {"fake_made": "zone"}
"""The attribute whose change needs another resource, where it is not `name`."""

DATA_SOURCES = {
    "fake_lookup": Block(attributes=(_required("name"), _computed("text"), _computed("exists", "bool"))),
    "fake_search": Block(attributes=(_required("tag"), _computed("ids", ["list", "string"]))),
}
"""A given resource by its name; resources that the provider named, by a key of their tags."""


def schema(protocol: int, version: int, plan_destroy: bool) -> ProviderSchema:
    """All schemas; `version` is that of every resource."""
    resources = RESOURCES | (NESTED_RESOURCES if protocol == 6 else {})
    return ProviderSchema(
        Schema(0, PROVIDER),
        {name: Schema(version, block) for name, block in resources.items()},
        {name: Schema(0, block) for name, block in DATA_SOURCES.items()},
        plan_destroy,
    )

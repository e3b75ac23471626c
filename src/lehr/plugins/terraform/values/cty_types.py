"""Types as cty writes them in JSON: `"string"`, `["list", "string"]`, `["object", {"name": "string"}]`."""

from __future__ import annotations

from typing import Any

from lehr.plugins.terraform.provider import Attribute, Block, NestedBlock, NestedObject, Nesting

CtyType = Any

DYNAMIC = "dynamic"
"""Any type. A value of it is encoded together with its own type."""


def implied_type(block: Block) -> CtyType:
    """The type of the values of `block`: an object."""
    fields = {attribute.name: attribute_type(attribute) for attribute in block.attributes}
    for nested in block.blocks:
        fields[nested.name] = _repeated(implied_type(nested.block), nested.nesting)
    return ["object", fields]


def attribute_type(attribute: Attribute) -> CtyType:
    """The type of one attribute, nested or not."""
    return nested_type(attribute.nested) if attribute.nested is not None else attribute.type


def nested_type(nested: NestedObject) -> CtyType:
    """The type of a nested attribute: an object, or a collection of objects."""
    fields = {attribute.name: attribute_type(attribute) for attribute in nested.attributes}
    return _repeated(["object", fields], nested.nesting)


def block_of(nested: NestedObject) -> Block:
    """The attributes of a nested object as a block without blocks."""
    return Block(attributes=nested.attributes)


def is_single(nested: NestedBlock | NestedObject) -> bool:
    """Whether its value is one object, not a collection of them."""
    return nested.nesting in {Nesting.SINGLE, Nesting.GROUP}


def _repeated(type_: CtyType, nesting: Nesting) -> CtyType:
    return type_ if nesting in {Nesting.SINGLE, Nesting.GROUP} else [nesting.value, type_]

"""Values in which nothing is set."""

from __future__ import annotations

from lehr.plugins.terraform.provider import Block, NestedBlock, Nesting, Value


def null_value(block: Block) -> Value:
    """An object of `block` with null attributes and no blocks."""
    value: dict[str, Value] = {attribute.name: None for attribute in block.attributes}
    value.update((nested.name, null_blocks(nested)) for nested in block.blocks)
    return value


def null_blocks(nested: NestedBlock) -> Value:
    """What stands for no block: an empty collection; null for a single one; a group is always there."""
    match nested.nesting:
        case Nesting.SINGLE:
            return None
        case Nesting.GROUP:
            return null_value(nested.block)
        case Nesting.MAP:
            return {}
    return []

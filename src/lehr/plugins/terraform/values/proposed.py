"""The state that a provider is asked to plan: the configuration, completed by what was before.

Written from the protocol's documentation: values of the configuration are proposed; where it sets nothing, an
attribute that the provider may compute keeps its prior value, and any other is null. Elements of lists belong
together by index, of maps by key, of sets if one can have become the other (`set_elements`).
"""

from __future__ import annotations

from lehr.plugins.terraform.provider import (
    UNKNOWN,
    Attribute,
    Block,
    NestedBlock,
    NestedObject,
    Nesting,
    Value,
)
from lehr.plugins.terraform.values.canonical import in_order
from lehr.plugins.terraform.values.cty_types import block_of, implied_type
from lehr.plugins.terraform.values.msgpack_codec import encode
from lehr.plugins.terraform.values.nulls import null_value
from lehr.plugins.terraform.values.set_elements import Former, has_set_by_hand


def proposed_new(block: Block, prior: Value, config: Value) -> Value:
    """What to propose for a change from `prior` to `config`, both values of `block`; None if `config` is."""
    if config is None or config is UNKNOWN:
        return config
    before = null_value(block) if prior is None else prior
    value: dict[str, Value] = {}
    for attribute in block.attributes:
        value[attribute.name] = _attribute(attribute, before[attribute.name], config[attribute.name])
    for nested in block.blocks:
        value[nested.name] = _nested_blocks(nested, before[nested.name], config[nested.name])
    return value


def _attribute(attribute: Attribute, prior: Value, config: Value) -> Value:
    nested = attribute.nested
    if config is None:
        if not attribute.computed or (nested is not None and has_set_by_hand(nested, prior)):
            return None
        return prior
    return config if nested is None else _elements(nested, block_of(nested), prior, config)


def _nested_blocks(nested: NestedBlock, prior: Value, config: Value) -> Value:
    return config if config is None else _elements(nested, nested.block, prior, config)


def _elements(nested: NestedBlock | NestedObject, block: Block, prior: Value, config: Value) -> Value:
    if config is UNKNOWN:
        return config
    before = None if prior is UNKNOWN else prior
    match nested.nesting:
        case Nesting.LIST:
            former = before or []
            return [
                proposed_new(block, former[index] if index < len(former) else None, one)
                for index, one in enumerate(config)
            ]
        case Nesting.MAP:
            return {key: proposed_new(block, (before or {}).get(key), one) for key, one in config.items()}
        case Nesting.SET:
            left = Former(block, before or [])
            return in_order(
                [proposed_new(block, left.take(one), one) for one in config], implied_type(block), encode
            )
    return proposed_new(block, before, config)

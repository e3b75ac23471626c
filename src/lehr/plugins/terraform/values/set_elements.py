"""Which element of a set was which before: elements have neither names nor places."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.plugins.terraform.provider import UNKNOWN, Attribute, Block, NestedObject, Nesting, Value
from lehr.plugins.terraform.values.cty_types import attribute_type, block_of, implied_type
from lehr.plugins.terraform.values.msgpack_codec import encode


class Former:
    """The elements of a set in a prior state, each of which becomes one new element at most."""

    def __init__(self, block: Block, elements: Sequence[Value]) -> None:
        self._block = block
        self._left = list(elements)

    def take(self, config: Value) -> Value:
        """The element that `config` may have become, or None. It is not given again."""
        for index, prior in enumerate(self._left):
            if may_become(self._block, config, prior):
                return self._left.pop(index)
        return None


def may_become(block: Block, config: Value, state: Value) -> bool:
    """Whether `state` is `config`, with no more than what a provider may have added.

    As Terraform decides it: it compares the attributes that `state` has. So a collection may have grown in
    `config`, but not shrunk, and elements of sets within must not differ at all.
    """
    if state is None:
        return True
    if not isinstance(config, dict) or not isinstance(state, dict):
        return config is state
    return all(
        _attribute_may(attribute, config[attribute.name], state[attribute.name])
        for attribute in block.attributes
    ) and all(
        _elements_may(nested.nesting, nested.block, config[nested.name], state[nested.name])
        for nested in block.blocks
    )


def has_set_by_hand(nested: NestedObject, value: Value) -> bool:
    """Whether `value` has something that the provider cannot have computed, but people wrote.

    If it is not written any more, then it was removed.
    """
    block = block_of(nested)
    if value is None or value is UNKNOWN:
        return False
    match nested.nesting:
        case Nesting.LIST | Nesting.SET:
            objects = value
        case Nesting.MAP:
            objects = value.values()
        case _:
            objects = [value]
    return any(
        _by_hand(attribute, one[attribute.name])
        for one in objects
        if isinstance(one, dict)
        for attribute in block.attributes
    )


def _by_hand(attribute: Attribute, value: Value) -> bool:
    if value is None:
        return False
    if not attribute.computed:
        return True
    return attribute.nested is not None and has_set_by_hand(attribute.nested, value)


def _attribute_may(attribute: Attribute, config: Value, state: Value) -> bool:
    if config is None and attribute.computed:
        return True
    if attribute.nested is not None:
        return _elements_may(attribute.nested.nesting, block_of(attribute.nested), config, state)
    type_ = attribute_type(attribute)
    return encode(config, type_) == encode(state, type_)


def _elements_may(nesting: Nesting, block: Block, config: Value, state: Value) -> bool:
    if not state:
        return True
    if config is None or config is UNKNOWN or state is UNKNOWN:
        return config is state
    match nesting:
        case Nesting.LIST:
            return len(state) <= len(config) and all(
                may_become(block, config[index], one) for index, one in enumerate(state)
            )
        case Nesting.MAP:
            return state.keys() <= config.keys() and all(
                may_become(block, config[key], one) for key, one in state.items()
            )
        case Nesting.SET:
            type_ = implied_type(block)
            written = {encode(one, type_) for one in config}
            return all(encode(one, type_) in written for one in state)
    return may_become(block, config, state)

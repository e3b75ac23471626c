"""Where secrets are in a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from lehr.plugins.terraform.provider import Attribute, Block, NestedBlock, NestedObject, Nesting, Path, Value
from lehr.plugins.terraform.values.cty_types import block_of

Names = tuple[str, ...]
"""Names of attributes and blocks from the outermost on, without keys and indexes."""


def sensitive_paths(block: Block) -> frozenset[Names]:
    """Attributes that must not be shown, write-only ones among them."""
    return frozenset(_paths(block, (), lambda attribute: attribute.sensitive or attribute.write_only))


def write_only_paths(block: Block) -> frozenset[Names]:
    """Attributes that a provider takes, and never returns: they are null in every state."""
    return frozenset(_paths(block, (), lambda attribute: attribute.write_only))


def is_within(path: Path, block: Block, paths: frozenset[Names]) -> bool:
    """Whether `path`, in a value of `block`, is at or below one of `paths`."""
    names = _names_of(path, block)
    return any(names[:count] in paths for count in range(1, len(names) + 1))


def without(block: Block, value: Value, paths: frozenset[Names], put: Value = None) -> Value:
    """`value` of `block` with `put` in place of everything at `paths` that is set."""
    return _without(block, (), paths, put, value) if paths else value


def secret_texts(block: Block, value: Value) -> frozenset[str]:
    """The texts of everything sensitive in `value`, however deep."""
    found: set[str] = set()
    _collect(block, found, value)
    return frozenset(found)


def texts_in(value: Value) -> Iterator[str]:
    """All texts in `value`, and its numbers as texts."""
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from texts_in(one)
        case list():
            for one in value:
                yield from texts_in(one)
        case int() | float() if not isinstance(value, bool):
            yield str(value)


def _paths(block: Block, above: Names, wanted: Callable[[Attribute], bool]) -> Iterator[Names]:
    for attribute in block.attributes:
        if wanted(attribute):
            yield (*above, attribute.name)
        elif attribute.nested is not None:
            yield from _paths(block_of(attribute.nested), (*above, attribute.name), wanted)
    for nested in block.blocks:
        yield from _paths(nested.block, (*above, nested.name), wanted)


def _names_of(path: Path, block: Block) -> Names:
    """The names in `path`, which also has keys and indexes where its schema has collections."""
    names: list[str] = []
    steps = iter(path)
    current: Block | None = block
    for step in steps:
        if current is None:
            break
        child = _child(current, str(step))
        names.append(str(step))
        if child is None:
            break
        current, nesting = child
        if nesting in {Nesting.LIST, Nesting.MAP, Nesting.SET}:
            next(steps, None)
    return tuple(names)


def _child(block: Block, name: str) -> tuple[Block, Nesting] | None:
    for attribute in block.attributes:
        if attribute.name == name and attribute.nested is not None:
            return block_of(attribute.nested), attribute.nested.nesting
    for nested in block.blocks:
        if nested.name == name:
            return nested.block, nested.nesting
    return None


def _without(block: Block, above: Names, paths: frozenset[Names], put: Value, value: Value) -> Value:
    if not isinstance(value, dict):
        return value
    changed = dict(value)
    for attribute in block.attributes:
        names, one = (*above, attribute.name), value[attribute.name]
        if names in paths:
            changed[attribute.name] = None if one is None else put
        elif attribute.nested is not None:
            change = partial(_without, block_of(attribute.nested), names, paths, put)
            changed[attribute.name] = _each(attribute.nested, one, change)
    for nested in block.blocks:
        change = partial(_without, nested.block, (*above, nested.name), paths, put)
        changed[nested.name] = _each(nested, value[nested.name], change)
    return changed


def _each(nested: NestedBlock | NestedObject, value: Value, change: Callable[[Value], Value]) -> Value:
    match nested.nesting, value:
        case ((Nesting.LIST | Nesting.SET), list()):
            return [change(one) for one in value]
        case Nesting.MAP, dict():
            return {key: change(one) for key, one in value.items()}
    return change(value)


def _collect(block: Block, found: set[str], value: Value) -> None:
    if not isinstance(value, dict):
        return
    for attribute in block.attributes:
        one = value[attribute.name]
        if attribute.sensitive or attribute.write_only:
            found.update(texts_in(one))
        elif attribute.nested is not None:
            _each(attribute.nested, one, partial(_collect, block_of(attribute.nested), found))
    for nested in block.blocks:
        _each(nested, value[nested.name], partial(_collect, nested.block, found))

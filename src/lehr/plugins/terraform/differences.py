"""Differences between two values of one schema, and whether they may be shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.plugins.terraform.provider import Attribute, Block, Nesting, Path, Value
from lehr.plugins.terraform.values.cty_types import attribute_type, block_of, implied_type
from lehr.plugins.terraform.values.msgpack_codec import encode
from lehr.plugins.terraform.values.nulls import null_value
from lehr.plugins.terraform.values.secret_paths import sensitive_paths

_PLAIN = (str, bool, int, type(None))
"""Types whose values are equal if and only if their encodings are."""

_ONE = (Nesting.SINGLE, Nesting.GROUP)


class Difference(NamedTuple):
    """A part of a value that differs.

    Attributes:
        path: names, keys and indexes; sets are not divided.
        sensitive: it is, or holds, what must not be shown.
    """

    path: Path
    before: Value
    after: Value
    sensitive: bool


def differences(block: Block, before: Value, after: Value, path: Path = ()) -> Iterator[Difference]:
    """The parts that differ between two values of a block; None is a value in which nothing is set."""
    before = null_value(block) if before is None else before
    after = null_value(block) if after is None else after
    for attribute in block.attributes:
        one, other = before[attribute.name], after[attribute.name]
        yield from _of_attribute(attribute, one, other, (*path, attribute.name))
    for nested in block.blocks:
        one, other = before[nested.name], after[nested.name]
        yield from _repeated(nested.block, nested.nesting, one, other, (*path, nested.name))


def same(block: Block, before: Value, after: Value) -> bool:
    """Whether two values of a block are equal."""
    return next(differences(block, before, after), None) is None


def _of_attribute(attribute: Attribute, before: Value, after: Value, path: Path) -> Iterator[Difference]:
    if type(before) is type(after) and type(before) in _PLAIN and before == after:
        return
    nested, kind = attribute.nested, attribute_type(attribute)
    if encode(before, kind) == encode(after, kind):
        return
    if attribute.sensitive or attribute.write_only:
        yield Difference(path, before, after, True)
    elif nested is None:
        yield from _within(kind, before, after, path)
    else:
        yield from _repeated(block_of(nested), nested.nesting, before, after, path)


def _repeated(
    block: Block, nesting: Nesting, before: Value, after: Value, path: Path
) -> Iterator[Difference]:
    inner = implied_type(block)
    kind = inner if nesting in _ONE else [str(nesting), inner]
    if encode(before, kind) == encode(after, kind):
        return
    found: list[Difference] = []
    if nesting in _ONE and _both(dict, before, after):
        found += differences(block, before, after, path)
    elif nesting is Nesting.LIST and _both(list, before, after):
        for index in range(max(len(before), len(after))):
            one, other = (items[index] if index < len(items) else None for items in (before, after))
            found += differences(block, one, other, (*path, index))
    elif nesting is Nesting.MAP and _both(dict, before, after):
        for key in sorted({*before, *after}):
            found += differences(block, before.get(key), after.get(key), (*path, key))
    # Of a block in which nothing is set, only the number of blocks differs.
    yield from found or [Difference(path, before, after, bool(sensitive_paths(block)))]


def _within(kind: Any, before: Value, after: Value, path: Path) -> Iterator[Difference]:
    """Of maps and objects the parts that differ; anything else as a whole."""
    if isinstance(kind, str) or not _both(dict, before, after):
        yield Difference(path, before, after, False)
        return
    for key in sorted({*before, *after}):
        inner = kind[1].get(key, "dynamic") if kind[0] == "object" else kind[1]
        one, other = before.get(key), after.get(key)
        if encode(one, inner) != encode(other, inner):
            yield from _within(inner, one, other, (*path, key))


def born_secrets(block: Block, above: tuple[str, ...] = ()) -> list[str]:
    """The attributes that hold secrets which a provider makes, with dots where they are nested."""
    found: list[str] = []
    for attribute in block.attributes:
        names = (*above, attribute.name)
        if attribute.computed and not attribute.optional and attribute.sensitive:
            found.append(".".join(names))
        elif attribute.nested is not None:
            found += born_secrets(block_of(attribute.nested), names)
    for nested in block.blocks:
        found += born_secrets(nested.block, (*above, nested.name))
    return found


def _both(kind: type[Any], before: Value, after: Value) -> bool:
    return isinstance(before, kind) and isinstance(after, kind)

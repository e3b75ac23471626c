"""The configuration that a resource has, as a person would write it. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from lehr.plugins.terraform.provider import Attribute, Block, Nesting, Number, Typed, Value
from lehr.plugins.terraform.values.canonical import has_unknown
from lehr.plugins.terraform.values.cty_types import block_of

_ONE = (Nesting.SINGLE, Nesting.GROUP)
_HANDED_OUT = "id"


def written(
    block: Block, value: Value, also: Container[str] = (), *, outermost: bool = True
) -> dict[str, Any]:
    """The shortest configuration that can have led to a state, without sensitive values.

    Attributes that the provider can also decide are left out, as is what is empty, unless their names are in
    `also`.
    """
    found: dict[str, Any] = {}
    for attribute in block.attributes:
        item = value.get(attribute.name)
        if _is_written(attribute, item, also, outermost=outermost):
            found[attribute.name] = _attribute(attribute, item)
    for nested in block.blocks:
        items = _repeated(nested.block, nested.nesting, value.get(nested.name))
        if items:
            found[nested.name] = items
    return found


def unwritten(block: Block, value: Value) -> list[str]:
    """Names of sensitive arguments that a state has, or that are required: a person has to add them."""
    return [
        attribute.name
        for attribute in block.attributes
        if (attribute.sensitive or attribute.write_only)
        and (attribute.required or (attribute.optional and not _is_empty(value.get(attribute.name))))
    ]


def referring(config: Any, values: Mapping[str, tuple[str, str]]) -> tuple[Any, dict[str, tuple[str, str]]]:
    """A configuration with `${NAME}` in place of texts that are outputs of other assets.

    Args:
        values: assets and outputs by the text that is their value.

    Returns:
        The configuration, and the asset and the output of each name.
    """
    names: dict[str, tuple[str, str]] = {}

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replaced(item) for key, item in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if not isinstance(value, str) or value not in values:
            return value
        name = next((known for known, place in names.items() if place == values[value]), "")
        if not name:
            name = f"{_name_of(values[value][0])}_{values[value][1].rpartition('/')[2]}"
            while name in names:
                name += "_2"
            names[name] = values[value]
        return f"${{{name}}}"

    return replaced(config), names


def _name_of(asset: str) -> str:
    name = "".join(one if one.isalnum() else "_" for one in asset.rpartition("/")[2].lower())
    return name[:40] if name[:1].isalpha() else f"it_{name[:40]}"


def _is_written(attribute: Attribute, item: Value, also: Container[str], *, outermost: bool) -> bool:
    if attribute.sensitive or attribute.write_only or item is None or has_unknown(item):
        return False
    if attribute.required:
        return True
    if not attribute.optional or (outermost and attribute.name == _HANDED_OUT and attribute.computed):
        return False
    if outermost and attribute.name in also:
        return True
    return not attribute.computed and not _is_empty(item)


def _is_empty(item: Value) -> bool:
    return item in (None, "", 0, [], {}) or item is False


def _attribute(attribute: Attribute, item: Value) -> Any:
    if attribute.nested is not None:
        return _repeated(block_of(attribute.nested), attribute.nested.nesting, item)
    return _plain(item)


def _repeated(block: Block, nesting: Nesting, value: Value) -> Any:
    if value is None:
        return None
    if nesting in _ONE:
        return written(block, value, outermost=False)
    if nesting is Nesting.MAP:
        return {key: written(block, item, outermost=False) for key, item in value.items()}
    return [written(block, item, outermost=False) for item in value]


def _plain(value: Value) -> Any:
    if isinstance(value, Number):
        return value.digits
    if isinstance(value, Typed):
        return _plain(value.value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value

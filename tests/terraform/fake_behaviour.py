"""How the fake provider plans and applies: as providers made with HashiCorp's framework do."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

from lehr.plugins.terraform.provider import (
    UNKNOWN,
    Attribute,
    Block,
    Diagnostic,
    NestedBlock,
    NestedObject,
    Nesting,
    Path,
    Severity,
    Value,
)
from lehr.plugins.terraform.values.cty_types import block_of, implied_type
from lehr.plugins.terraform.values.msgpack_codec import encode
from lehr.plugins.terraform.values.secret_paths import without, write_only_paths
from tests.terraform.fake_store import Store
from tests.terraform.fake_types import REPLACES

_NUMBERS = itertools.count(1)
"""So that no two computed values are equal."""

_VOLATILE = {"etag"}
"""Computed attributes that are another at each change."""

_DEFAULTS = {"class": "standard"}
"""Optional and computed attributes that are known when planned."""

_KEPT = {"force"}
"""Attributes that no API shows."""


def problems_of(config: dict[str, Any]) -> list[Diagnostic]:
    """What validation finds."""
    found = []
    if isinstance(size := config.get("size"), int | float) and size < 0:
        found.append(Diagnostic(Severity.ERROR, "size too small", f"{size} is less than 0", ("size",)))
    if config.get("text") == "odd":
        found.append(Diagnostic(Severity.WARNING, "odd text", "", ("text",)))
    if isinstance(secret := config.get("value"), str) and secret.startswith("bad"):
        found.append(Diagnostic(Severity.ERROR, "bad value", f"the value {secret} is bad", ("value",)))
    return found


def planned(block: Block, prior: Value, proposed: Value, config: Value) -> Value:
    """The planned state: what the provider computes is unknown until it is applied."""
    if proposed is None:
        return None
    type_ = implied_type(block)
    value = without(block, proposed, write_only_paths(block))
    if prior is not None and encode(value, type_) == encode(prior, type_):
        return value
    value = _filled(block, value, config)
    for name in _VOLATILE & value.keys():
        value[name] = UNKNOWN
    return value


def replaced(type_: str, prior: Value, value: Value) -> list[Path]:
    """What needs another resource."""
    name = REPLACES.get(type_, "name")
    return [(name,)] if prior is not None and value is not None and prior[name] != value[name] else []


def applied(type_: str, block: Block, value: dict[str, Any], config: Value, store: Store) -> dict[str, Any]:
    """The new state of `value`, with nothing unknown, after it was stored."""
    if value["id"] is UNKNOWN:
        value["id"] = value["name"] if type_ != "fake_made" else store.new_id(type_)
    for name in _VOLATILE & value.keys():
        if value[name] is UNKNOWN:
            value[name] = hashlib.sha256(
                json.dumps(value, default=repr, sort_keys=True).encode()
            ).hexdigest()[:8]
    state: dict[str, Any] = _known(block, value)
    shown = {name: one for name, one in state.items() if name not in _KEPT}
    if type_ == "fake_secret":
        shown["sent"] = config["value_wo"]  # what an API never shows
    store.put(type_, state["id"], shown)
    return state


def read(type_: str, state: dict[str, Any], store: Store) -> Value:
    """The state as the store has it; None if it is gone."""
    shown = store.get(type_, state["id"])
    if shown is None:
        return None
    shown.pop("sent", None)
    return state | shown


def _filled(block: Block, proposed: Value, config: Value) -> Value:
    """Unknown where something is to be computed; null where it is only to be written."""
    if not isinstance(proposed, dict):
        return proposed
    value = dict(proposed)
    for attribute in block.attributes:
        given = config[attribute.name] if isinstance(config, dict) else None
        value[attribute.name] = _filled_attribute(attribute, proposed[attribute.name], given)
    for nested in block.blocks:
        given = config[nested.name] if isinstance(config, dict) else None
        value[nested.name] = _each(nested, nested.block, proposed[nested.name], given)
    return value


def _filled_attribute(attribute: Attribute, proposed: Value, config: Value) -> Value:
    if attribute.write_only:
        return None  # and not unknown
    if proposed is None:
        return _DEFAULTS.get(attribute.name, UNKNOWN) if attribute.computed and config is None else None
    if attribute.nested is not None:
        return _each(attribute.nested, block_of(attribute.nested), proposed, config)
    return proposed


def _each(nested: NestedBlock | NestedObject, block: Block, proposed: Value, config: Value) -> Value:
    match nested.nesting, proposed:
        case ((Nesting.LIST | Nesting.SET), list()):
            return [_filled(block, one, None) for one in proposed]
        case Nesting.MAP, dict():
            return {key: _filled(block, one, None) for key, one in proposed.items()}
    return _filled(block, proposed, config)


def _known(block: Block, value: Value) -> Value:
    """`value` with what the provider makes of unknown parts."""
    if value is UNKNOWN:
        return None
    if not isinstance(value, dict):
        return value
    known = dict(value)
    for attribute in block.attributes:
        one = value[attribute.name]
        if attribute.nested is not None:
            known[attribute.name] = _known_each(attribute.nested, block_of(attribute.nested), one)
        elif one is UNKNOWN:
            known[attribute.name] = (
                f"made-{attribute.name}-{next(_NUMBERS)}" if attribute.type == "string" else None
            )
    for nested in block.blocks:
        known[nested.name] = _known_each(nested, nested.block, value[nested.name])
    return known


def _known_each(nested: NestedBlock | NestedObject, block: Block, value: Value) -> Value:
    match nested.nesting, value:
        case ((Nesting.LIST | Nesting.SET), list()):
            return [_known(block, one) for one in value]
        case Nesting.MAP, dict():
            return {key: _known(block, one) for key, one in value.items()}
    return _known(block, value)

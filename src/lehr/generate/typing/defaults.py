"""Fills in defaults of a JSON schema, so that equal intent has equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.base.pointers import parts_of

_MOST_STEPS = 20


def with_defaults(value: Any, schema: Any) -> Any:
    """Plain data with every default of its JSON schema filled in, at any depth."""
    return _filled(value, schema, schema)


def _filled(value: Any, schema: Any, root: Any) -> Any:
    schema = _resolved(value, schema, root)
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        missing = {
            name: item["default"]
            for name, item in properties.items()
            if name not in value and isinstance(item, Mapping) and "default" in item
        }
        others = schema.get("additionalProperties")
        return {
            name: _filled(item, properties.get(name, others), root)
            for name, item in (value | missing).items()
        }
    if isinstance(value, list):
        return [_filled(item, schema.get("items"), root) for item in value]
    return value


def _resolved(value: Any, schema: Any, root: Any) -> Any:
    """The schema that `value` must fit: references are followed, and the matching alternative is chosen."""
    for _ in range(_MOST_STEPS):
        if not isinstance(schema, Mapping):
            return schema
        if "$ref" in schema and "properties" not in schema:
            schema = _at(root, schema["$ref"])
        elif "anyOf" in schema and "properties" not in schema:
            schema = _chosen(value, schema, root)
        else:
            return schema
    return None


def _chosen(value: Any, schema: Mapping[str, Any], root: Any) -> Any:
    branches = [item for item in schema["anyOf"] if not _only_null(item)]
    discriminator = schema.get("discriminator")
    if isinstance(discriminator, Mapping) and isinstance(value, dict):
        tag = value.get(str(discriminator.get("propertyName")))
        place = discriminator.get("mapping", {}).get(tag) if isinstance(tag, str) else None
        return _at(root, place)
    return branches[0] if len(branches) == 1 else None


def _only_null(branch: Any) -> bool:
    return isinstance(branch, Mapping) and branch.get("type") == "null"


def _at(root: Any, reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found = root
    for part in parts_of(reference):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found

"""Checks that a JSON pointer into payloads of a type can match: a typo would go unnoticed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lehr.base.pointers import parts_of
from lehr.generate.typing.problems import NAMES, did_you_mean, quoted

_OPEN = ("$dynamicRef", "allOf", "if", "not", "oneOf", "patternProperties", "unevaluatedProperties")
"""Keywords that may describe a mapping beyond its properties."""

_MOST_STEPS = 20


def pointer_problem(pattern: str, schema: Any) -> tuple[str, str] | None:
    """Why a pattern cannot match anything in this JSON schema, and advice; None if it may."""
    found = _followed(pattern, schema)
    return found if isinstance(found, tuple) else None


def kind_problem(pattern: str, schema: Any, kinds: Collection[str]) -> tuple[str, str] | None:
    """Why a pattern's target can never be of these kinds (`string`), and advice; None if it may be.

    A pattern without a target is also a problem.
    """
    found = _followed(pattern, schema)
    if isinstance(found, tuple):
        return found
    there = [_kinds(node) for node in found]
    if any(kind is None or set(kind) & set(kinds) for kind in there):
        return None
    wanted = " or ".join(NAMES[kind] for kind in kinds)
    has = " or ".join(dict.fromkeys(NAMES.get(item, item) for kind in there for item in kind or ()))
    inside = any(set(kind or ()) & {"array", "object"} for kind in there)
    fix = f"mark its content: `{pattern}/*`" if inside else f"let the schema allow {wanted} there"
    return f"{quoted(pattern)} leads to {has}, not to {wanted}", fix


def _followed(pattern: str, schema: Any) -> tuple[str, str] | list[Mapping[str, Any]]:
    """The schemas of a pattern's target; or why it has none, and advice."""
    nodes = list(_forms(schema, schema))
    for part in parts_of(pattern):
        found = [inner for node in nodes for inner in _step(node, part)]
        if not found:
            fields = [name for node in nodes for name in node.get("properties", {})]
            fix = did_you_mean(part, fields, f"fields: {', '.join(fields)}" if fields else "fix the pointer")
            return f"{quoted(pattern)} leads nowhere: {quoted(part)} does not exist", fix
        nodes = [form for inner in found for form in _forms(inner, schema)]
    return nodes


def _kinds(node: Mapping[str, Any]) -> Collection[str] | None:
    """The kinds of values that a schema allows; None if unspecified."""
    kind = node.get("type")
    return [kind] if isinstance(kind, str) else kind


def _step(node: Mapping[str, Any], part: str) -> Iterator[Any]:
    """The schemas of possible values one step below a value of this schema."""
    properties, others = node.get("properties", {}), node.get("additionalProperties", True)
    kind = node.get("type")
    lists, maps = kind is None or "array" in kind, kind is None or "object" in kind
    if any(key in node for key in _OPEN):
        yield True
    if maps and part == "*":
        yield from properties.values()
    if maps and part in properties:
        yield properties[part]
    elif maps and others is not False:
        yield others
    if maps and part == "#":
        yield True
    if lists and (part == "*" or part.isdecimal()):
        yield node.get("items", True)


def _forms(node: Any, root: Any) -> Iterator[Mapping[str, Any]]:
    """The target of a schema's reference, or each of its alternatives; an open schema if unknown."""
    for _ in range(_MOST_STEPS):
        if not isinstance(node, Mapping):
            break
        if "$ref" in node:
            node = _at(root, str(node["$ref"]))
        elif "anyOf" in node:
            for item in node["anyOf"]:
                yield from _forms(item, root)
            return
        else:
            yield node
            return
    yield {}


def _at(root: Any, reference: str) -> Any:
    found = root
    for part in parts_of(reference.removeprefix("#")):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found

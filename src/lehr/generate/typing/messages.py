"""Converts values of protobuf messages from any accepted form to the stored one.

Works on the schemas that `lehr.model.message_types` makes; needs no protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.base.pointers import pointer
from lehr.generate.typing.message_values import CANONICAL, UnfitError
from lehr.generate.typing.problems import Problem, did_you_mean, dotted, quoted, show, unknown_field

Node = Mapping[str, Any]
Path = tuple[str | int, ...]


def normalised(value: Any, schema: Node, of: str = "") -> tuple[Any, list[Problem]]:
    """`value` in its stored form, and everything that prevents it from being a message of this schema.

    Problems point into `value`, with the field names used there.

    Args:
        of: name of the message's type in problems.
    """
    reading = _Conversion(schema, of)
    return reading.value(value, schema, ()), reading.problems


def renamed(value: Any, schema: Node) -> Any:
    """`value` with its fields renamed to their stored names, and nothing else changed."""
    return _renamed(value, schema, schema)


def written(place: str, value: Any) -> str:
    """The JSON pointer for `place` in `value`, with the field names used there."""
    parts: list[str] = []
    for part in place.split("/")[1:]:
        name = part
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        elif isinstance(value, dict):
            if part not in value:
                name = next((other for other in value if _camel(other) == part), part)
            value = value.get(name)
        parts.append(name)
    return "".join(f"/{part}" for part in parts)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def _renamed(value: Any, node: Node, root: Node) -> Any:
    node = _resolved(node, root)
    if isinstance(value, list) and "items" in node:
        return [_renamed(item, node["items"], root) for item in value]
    if not isinstance(value, dict):
        return value
    names, properties = node.get("protobufNames", {}), node.get("properties", {})
    others = node.get("additionalProperties") or {}
    return {
        (name := names.get(written, written)): _renamed(item, properties.get(name, others), root)
        for written, item in value.items()
    }


def _resolved(node: Node, root: Node) -> Node:
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return node
    found: Node = root["$defs"][reference.removeprefix("#/$defs/")]
    return found


class _Conversion:
    """One value during conversion."""

    def __init__(self, root: Node, of: str) -> None:
        self._root = root
        self._of = of
        self.problems: list[Problem] = []

    def value(self, value: Any, node: Node, path: Path) -> Any:
        node = _resolved(node, self._root)
        match node.get("protobuf"):
            case "message":
                return self._message(value, node, path)
            case "map":
                return self._map(value, node, path)
            case "repeated":
                return self._repeated(value, node, path)
            case "enum":
                return self._enum(value, node, path)
            case kind:
                return self._scalar(value, str(kind), path)

    def _wrong(self, path: Path, what: str, fix: str = "", why: str = "") -> None:
        self.problems.append(Problem(pointer(path), what, why, fix))

    def _message(self, value: Any, node: Node, path: Path) -> Any:
        if not isinstance(value, dict):
            self._wrong(path, f"{_field(path)} is {show(value)}, not a mapping", "write its fields")
            return value
        fields: dict[str, Any] = {}
        properties, names = node["properties"], node.get("protobufNames", {})
        for written, item in value.items():
            name, here = names.get(written, written), (*path, written)
            if name not in properties:
                self.problems.append(unknown_field(path, written, list(properties), self._of))
            elif name in fields:
                self._wrong(here, f"{dotted(here)} is given twice, under both of its names", "delete one")
            elif item is not None or self._takes_null(properties[name]):
                fields[name] = self.value(item, properties[name], here)
        for choice in node.get("protobufOneofs", {}).values():
            self._choose(choice, fields, path)
        for name in node.get("required", ()):
            if name not in fields:
                self._wrong(path, f"`{dotted((*path, name))}` is missing", f"add `{name}`")
        for name, item in properties.items():
            if name not in fields and "default" in item:
                fields[name] = item["default"]
        return fields

    def _takes_null(self, node: Node) -> bool:
        return _resolved(node, self._root).get("protobuf") in ("value", "null")

    def _choose(self, choice: list[str], fields: Mapping[str, Any], path: Path) -> None:
        given = [name for name in choice if name in fields]
        if len(given) > 1:
            what = f"{_field(path)} has {' and '.join(f'`{name}`' for name in given)}"
            self._wrong((*path, given[1]), what, "keep one of them", "at most one of these may be given")

    def _map(self, value: Any, node: Node, path: Path) -> Any:
        if not isinstance(value, dict):
            self._wrong(path, f"{_field(path)} is {show(value)}, not a mapping", "write a mapping")
            return value
        entries: dict[str, Any] = {}
        for written, item in value.items():
            here = (*path, written)
            key = self._key(written, node["protobufKeys"], here)
            if key in entries:
                self._wrong(here, f"{dotted(here)} is given twice, in two spellings", "delete one")
            elif item is None and not self._takes_null(node["additionalProperties"]):
                self._wrong(here, f"{_field(here)} is null", "delete it, or write a value")
            else:
                entries[key] = self.value(item, node["additionalProperties"], here)
        return entries

    def _key(self, written: str, kind: str, path: Path) -> str:
        if kind == "bool":
            if written not in ("true", "false"):
                self._wrong(path, f"the key {quoted(written)} is neither `true` nor `false`")
            return written
        return str(self._scalar(written, kind, path))

    def _repeated(self, value: Any, node: Node, path: Path) -> Any:
        if not isinstance(value, list):
            self._wrong(path, f"{_field(path)} is {show(value)}, not a list", "write a list")
            return value
        items = []
        for index, item in enumerate(value):
            here = (*path, index)
            if item is None and not self._takes_null(node["items"]):
                self._wrong(here, f"{_field(here)} is null", "delete it, or write a value")
            else:
                items.append(self.value(item, node["items"], here))
        return items

    def _enum(self, value: Any, node: Node, path: Path) -> Any:
        known, names = node["enum"], node.get("protobufNames", {})
        number = isinstance(value, int) and not isinstance(value, bool)
        name = names.get(str(value), value) if number or isinstance(value, str) else value
        if name in known and (number or not str(value).lstrip("-").isdigit()):
            return name
        fix = did_you_mean(str(value), known, f"write one of: {', '.join(known)}")
        self._wrong(path, f"{_field(path)} is {show(value)}, which is not one of its values", fix)
        return value

    def _scalar(self, value: Any, kind: str, path: Path) -> Any:
        try:
            return CANONICAL[kind](value)
        except UnfitError as error:
            why, fix = error.why, f"write {error.wanted}"
            self._wrong(path, f"{_field(path)} is {show(value)}, not {error.wanted}", fix, why)
            return value


def _field(path: Path) -> str:
    return f"`{dotted(path)}`" if path else "it"

"""What a type is for, field by field: the same for types of packages and of workspaces."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lehr.base.errors import LehrError
from lehr.model.declared import declaration_id
from lehr.model.types import Registry, Schema

_KINDS = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
    "object": "mapping",
}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches {}",
    "format": "a {}",
}


class FieldPage(msgspec.Struct, frozen=True):
    """One field.

    Attributes:
        kind: what it holds, in words; limits: what keeps a value from being right.
        default: as JSON; None when there is none.
        meaning: what it is for; may be empty.
        fields: those within it.
    """

    name: str
    kind: str
    required: bool
    default: str | None = None
    limits: tuple[str, ...] = ()
    meaning: str = ""
    fields: tuple[FieldPage, ...] = ()


class TypePage(msgspec.Struct, frozen=True):
    """One type.

    Attributes:
        role: `production`, `governance`, `reference` (no production) or `addon`.
        origin: where it comes from: a package, or the asset that declares it.
    """

    name: str
    role: str
    origin: str
    summary: str
    description: str
    fields: tuple[FieldPage, ...]


def pages(registry: Registry) -> list[TypePage]:
    """Every type and addon, by name."""
    return [page(registry, name) for name in sorted((*registry.types, *registry.addons))]


def page(registry: Registry, name: str) -> TypePage:
    """All that is known of a type or addon.

    Raises:
        KeyError: there is none of this name.
    """
    item = registry.types.get(name)
    payload = registry.addons[name] if item is None else item.payload
    if isinstance(payload, Schema):
        schema, origin, text = dict(payload.document), str(declaration_id(name)), payload.description
    else:
        schema, origin = msgspec.json.schema(payload), payload.__module__.partition(".")[0]
        text = inspect.getdoc(payload) or ""
    body, _, _ = text.partition("\n\nAttributes:")
    summary, _, description = body.partition("\n\n")
    role = "addon" if item is None else "governance" if item.governs else _role(item.enforced)
    fields = tuple(_fields(schema, schema))
    return TypePage(name, role, origin, " ".join(summary.split()), description.strip(), fields)


def _role(enforced: bool) -> str:
    return "production" if enforced else "reference"


def find(registry: Registry, text: str) -> tuple[TypePage, FieldPage | None]:
    """The type that `text` names, and its field if it names one: `TYPE` or `TYPE.FIELD.FIELD`.

    Raises:
        LehrError: there is no such type or field.
    """
    known = (*registry.types, *registry.addons)
    fitting = [name for name in known if text == name or text.startswith(f"{name}.")]
    if not fitting:
        raise LehrError(f"there is no type {text}", fix="see `lehr types`")
    found = page(registry, max(fitting, key=len))
    field, fields = None, found.fields
    for part in text.removeprefix(found.name).split(".")[1:]:
        field = next((item for item in fields if item.name == part), None)
        if field is None:
            names = ", ".join(item.name for item in fields) or "none"
            raise LehrError(f"{found.name} has no field {part} there", fix=f"its fields are: {names}")
        fields = field.fields
    return found, field


def _fields(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[FieldPage]:
    node = _resolved(node, root)
    meanings = _attributes(node.get("description", ""))
    required = set(node.get("required", ()))
    for name, raw in node.get("properties", {}).items():
        field = _resolved(raw, root)
        inner = _inner(field, root)
        default = raw.get("default", field.get("default"))
        spelt = default is not None or "default" in raw
        yield FieldPage(
            name=name,
            kind=_kind(raw, root),
            required=name in required,
            default=msgspec.json.encode(default).decode() if spelt else None,
            limits=tuple(_limits(field)),
            meaning=meanings.get(name) or ("" if "properties" in field else field.get("description", "")),
            fields=() if inner is None else tuple(_fields(inner, root)),
        )


def _resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`node`, or what it refers to, without the branch for null."""
    for _ in range(_MOST_STEPS):
        reference = node.get("$ref")
        branches = [item for item in node.get("anyOf", ()) if item.get("type") != "null"]
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = root
            for part in reference[2:].split("/"):
                target = target.get(part, {})
            node = target
        elif len(branches) == 1:
            node = branches[0]
        else:
            break
    return node


_MOST_STEPS = 20


def _inner(field: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What has fields within a field: itself, what it lists, or what it maps to."""
    for item in (field, field.get("items"), field.get("additionalProperties")):
        if isinstance(item, Mapping):
            found = _resolved(item, root)
            if "properties" in found:
                return found
    return None


def _kind(raw: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    branches = raw.get("anyOf")
    if branches:
        return " or ".join(dict.fromkeys(_kind(branch, root) for branch in branches))
    node = _resolved(raw, root)
    if "enum" in node:
        return " or ".join(str(item) for item in node["enum"])
    if "const" in node:
        return str(node["const"])
    kind = node.get("type")
    if isinstance(kind, list):
        return " or ".join(str(_KINDS.get(item, item)) for item in kind)
    if kind == "array":
        return f"list of {_kind(node['items'], root)}" if isinstance(node.get("items"), Mapping) else "list"
    others = node.get("additionalProperties")
    if kind == "object" and isinstance(others, Mapping) and others:
        return f"mapping to {_kind(others, root)}"
    return _KINDS.get(kind, "anything") if isinstance(kind, str) else "anything"


def _limits(node: Mapping[str, Any]) -> Iterator[str]:
    for name, words in _LIMITS.items():
        if name in node:
            yield words.format(node[name])


_ATTRIBUTE = re.compile(r"^    ([\w, ]+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _attributes(docstring: str) -> dict[str, str]:
    """What the docstring of a Python type says of each of its fields."""
    _, _, section = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    found: dict[str, str] = {}
    for names, meaning in _ATTRIBUTE.findall(section):
        for name in names.split(","):
            found[name.strip()] = " ".join(meaning.split())
    return found

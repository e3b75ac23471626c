"""The purpose of a type, field by field: the same for types of packages and of workspaces."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lehr.base.errors import LehrError
from lehr.model.declared import declaration_id
from lehr.model.evolution import FIRST
from lehr.model.references import Reference, external_leaf, patterns, reference_mark
from lehr.model.schema import Form, Schema
from lehr.model.secret import sensitive_leaf
from lehr.model.types import Kind, Registry

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


_MESSAGE_KINDS = {
    "any": "mapping with @type",
    "bytes": "bytes in base64",
    "double": "number",
    "duration": "seconds such as 1.5s",
    "float": "32-bit number",
    "int32": "32-bit integer",
    "int64": "64-bit integer",
    "list": "list",
    "struct": "mapping",
    "timestamp": "time such as 2026-11-21T18:00:00Z",
    "uint32": "unsigned 32-bit integer",
    "uint64": "unsigned 64-bit integer",
    "value": "anything",
}
"""Names of the kinds of protobuf's JSON form."""


class FieldPage(msgspec.Struct, frozen=True):
    """One field.

    Attributes:
        kind: kind of value, as text; limits: restrictions on the value.
        default: as JSON; None without a default.
        meaning: its purpose; may be empty.
        fields: nested fields.
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
        form: `json` or `protobuf`: how values are written.
        version: number of its current form.
    """

    name: str
    role: str
    origin: str
    summary: str
    description: str
    fields: tuple[FieldPage, ...]
    form: str = Form.JSON
    version: int = FIRST


def pages(registry: Registry) -> list[TypePage]:
    """Every type and addon, by name."""
    return [page(registry, name) for name in sorted((*registry.types, *registry.addons))]


def page(registry: Registry, name: str) -> TypePage:
    """The description of a type or addon.

    Raises:
        KeyError: there is no type of this name.
    """
    item = registry.types.get(name)
    payload = registry.addons[name] if item is None else item.payload
    form, declared = Form.JSON, registry.is_declared(name)
    if isinstance(payload, Schema):
        schema, form, text = dict(payload.document), payload.form, payload.description
        origin = str(declaration_id(name)) if declared else "a package"
    else:
        schema, origin = msgspec.json.schema(payload), payload.__module__.partition(".")[0]
        text = inspect.getdoc(payload) or ""
    body, _, _ = text.partition("\n\nAttributes:")
    summary, _, description = body.partition("\n\n")
    role = "addon" if item is None else "governance" if item.governs else _role(item.enforced)
    fields = tuple(_Reading(schema, _marks(payload)).fields(schema, "", ()))
    version = registry.evolution(name).version
    return TypePage(name, role, origin, " ".join(summary.split()), description.strip(), fields, form, version)


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
        raise LehrError(f"unknown type {text}", code="QRY122", fix="`lehr types` lists all types")
    found = page(registry, max(fitting, key=len))
    return found, field_of(found, text.removeprefix(found.name).split(".")[1:])


def field_of(found: TypePage, parts: Sequence[str]) -> FieldPage | None:
    """The field of a type to which these names lead; None for no names.

    Raises:
        LehrError: there is no such field.
    """
    field, fields = None, found.fields
    for part in parts:
        field = next((item for item in fields if item.name == part), None)
        if field is None:
            names = ", ".join(item.name for item in fields) or "none"
            raise LehrError(
                f"{found.name} has no field {part} at that place",
                code="QRY123",
                fix=f"its fields: {names}",
            )
        fields = field.fields
    return field


class _Reading:
    """Walks a schema.

    Args:
        marks: remarks on fields besides the schema, by pattern (`/replicas/*/host`).
    """

    def __init__(self, root: Mapping[str, Any], marks: Mapping[str, str]) -> None:
        self._root = root
        self._marks = marks

    def fields(self, node: Mapping[str, Any], path: str, within: tuple[int, ...]) -> Iterator[FieldPage]:
        """The fields of a mapping at `path`, within mappings that are known by identity."""
        node = _resolved(node, self._root)
        if id(node) in within:  # a recursive mapping: its fields are already listed
            return
        meanings = _attributes(node.get("description", ""))
        required = set(node.get("required", ()))
        for name, raw in node.get("properties", {}).items():
            field = _resolved(raw, self._root)
            inner, step = _inner(field, self._root)
            default = raw.get("default", field.get("default"))
            spelt = default is not None or "default" in raw
            here = f"{path}/{name}"
            meaning = "" if "properties" in field else field.get("description", "")
            yield FieldPage(
                name=name,
                kind=_kind(raw, self._root),
                required=name in required,
                default=msgspec.json.encode(default).decode() if spelt else None,
                limits=(*_limits(field), *_alternatives(node, name), *self._texts_of_marks(here)),
                meaning=meanings.get(name) or raw.get("description", "") or meaning,
                fields=() if inner is None else tuple(self.fields(inner, here + step, (*within, id(node)))),
            )

    def _texts_of_marks(self, path: str) -> Iterator[str]:
        for pattern, words in self._marks.items():
            if pattern.startswith(path) and not pattern[len(path) :].strip("/*#"):
                yield words


def _alternatives(node: Mapping[str, Any], name: str) -> Iterator[str]:
    choices = node.get("protobufOneofs")
    for choice in choices.values() if isinstance(choices, Mapping) else ():
        if isinstance(choice, list) and name in choice:
            yield f"at most one of {', '.join(choice)}"


def _marks(payload: Kind) -> dict[str, str]:
    """Remarks on fields by marks, by the pattern of the field."""
    if isinstance(payload, Schema):
        references, externals, secrets = payload.references, payload.externals, payload.secrets
    else:
        references = dict(_patterns(payload, reference_mark))
        externals = tuple(path for path, _ in _patterns(payload, external_leaf))
        secrets = tuple(path for path, _ in _patterns(payload, sensitive_leaf))
    found = {pattern: _reference(mark) for pattern, mark in references.items()}
    found.update((pattern, "names something outside of intent") for pattern in externals)
    found.update((pattern, "refers to a secret") for pattern in secrets)
    return found


def _reference(mark: Reference) -> str:
    types = f" of type {' or '.join(mark.types)}" if mark.types else ""
    return f"names an asset{types}{', which is pushed first' if mark.goes_first else ''}"


def _patterns(kind: Any, leaf: Callable[[Any], Any]) -> list[tuple[str, Any]]:
    try:
        return list(patterns(kind, leaf))
    except RecursionError:  # they may be at any depth, which no pattern can express
        return []


def _resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`node`, or its target if it is a reference, without the branch for null."""
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


def _inner(field: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
    """The nested mapping of a field: itself, its items or its values; with the path to it."""
    for item, step in ((field, ""), (field.get("items"), "/*"), (field.get("additionalProperties"), "/*")):
        if isinstance(item, Mapping):
            found = _resolved(item, root)
            if "properties" in found:
                return found, step
    return None, ""


def _kind(raw: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    message = _MESSAGE_KINDS.get(str(_resolved(raw, root).get("protobuf")))
    if message is not None:
        return message
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
    if str(node.get("protobuf")) in _MESSAGE_KINDS:
        return
    for name, words in _LIMITS.items():
        if name in node:
            one = node[name] == 1 and words.endswith("s")  # of its items or characters
            yield (words.removesuffix("s") if one else words).format(node[name])


_ATTRIBUTE = re.compile(r"^    ([\w, ]+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _attributes(docstring: str) -> dict[str, str]:
    """The description of each field in the docstring of a Python type."""
    _, _, section = inspect.cleandoc(docstring).partition("\nAttributes:\n")
    found: dict[str, str] = {}
    for names, meaning in _ATTRIBUTE.findall(section):
        for name in names.split(","):
            found[name.strip()] = " ".join(meaning.split())
    return found

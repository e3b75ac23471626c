"""Declarations of types: converts plain data from any format into assets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.pointers import pointer
from lehr.generate.outcome.output import Output
from lehr.generate.typing.asset_files import Declared
from lehr.generate.typing.conversion import Converted, Place, convert
from lehr.generate.typing.problems import did_you_mean, quoted, unusable
from lehr.generate.typing.schema_pointers import kind_problem
from lehr.model.asset import Asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.model.message_types import Messages
from lehr.model.schema import Form
from lehr.model.types import AnyType, Registry

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)+")
_SHIPPED = "lehr."
_MOST_NAMED = 10
_MARKED = {"references": ("string",), "externals": ("string", "object"), "secrets": ("object",)}
"""The kinds of values that a declaration can mark."""


class Known(NamedTuple):
    """The context that declarations are checked in.

    Attributes:
        registry: types whose names are taken.
        messages: messages that declarations can name.
    """

    registry: Registry
    messages: Messages


def read_declarations(loaded: documents.Documents, inputs: str, known: Known) -> Output:
    """The types that a file in YAML, JSON or TOML declares, as assets, and all problems in it."""
    diagnostics: list[Diagnostic] = list(loaded.diagnostics)
    assets: list[Asset] = []
    for document in loaded.documents:
        if document.value is None:  # a YAML document may be empty
            continue
        asset, found = _declared(document, known)
        diagnostics += found
        if asset is not None:
            assets.append(asset)
    return Output(inputs, tuple(assets), (), tuple(diagnostics))


def type_declared_in(path: str, content: bytes, id: str) -> Declared | None:
    """The declaration of the type with this asset id in a type file; None if not there in plain text."""
    if not path.endswith(tuple(documents.SUFFIXES)):
        return None
    for document in documents.load(path, content).documents:
        if _is_taken_over(document.value) and document.value["id"] == id:
            return Declared(document, "/payload", document.value["payload"])
        name = _name_in(document.value)
        if isinstance(name, str) and declaration_id(name) == id:
            return Declared(document, "", document.value)
    return None


def types_in(outputs: list[Output]) -> list[AnyType]:
    """The types that these outputs declare."""
    return [declared_type(asset) for output in outputs for asset in output.assets]


def declare(name: str, payload: dict[str, Any], registry: Registry, place: Place) -> Converted:
    """The asset that declares the type `name`, if it can be one.

    Args:
        payload: the content of a type file, without the name.
        place: maps a JSON pointer into the declaration, name included, to its position.
    """
    problem = _name_problem(name, registry)
    if problem is not None:
        what = f"{quoted(name)} is not a valid type name"
        return Converted(None, [type_problem(what, problem, "choose another name", place("/name"))])

    def place_in_asset(pointer: str) -> Position:
        return place(pointer.removeprefix("/payload"))

    wanted = {"id": declaration_id(name), "type": TYPE, "payload": payload}
    asset, found = convert(wanted, registry, place(""), place_in_asset, declares=True)
    if asset is None:
        if isinstance(payload.get("schema"), dict):
            found += _schema_problems(name, payload["schema"], place)
        return Converted(None, found)
    found += _problems(name, asset.document()["payload"], place)
    return Converted(asset, found) if not found else Converted(None, found)


def type_problem(what: str, why: str, fix: str, at: Position) -> Diagnostic:
    """GEN014: this is not a valid type declaration."""
    return file_problem("GEN014", at, what=what, why=why, fix=fix)


def _is_taken_over(value: Any) -> bool:
    """Whether it is the asset that declares a type in another partition."""
    if not isinstance(value, dict) or value.get("type") != TYPE:
        return False
    return isinstance(value.get("id"), str) and isinstance(value.get("payload"), dict)


def _name_in(value: Any) -> Any:
    return value.get("name", value.get("message")) if isinstance(value, dict) else None


def _declared(document: documents.Document, known: Known) -> Converted:
    value, place = document.value, document.position
    if _is_taken_over(value):
        name = value["id"].removeprefix(declaration_id(""))
        others = {"": "", "/name": "/id"}
        return declare(
            name, value["payload"], known.registry, lambda at: place(others.get(at, f"/payload{at}"))
        )
    name = _name_in(value)
    if not isinstance(name, str):
        what = "expected a type here: a mapping with at least `name` and `schema`, or `message`"
        fix = "write `name: team.Service` and `schema: {...}`"
        return Converted(None, [type_problem(what, "", fix, place(""))])
    payload = {key: item for key, item in value.items() if key not in ("name", "message")}
    if "form" in value and "message" not in value:
        fix = "delete `form`, or name a `message`"
        return Converted(None, [type_problem("`form` applies only to messages", "", fix, place("/form"))])
    if "message" not in value:
        return declare(name, payload, known.registry, place)
    found = list(_message_problems(value, known.messages, place))
    if found:
        return Converted(None, found)
    payload["schema"] = known.messages.schema(name)
    payload["form"] = Form.PROTOBUF.value
    payload.setdefault("description", known.messages.meaning(name))
    return declare(
        name, payload, known.registry, lambda pointer: place("/message" if pointer == "/name" else pointer)
    )


def _message_problems(value: dict[str, Any], messages: Messages, place: Place) -> Iterator[Diagnostic]:
    message = value["message"]
    for key in ("name", "schema", "form"):
        if key in value:
            what = f"`{key}` cannot be combined with `message`"
            why = "the message determines it: a type made from a message has the message's full name"
            yield type_problem(what, why, f"delete `{key}`", place(f"/{key}"))
    if message not in messages.names:
        some = ", ".join(messages.names[:_MOST_NAMED])
        none = (
            "put a descriptor set next to it: `protoc --include_imports --descriptor_set_out=types/x.binpb`"
        )
        fix = did_you_mean(str(message), messages.names, f"known messages: {some}" if some else none)
        what = f"there is no message {quoted(str(message))}"
        yield type_problem(what, "no descriptor set among the type files has it", fix, place("/message"))


def _problems(name: str, payload: dict[str, Any], place: Place) -> Iterator[Diagnostic]:
    """Problems that the declaration's own type cannot detect."""
    of_schema = list(_schema_problems(name, payload["schema"], place))
    yield from of_schema or _astray(payload, place)
    seen: set[int] = set()
    for index, former in enumerate(payload["was"]):
        version = former["version"]
        if version >= payload["version"] or version in seen:
            why = f"its version is {payload['version']}, and each former version can be listed only once"
            fix = "raise `version`, or delete this"
            at = place(f"/was/{index}/version")
            yield type_problem(f"version {version} of {name} cannot be a former version", why, fix, at)
        seen.add(version)
    if payload["kind"] == "addon" and payload["enforced"]:
        why = "an addon has nothing in production to enforce"
        what, at = f"the addon {name} cannot be enforced", place("/enforced")
        yield type_problem(what, why, "delete `enforced`", at)


def _schema_problems(name: str, schema: Any, place: Place) -> Iterator[Diagnostic]:
    for item in unusable(schema):
        fix = item.fix or "write a JSON schema, draft 2020-12"
        at = place("/schema" + item.pointer)
        yield type_problem(f"the schema of {name} cannot be used", item.what, fix, at)


def _astray(payload: dict[str, Any], place: Place) -> Iterator[Diagnostic]:
    marked = [("references", pattern, pattern) for pattern in payload["references"]]
    for key in ("externals", "secrets"):
        marked += [(key, str(index), pattern) for index, pattern in enumerate(payload[key])]
    for key, step, pattern in marked:
        found = kind_problem(pattern, payload["schema"], _MARKED[key])
        if found is not None:
            what, fix = found
            why = "the intended field would stay unmarked, without any sign of it"
            yield type_problem(f"`{key}`: {what}", why, fix, place(pointer([key, step])))


def _name_problem(name: str, registry: Registry) -> str | None:
    if _NAME.fullmatch(name) is None:
        return "a name has at least two parts of letters, digits, - and _, joined with dots: `team.Service`"
    if name.startswith(_SHIPPED):
        return "names that begin with `lehr.` are reserved"
    taken = name in registry.types or name in registry.addons
    if taken and not registry.is_declared(name):
        return "an installed package provides a type of this name"
    return None

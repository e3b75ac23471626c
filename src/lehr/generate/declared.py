"""Files that declare asset types: `types/*.yaml`."""

from __future__ import annotations

import re
from typing import Any

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate.conversion import Place, convert
from lehr.generate.output import Output
from lehr.generate.plain import Declared
from lehr.generate.problems import quoted, schema_problem
from lehr.model.asset import Asset
from lehr.model.declared import TYPE, declaration_id, declared_type
from lehr.model.types import AnyType, Registry

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+")
_SHIPPED = "lehr."


def read_types(path: str, content: bytes, inputs: str, registry: Registry) -> Output:
    """The types that the file declares, as assets, and all problems in it."""
    loaded = documents.load(path, content)
    diagnostics: list[Diagnostic] = list(loaded.diagnostics)
    assets: list[Asset] = []
    for document in loaded.documents:
        if document.value is None:  # a YAML document may be empty
            continue
        asset, found = _declared(document, registry)
        diagnostics += found
        if asset is not None:
            assets.append(asset)
    return Output(inputs, tuple(assets), (), tuple(diagnostics))


def type_declared_in(path: str, content: bytes, id: str) -> Declared | None:
    """How a type file declares the type whose asset has this id; None if it does not."""
    for document in documents.load(path, content).documents:
        value = document.value
        name = value.get("name") if isinstance(value, dict) else None
        if isinstance(name, str) and declaration_id(name) == id:
            return Declared(document, "", value)
    return None


def types_in(outputs: list[Output]) -> list[AnyType]:
    """The types that these outputs declare."""
    return [declared_type(asset) for output in outputs for asset in output.assets]


def _declared(document: documents.Document, registry: Registry) -> tuple[Asset | None, list[Diagnostic]]:
    value = document.value
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):
        what = "a type is expected here: a mapping with at least `name` and `schema`"
        return None, [
            _problem(what, "", "write `name: team.Service` and `schema: {...}`", document.position(""))
        ]
    problem = _name_problem(name, registry)
    if problem is not None:
        what = f"{quoted(name)} cannot name a type"
        return None, [_problem(what, problem, "choose another name", document.position("/name"))]

    def place(pointer: str) -> Position:
        return document.position(pointer.removeprefix("/payload"))

    payload = {key: item for key, item in value.items() if key != "name"}
    wanted = {"id": declaration_id(name), "type": TYPE, "payload": payload}
    asset, found = convert(wanted, registry, place(""), place)
    return (None, found) if asset is None else _usable(asset, payload, found, place)


def _usable(
    asset: Asset, payload: dict[str, Any], found: list[Diagnostic], place: Place
) -> tuple[Asset | None, list[Diagnostic]]:
    problem = schema_problem(payload["schema"])
    if problem is None:
        return asset, found
    what = f"the schema of {asset.id} cannot be used"
    return None, [
        *found,
        _problem(what, problem, "write a JSON schema, draft 2020-12", place("/payload/schema")),
    ]


def _name_problem(name: str, registry: Registry) -> str | None:
    if _NAME.fullmatch(name) is None:
        return (
            "a name has two parts or more, of letters, digits and hyphens, joined with dots: `team.Service`"
        )
    if name.startswith(_SHIPPED):
        return "names that begin with `lehr.` are Lehr's own"
    taken = name in registry.types or name in registry.addons
    if taken and not registry.is_declared(name):
        return "a package that is installed brings a type of this name"
    return None


def _problem(what: str, why: str, fix: str, at: Position) -> Diagnostic:
    return Diagnostic(code="GEN014", what=what, why=why, fix=fix, subject=at.file, at=at)

"""Types that a workspace declares, each as an asset of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from lehr.model.asset import Asset, AssetId
from lehr.model.evolution import FIRST, Former, evolution
from lehr.model.schema import Form
from lehr.model.types import AddonType, AnyType, AssetType, Reference, Schema

TYPE = "lehr.Type"
"""Type of the assets that declare types."""

_PREFIX = "type/"


class ReferenceField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field that names other assets.

    Attributes:
        types: types that they must have; empty allows any.
        goes_first: True if they are pushed before the asset that names them.
    """

    types: tuple[str, ...] = ()
    goes_first: bool = False


class TypeDeclaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A type of assets, or of addons.

    Attributes:
        kind: what has this type: the payload of assets, or an addon of assets of any type.
        description: what assets of this type represent.
        schema: JSON schema (draft 2020-12) of their payload.
        form: `json` if the schema is complete; `protobuf` if it was made from a message, whose JSON form
            payloads have.
        references: which fields of the payload name other assets, by JSON pointer; `*` stands for
            every key or index (`/replicas/*/host`).
        externals: which fields name something outside of intent, in the same way. Each is text, a
            URI, or a mapping of `uri` and `digest`.
        secrets: which fields hold references to secrets, in the same way. Each is a mapping of
            `secret`, where the secret is kept, and `version`, free text.
        enforced: True if a plugin moves production to them. Otherwise other assets merely refer to
            them: a team, a version, a failure domain.
        version: counts the forms that payloads of this type have had; old ones can be read as new ones.
        was: former versions, each with the steps that turn its data into data of the next version. New
            fields with defaults need no steps.
    """

    schema: dict[str, Any]
    references: dict[Annotated[str, msgspec.Meta(pattern="^/")], ReferenceField] = {}
    externals: tuple[Annotated[str, msgspec.Meta(pattern="^/")], ...] = ()
    secrets: tuple[Annotated[str, msgspec.Meta(pattern="^/")], ...] = ()
    description: str = ""
    enforced: bool = False
    kind: Literal["asset", "addon"] = "asset"
    form: Form = Form.JSON
    version: Annotated[int, msgspec.Meta(ge=FIRST)] = FIRST
    was: tuple[Former, ...] = ()


TYPE_TYPE = AssetType(TYPE, TypeDeclaration, governs=True)


def declaration_id(name: str) -> AssetId:
    """Id of the asset that declares the type `name`."""
    return AssetId(_PREFIX + name)


def declared_types(assets: Mapping[AssetId, Asset], names: Iterable[str]) -> list[AnyType]:
    """The types of these names that some of `assets` declare."""
    found = (assets.get(declaration_id(name)) for name in names)
    return [declared_type(asset) for asset in found if asset is not None]


def declared_type(asset: Asset) -> AnyType:
    """The type that an asset of type `lehr.Type` declares."""
    name = asset.id.removeprefix(_PREFIX)
    declaration = msgspec.convert(asset.document()["payload"], TypeDeclaration)
    schema, changes = schema_of(declaration), evolution(declaration.version, declaration.was)
    if declaration.kind == "addon":
        return AddonType(name, schema, changes)
    return AssetType(name, schema, enforced=declaration.enforced, evolution=changes)


def schema_of(declaration: TypeDeclaration) -> Schema:
    """The schema of payloads of the type."""
    references = {
        pointer: Reference(field.types, field.goes_first) for pointer, field in declaration.references.items()
    }
    return Schema(
        declaration.schema,
        references,
        declaration.description,
        declaration.externals,
        declaration.secrets,
        declaration.form,
    )

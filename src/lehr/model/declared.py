"""Types that a workspace declares: the type first, as an asset of its own, and then its use."""

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
        kind: what is of this type: the payload of assets, or an addon of assets of whatever type.
        description: what assets of this type stand for.
        schema: JSON schema (draft 2020-12) of their payload.
        form: `json` if the schema says all; `protobuf` if it is made from a message, whose JSON form
            they have.
        references: which fields of the payload name other assets, by JSON pointer; `*` stands for
            every key or index (`/replicas/*/host`).
        externals: which fields name something outside of intent, in the same way. Each is text, a
            URI, or a mapping of `uri` and `digest`.
        secrets: which fields hold references to secrets, in the same way. Each is a mapping of
            `secret`, where the secret is kept, and `version`, free text.
        enforced: True if there is a plugin that moves production to them. Without, they are
            something that others refer to: a team, a version, a failure domain.
        version: counts the forms that payloads of this type have had; old ones can be read as new ones.
        was: what makes the form of the next version of that of a former one. Where fields with
            defaults have come, nothing is to be done, and nothing to be said.
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
    """What a payload of the type has to be."""
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

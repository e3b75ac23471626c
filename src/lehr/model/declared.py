"""Asset types that a workspace declares: the type first, as an asset of its own, and then its use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from lehr.model.asset import Asset, AssetId
from lehr.model.types import AssetType, Reference, Schema

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
    """An asset type.

    Attributes:
        description: what assets of this type stand for.
        schema: JSON schema (draft 2020-12) of their payload.
        references: which fields of the payload name other assets, by JSON pointer; `*` stands for
            every key or index (`/replicas/*/host`).
        externals: which fields name something outside of intent, in the same way. Each is text, a
            URI, or a mapping of `uri` and `digest`.
        secrets: which fields hold references to secrets, in the same way. Each is a mapping of
            `secret`, where the secret is kept, and `version`, free text.
        enforced: True if there is a plugin that moves production to them. Without, they are
            something that others refer to: a team, a version, a failure domain.
    """

    schema: dict[str, Any]
    references: dict[Annotated[str, msgspec.Meta(pattern="^/")], ReferenceField] = {}
    externals: tuple[Annotated[str, msgspec.Meta(pattern="^/")], ...] = ()
    secrets: tuple[Annotated[str, msgspec.Meta(pattern="^/")], ...] = ()
    description: str = ""
    enforced: bool = False


TYPE_TYPE = AssetType(TYPE, TypeDeclaration, governs=True)


def declaration_id(name: str) -> AssetId:
    """Id of the asset that declares the type `name`."""
    return AssetId(_PREFIX + name)


def declared_types(assets: Mapping[AssetId, Asset], names: Iterable[str]) -> list[AssetType]:
    """The types of these names that some of `assets` declare."""
    found = (assets.get(declaration_id(name)) for name in names)
    return [declared_type(asset) for asset in found if asset is not None]


def declared_type(asset: Asset) -> AssetType:
    """The type that an asset of type `lehr.Type` declares."""
    payload = msgspec.convert(asset.document()["payload"], TypeDeclaration)
    references = {
        pointer: Reference(field.types, field.goes_first) for pointer, field in payload.references.items()
    }
    schema = Schema(payload.schema, references, payload.description, payload.externals, payload.secrets)
    return AssetType(asset.id.removeprefix(_PREFIX), schema, enforced=payload.enforced)

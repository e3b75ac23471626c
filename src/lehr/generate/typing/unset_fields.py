"""Unset fields: fields that are not written in intent and have their type's default.

An asset's body has every default filled in, so unset fields must be recorded while the written data is still
known. That happens for every asset, and there may be a million: nearly all answers come from a cache and are
shared.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.inspect import DictType, Metadata, StructType, Type, UnionType, type_info

from lehr.base.digest import canonical
from lehr.base.pointers import pointer
from lehr.generate.outcome.output import UnsetFields
from lehr.generate.typing.messages import renamed
from lehr.model.asset import Asset
from lehr.model.schema import Form, Schema
from lehr.model.types import Kind, Registry


def unset_fields(value: Mapping[str, Any], asset: Asset, registry: Registry) -> UnsetFields:
    """Unset fields of `value`, the plain data of `asset`. Fields below unset ones are not listed.

    Items of lists are not searched.
    """
    payload = value.get("payload", {})
    kind = registry.types[asset.type].payload
    if "version" in value:
        evolution = registry.evolution(asset.type)
        payload = evolution.convert(payload, value["version"], evolution.version)
    found = _of_part(payload, kind, asset, ("payload",))
    addons = value.get("addons")
    if not addons:
        return found
    versions = value.get("versions", {})
    for name, addon in addons.items():
        evolution = registry.evolution(name)
        newest = evolution.convert(addon, versions.get(name, evolution.version), evolution.version)
        found += _of_part(newest, registry.addons[name], asset, ("addons", name))
    return _shared(found)


def _of_part(written: Any, kind: Kind, asset: Asset, path: tuple[str, ...]) -> UnsetFields:
    if not isinstance(kind, Schema) and not _is_deep(written, kind):
        return _of_names(kind, tuple(written), path)
    if isinstance(kind, Schema):
        if kind.form is Form.PROTOBUF:
            written = renamed(written, kind.document)
        elif not _has_defaults(kind):
            return ()
    whole = msgspec.json.decode(asset.body)
    for step in path:
        whole = whole[step]
    return _shared(tuple(_missing(written, whole, pointer(path))))


@functools.lru_cache(maxsize=4096)
def _of_names(kind: type[msgspec.Struct], written: tuple[str, ...], path: tuple[str, ...]) -> UnsetFields:
    return tuple(pointer((*path, name)) for name in kind.__struct_encode_fields__ if name not in written)


def _is_deep(written: Mapping[str, Any], kind: type[msgspec.Struct]) -> bool:
    """Whether a mapping within `written` may have unset fields."""
    structs, maps = _holding_structs(kind)
    for name in structs:
        if isinstance(written.get(name), dict):
            return True
    for name in maps:
        inner = written.get(name)
        if isinstance(inner, dict) and any(isinstance(item, dict) for item in inner.values()):
            return True
    return False


@functools.cache
def _holding_structs(kind: type[msgspec.Struct]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the fields whose class has fields, and of those that are maps of such classes."""
    shape = type_info(kind)
    assert isinstance(shape, StructType)
    holding = [field for field in shape.fields if _holds_struct(field.type)]
    maps = [field for field in holding if isinstance(_bare(field.type), DictType)]
    return (
        tuple(field.encode_name for field in holding if field not in maps),
        tuple(field.encode_name for field in maps),
    )


@functools.lru_cache(maxsize=256)
def _has_defaults(schema: Schema) -> bool:
    """Whether a schema may define a default for an unset field."""
    return b'"default"' in canonical(schema.document)


def _bare(shape: Type) -> Type:
    return _bare(shape.type) if isinstance(shape, Metadata) else shape


def _holds_struct(shape: Type) -> bool:
    match _bare(shape):
        case StructType():
            return True
        case DictType(_, value):
            return _holds_struct(value)
        case UnionType(types):
            return any(map(_holds_struct, types))
    return False


def _missing(written: Any, whole: Any, at: str) -> Iterator[str]:
    if not isinstance(written, dict) or not isinstance(whole, dict):
        return
    for name, item in whole.items():
        if name not in written:
            yield at + pointer([name])
        elif isinstance(item, dict):
            yield from _missing(written[name], item, at + pointer([name]))


@functools.lru_cache(maxsize=4096)
def _shared(found: UnsetFields) -> UnsetFields:
    return found

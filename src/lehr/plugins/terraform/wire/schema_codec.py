"""Schemas of providers, of both versions of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lehr.plugins.terraform.provider import (
    Attribute,
    Block,
    NestedBlock,
    NestedObject,
    Nesting,
    ProviderGoneError,
    ProviderSchema,
    Schema,
)
from lehr.plugins.terraform.wire import messages

_NESTING = {1: Nesting.SINGLE, 2: Nesting.LIST, 3: Nesting.SET, 4: Nesting.MAP, 5: Nesting.GROUP}

SchemaAnswer = messages.GetProviderSchema.Response5 | messages.GetProviderSchema.Response6
"""Both have the same fields."""


def provider_schema(answer: SchemaAnswer) -> ProviderSchema:
    """All schemas in `answer`. Those of resources and data sources are read when they are looked up.

    Raises:
        ProviderGoneError: one cannot be understood, also at a look-up.
    """
    return ProviderSchema(
        provider=_schema(answer.provider),
        resources=_Schemas(answer.resource_schemas),
        data_sources=_Schemas(answer.data_source_schemas),
        plan_destroy=answer.server_capabilities.plan_destroy,
        need_not_be_asked=answer.server_capabilities.get_provider_schema_optional,
    )


class _Schemas(Mapping[str, Schema]):
    """Schemas by name. A large provider has thousands, which take a second and 100 MB; few are used."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._messages = found
        self._read: dict[str, Schema] = {}

    def __getitem__(self, name: str) -> Schema:
        if name not in self._read:
            if name not in self._messages:  # maps of protobuf would add it
                raise KeyError(name)
            self._read[name] = _schema(self._messages[name])
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._messages

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)


def _schema(message: Any) -> Schema:
    try:
        return Schema(version=message.version, block=_block(message.block))
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise ProviderGoneError(f"the provider has a schema that cannot be understood: {error}") from error


def _block(message: Any) -> Block:
    return Block(
        attributes=tuple(map(_attribute, message.attributes)),
        blocks=tuple(map(_nested_block, message.block_types)),
        description=message.description,
        deprecated=message.deprecated,
    )


def _nested_block(message: Any) -> NestedBlock:
    return NestedBlock(
        name=message.type_name,
        block=_block(message.block),
        nesting=_nesting(message.nesting),
        least=message.min_items,
        most=message.max_items,
    )


def _attribute(message: Any) -> Attribute:
    """Version 5 has no nested attributes."""
    nested = message.nested_type if _has_nested(message) else None
    return Attribute(
        name=message.name,
        type=None if nested is not None else msgspec.json.decode(message.type),
        nested=None if nested is None else _nested_object(nested),
        required=message.required,
        optional=message.optional,
        computed=message.computed,
        sensitive=message.sensitive,
        write_only=message.write_only,
        deprecated=message.deprecated,
        description=message.description,
    )


def _nested_object(message: Any) -> NestedObject:
    return NestedObject(tuple(map(_attribute, message.attributes)), _nesting(message.nesting))


def _has_nested(message: Any) -> bool:
    return isinstance(message, messages.Schema6.Attribute) and message.HasField("nested_type")


def _nesting(number: int) -> Nesting:
    if number not in _NESTING:
        raise ValueError(f"nesting {number} of a block is not known")
    return _NESTING[number]

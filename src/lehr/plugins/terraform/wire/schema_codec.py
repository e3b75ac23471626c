"""Schemas of providers, of both versions of the protocol."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.plugins.terraform.provider import (
    Attribute,
    Block,
    NestedBlock,
    NestedObject,
    Nesting,
    ProviderSchema,
    Schema,
)
from lehr.plugins.terraform.wire import messages

_NESTING = {1: Nesting.SINGLE, 2: Nesting.LIST, 3: Nesting.SET, 4: Nesting.MAP, 5: Nesting.GROUP}

SchemaAnswer = messages.GetProviderSchema.Response5 | messages.GetProviderSchema.Response6
"""Both have the same fields."""


def provider_schema(answer: SchemaAnswer) -> ProviderSchema:
    """All schemas in `answer`.

    Raises:
        ValueError: one cannot be understood.
    """
    return ProviderSchema(
        provider=_schema(answer.provider),
        resources={name: _schema(schema) for name, schema in answer.resource_schemas.items()},
        data_sources={name: _schema(schema) for name, schema in answer.data_source_schemas.items()},
        plan_destroy=answer.server_capabilities.plan_destroy,
    )


def _schema(message: Any) -> Schema:
    return Schema(version=message.version, block=_block(message.block))


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

"""Schemas and diagnostics of the fake provider as messages."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from lehr.plugins.terraform.provider import Attribute, Block, Diagnostic, Schema, Severity
from lehr.plugins.terraform.wire import messages
from lehr.plugins.terraform.wire.calls import path_message

PROTOCOL = int(os.environ.get("FAKE_PROTOCOL", "6"))
_NESTING = {"single": 1, "list": 2, "set": 3, "map": 4, "group": 5}


def error(summary: str, detail: str = "", *path: str) -> messages.Diagnostic:
    return message_of(Diagnostic(Severity.ERROR, summary, detail, path))


def message_of(diagnostic: Diagnostic) -> messages.Diagnostic:
    return messages.Diagnostic(
        severity=1 if diagnostic.severity is Severity.ERROR else 2,
        summary=diagnostic.summary,
        detail=diagnostic.detail,
        attribute=path_message(diagnostic.path),
    )


def schema_message(schema: Schema) -> Any:
    kind = messages.Schema5 if PROTOCOL == 5 else messages.Schema6
    return kind(version=schema.version, block=_block_message(kind, schema.block))


def _block_message(kind: Any, block: Block) -> Any:
    return kind.Block(
        attributes=[_attribute_message(kind, one) for one in block.attributes],
        block_types=[
            kind.NestedBlock(
                type_name=one.name,
                block=_block_message(kind, one.block),
                nesting=_NESTING[one.nesting],
                min_items=one.least,
                max_items=one.most,
            )
            for one in block.blocks
        ],
    )


def _attribute_message(kind: Any, attribute: Attribute) -> Any:
    message = kind.Attribute(
        name=attribute.name,
        type=b"" if attribute.nested else msgspec.json.encode(attribute.type),
        required=attribute.required,
        optional=attribute.optional,
        computed=attribute.computed,
        sensitive=attribute.sensitive,
        write_only=attribute.write_only,
        deprecated=attribute.deprecated,
    )
    if attribute.nested is not None:
        message.nested_type.nesting = _NESTING[attribute.nested.nesting]
        message.nested_type.attributes.extend(
            _attribute_message(kind, one) for one in attribute.nested.attributes
        )
    return message

"""The state with which a resource is read: what its import, intent and the handle know of it. Pure.

A provider reads most of a resource from its API. The rest it takes from the state that it is given: the id,
what it has computed once, and arguments that its API does not return. An import has hardly more than the id,
so what was applied last is laid over it. Otherwise such arguments would differ for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.plugins.terraform.handle import TerraformHandle, is_value
from lehr.plugins.terraform.provider import Block, Value
from lehr.plugins.terraform.values.canonical import has_unknown
from lehr.plugins.terraform.values.nulls import null_value
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden

_MOST_RESIDUE = 400
_FIRST = ("id", "arn", "name")


def laid_over(
    block: Block, imported: Value, configured: Value, applied: Mapping[str, Any], handle: TerraformHandle
) -> Value:
    """The state to read a resource with.

    Args:
        imported: the answer of its import; None if it cannot be imported.
        configured: intent, as a value of the block.
        applied: records of intent (`handle.records`). An attribute of which the handle has another record was
            not applied, and is left as it was imported. Without any record, a resource is adopted as if
            intent had been applied.
        handle: of the resource; `NO_HANDLE` for none.
    """
    base = {**null_value(block), **(imported or {})}
    if "id" in base and base["id"] is None:
        base["id"] = handle.id or handle.import_id or None
    made = {attribute.name for attribute in block.attributes if attribute.computed and not attribute.optional}
    for name, value in handle.residue.items():
        # An import by an id that is not an import id guesses an ARN and the like from it.
        if name in base and (base[name] is None or name in made):
            base[name] = value
    write_only = {attribute.name for attribute in block.attributes if attribute.write_only}
    for name, value in (configured or {}).items():
        if name in write_only or _is_unset(value):
            continue
        if not handle.applied or handle.applied.get(name) == applied.get(name):
            base[name] = value
        elif name in handle.applied and is_value(handle.applied[name]):
            base[name] = handle.applied[name]
    return base


def residue(block: Block, value: Value, configured: Value, hidden: Hidden = NOTHING_HIDDEN) -> dict[str, Any]:
    """What a handle keeps of a state: short values that intent does not have, none of them secret.

    The provider has made them, or has added them as defaults, which an API may not return.
    """
    found: dict[str, Any] = {}
    for attribute in block.attributes:
        item = value.get(attribute.name)
        if attribute.sensitive or attribute.write_only:
            continue
        if (configured or {}).get(attribute.name) is not None:
            continue
        is_short = isinstance(item, str) and 0 < len(item) <= _MOST_RESIDUE
        if (is_short or isinstance(item, bool | int | float)) and hidden.shown(str(item)) == str(item):
            found[attribute.name] = item
    return {name: found[name] for name in sorted(found, key=lambda name: (name not in _FIRST, name))}


def handle_of(
    block: Block,
    value: Value,
    configured: Value,
    kept: TerraformHandle,
    hidden: Hidden = NOTHING_HIDDEN,
) -> TerraformHandle:
    """The handle of a resource that was found or made.

    Args:
        kept: has everything that the state does not: type, import id, private bytes, schema, records.
    """
    id = value.get("id")
    private = kept.private if hidden.blotted(kept.private) == kept.private else b""
    return TerraformHandle(
        type=kept.type,
        id=id if isinstance(id, str) else "",
        import_id=kept.import_id,
        private=private,
        schema=kept.schema,
        residue={
            name: item for name, item in residue(block, value, configured, hidden).items() if name != "id"
        },
        applied=kept.applied,
        incarnation=kept.incarnation,
        tainted=kept.tainted,
    )


def identity(value: Value) -> str:
    """The id or address of a resource, for messages; empty if it has none."""
    for name in _FIRST:
        item = (value or {}).get(name)
        if isinstance(item, str) and item:
            return item
    return ""


def _is_unset(value: Value) -> bool:
    return value is None or value in ([], {}) or has_unknown(value)

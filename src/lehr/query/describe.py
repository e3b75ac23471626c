"""Everything that is known about one asset."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.model.asset import AssetId, AssetKey
from lehr.model.operation import Operation
from lehr.model.outputs import Outputs
from lehr.model.types import Mention, Registry
from lehr.query.asset_rows import known_asset
from lehr.query.explain import Explanation, explain
from lehr.query.partition_view import Reading

_MOST_PUSHES = 5


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """One asset, its intent and its history.

    Attributes:
        document: id, type, payload and addons, every default spelt out.
        origin: file, line and column where it was declared; empty when that is not known.
        digest: of its content.
        refers_to: references that it makes.
        referred_by: ids of assets that refer to it, with the path of the reference.
        operations: its last pushes, newest first.
        handle: what identifies its production, as its plugin keeps it; empty for none.
        outputs: values of production that other assets may read, as last observed.
    """

    document: dict[str, Any]
    origin: str
    digest: str
    explanation: Explanation
    refers_to: tuple[Mention, ...]
    referred_by: tuple[tuple[AssetId, str], ...]
    operations: tuple[Operation, ...]
    handle: str = ""
    outputs: Outputs | None = None


def describe(reading: Reading, registry: Registry, id: str) -> Description:
    """Everything about the asset `id`.

    Raises:
        LehrError: there never was such an asset.
    """
    asset, _came_with = known_asset(reading, id)
    key = AssetKey(reading.partition, asset.id)
    handle = reading.records.handle(key)
    return Description(
        document=asset.document(),
        origin=str(asset.origin or ""),
        digest=asset.digest,
        explanation=explain(reading, id),
        refers_to=tuple(registry.mentions(asset)),
        referred_by=tuple(reading.intent.mentioned_by(key)),
        operations=tuple(reading.records.operations(reading.partition, asset.id, _MOST_PUSHES)),
        handle="" if handle is None else handle.text,
        outputs=reading.records.outputs_of(key),
    )

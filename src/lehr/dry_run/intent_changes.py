"""The differences between the intent that is in place and the intent that a turn would push."""

from __future__ import annotations

from typing import NamedTuple

from lehr.enforce.lookups import Lookups
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.query.compare import FieldChange, compare_asset

_PAYLOAD = "/payload/"


class IntentChanges(NamedTuple):
    """The changes of an asset that may show in production.

    Attributes:
        fields: of its payload.
        others: assets that its payload refers to, and that differ.
    """

    fields: tuple[FieldChange, ...] = ()
    others: tuple[AssetId, ...] = ()


def intent_changes(
    lookups: Lookups, registry: Registry, key: AssetKey, since: int, content: int
) -> IntentChanges:
    """Compare incarnations `since` and `content`; nothing if one is not kept. May raise `NeedError`."""
    if lookups.incarnation(key.partition, since) is None:
        return IntentChanges()
    before, after = lookups.asset(key, since), lookups.asset(key, content)
    if before is None or after is None or before.type != after.type:
        return IntentChanges()
    compared = compare_asset(AssetChange(key.id, before, after))

    def digest(asset: Asset | None) -> str | None:
        return None if asset is None else asset.digest

    mentions = [item for item in registry.mentions(after) if item.path.startswith(_PAYLOAD)]
    keys = [AssetKey(key.partition, id) for id in dict.fromkeys(item.target for item in mentions)]
    return IntentChanges(
        tuple(field for field in compared.fields if field.path.startswith(_PAYLOAD)),
        tuple(
            other.id
            for other in keys
            if digest(lookups.asset(other, since)) != digest(lookups.asset(other, content))
        ),
    )

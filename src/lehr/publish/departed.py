"""What has left intent and is not out of production yet."""

from __future__ import annotations

from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetKey
from lehr.model.decision import LEFT
from lehr.model.types import Registry, addon_names
from lehr.sdk.store import Records, StoredIntent


def leaving(intent: StoredIntent, records: Records, registry: Registry, key: AssetKey) -> Asset | None:
    """The last version of an asset whose turndown continues, although intent has let go of it.

    Only to be asked about assets that intent does not have. None for one that was removed or let go.
    """
    last = intent.last(key)
    if last is None or TURNDOWN not in addon_names(last[0]) or registry.inert(last[0].type):
        return None
    standing = records.standing(key)
    # One that never had a turn was never in production.
    return None if standing is None or standing.condition.status in LEFT else last[0]

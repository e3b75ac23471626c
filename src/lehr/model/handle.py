"""Handles: what a plugin needs in order to find an asset's production again."""

from __future__ import annotations

import msgspec

from lehr.base.moments import Moment
from lehr.model.asset import AssetId, AssetKey, Partition

MOST_BYTES = 8192
"""Longest handle, in UTF-8."""


class Handle(msgspec.Struct, frozen=True):
    """Identifies an asset's production where the asset's id cannot, as an id that production made.

    Attributes:
        type: of the asset; a plugin is not given a handle of another type.
        text: opaque to all but the plugin; no secret, at most `MOST_BYTES` long. Empty for none.
        at: wall-clock seconds since when it is known.
        lost: id of a push that may have made something that the plugin could not find so far; empty for none.
    """

    partition: Partition
    asset: AssetId
    type: str
    text: str
    at: Moment
    lost: str = ""

    def __bool__(self) -> bool:
        return bool(self.text or self.lost)

    @property
    def key(self) -> AssetKey:
        return AssetKey(self.partition, self.asset)


def excess(text: object) -> str:
    """Why a handle is too long; empty if it is not."""
    size = len(text.encode(errors="surrogatepass")) if isinstance(text, str) else 0
    return f"a handle of {size:,} bytes; at most {MOST_BYTES:,} are kept" if size > MOST_BYTES else ""

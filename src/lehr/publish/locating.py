"""From a value of an asset to its line in the source."""

from __future__ import annotations

from lehr.base.diagnostics import Position
from lehr.base.errors import LehrError
from lehr.generate.plain import place_of
from lehr.model.asset import Asset
from lehr.sdk.source import Snapshot

_MOST = 50
"""Values looked up exactly; each costs reading its file again. The rest points to its asset."""


class Locator:
    """`lehr.validate.Locate` over the files of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._left = _MOST

    def __call__(self, asset: Asset, pointer: str) -> Position | None:
        """The place of the value at `pointer` of `asset`; None when it is not known."""
        if asset.origin is None or not self._left:
            return None
        self._left -= 1
        try:
            content = self._snapshot.read(asset.origin.file)
        except (KeyError, LehrError):
            return None  # another file declares it by now, or none: the asset's own place will do
        return place_of(asset.origin.file, content, asset.id, pointer)

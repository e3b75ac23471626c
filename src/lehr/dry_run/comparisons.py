"""Comparisons of plugins that several dry turns share."""

from __future__ import annotations

from typing import NamedTuple

from lehr.base.digest import Digest
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.state import Diffed
from lehr.model.asset import Asset, AssetId
from lehr.model.diff import Diff, Target


class _Known(NamedTuple):
    reads: dict[AssetId, Digest | None]
    diff: Diff


class Comparisons:
    """Diffs at one moment of production, reused where a plugin would read the same intent again.

    Invariant: a diff is reused only for the same target, and where each asset that the plugin read would be
    read with the same content. A supposed unpin or release may change that of another asset. Diffs that rest
    on outputs, and failures, are never reused.
    """

    def __init__(self) -> None:
        self._known: dict[Target, list[_Known]] = {}

    async def find(self, target: Target, asset: Asset | None, read: RecordingReader) -> Diffed | None:
        """A diff that is still right for `read`, which then counts as having read what the plugin did.

        Raises:
            LehrError: an asset cannot be read.
        """
        if asset is None:
            return None
        for known in self._known.get(target, ()):
            for id in known.reads:
                await read.fetch(id)
            if known.reads == {id: read.digest_of(id) for id in known.reads}:
                for id in known.reads:
                    read.asset(id)
                return Diffed(known.diff, read.content_digest(asset), read.elsewhere)
        return None

    def keep(self, target: Target, asset: Asset | None, read: RecordingReader, found: object) -> None:
        """Remember what a plugin found, if it can be reused."""
        if isinstance(found, Diffed) and asset is not None and read.outputs is None:
            self._known.setdefault(target, []).append(_Known(read.reads, found.diff))

"""Former claims of assets that moved, released once they are out of production."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lehr.base.blocking import Blocking
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.publish.claims import Claimed, conflicts_of
from lehr.sdk.claims import Claims, Conflict
from lehr.sdk.store import Store

log = Log()

_AT_ONCE = 1000
"""Approximate number of assets checked in one pass."""


class Moved:
    """Releases what an asset no longer claims, once its newest content was applied.

    Until then production holds the former claims, by the ledger or by a running push: the new incarnation has
    not been pushed yet, or a pin holds the former content.

    A new process does not know what a former one had not released yet. It checks all assets, most recently
    applied first, a share in each pass.
    """

    def __init__(
        self, claims: Claims, partition: Partition, store: Store, registry: Registry, blocking: Blocking
    ) -> None:
        self._claims = claims
        self._partition = partition
        self._store = store
        self._registry = registry
        self._blocking = blocking
        self._waiting: dict[AssetId, None] = {}
        self._new: list[AssetId] = []
        self._from_before: list[AssetId] | None = None
        self._trouble = ""

    def note(self, changes: Iterable[AssetChange]) -> None:
        """Note that these were published: their former claims are released later.

        An asset that returns is claimed again: its earlier claims may have been released since.
        """
        for change in changes:
            if change.before is None:
                self._new.append(change.id)
            elif self._registry.claims(change.before):
                self._waiting[change.id] = None

    async def settle(self) -> None:
        """Release what can be released by now. Failures are retried in the next pass."""
        try:
            await self._settle(await self._blocking.run(self._applied))
            self._trouble = ""
        except LehrError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.warning("claims that are no longer needed are kept for now", error=self._trouble)

    async def conflicts(self, claimed: Claimed) -> Sequence[Conflict]:
        """Problems that prevent taking `claimed`, as `conflicts_of`."""

        async def newest(ids: Iterable[AssetId]) -> Claimed:
            return await self._blocking.run(self._newest, ids)

        return await conflicts_of(self._claims, self._partition, claimed, newest)

    async def _settle(self, applied: Claimed) -> None:
        if not applied:
            return
        conflicts = await self._claims.take(self._partition, applied, only=True)
        kept = {item.asset for item in conflicts}
        if kept:  # in which case nothing was taken or released
            free = {id: names for id, names in applied.items() if id not in kept}
            if await self._claims.take(self._partition, free, only=True):
                return
        for id in applied.keys() - kept:
            self._waiting.pop(id, None)

    def _applied(self) -> Claimed:
        """Claims of the assets of which production holds nothing else."""
        if self._from_before is None:
            entries = [(entry.at, entry.asset) for entry in self._store.records.ledgers(self._partition)]
            self._from_before = [asset for _at, asset in sorted(entries)]
        for _ in range(min(_AT_ONCE, len(self._from_before))):
            self._waiting[self._from_before.pop()] = None
        new, self._new = self._new, []
        came_back = (
            id for id in new if self._store.records.ledger(AssetKey(self._partition, id)) is not None
        )
        self._waiting |= dict.fromkeys(came_back)
        if not self._waiting:
            return {}
        found: dict[AssetId, Sequence[str]] = {}
        for id in list(self._waiting):
            try:
                if self._under_way(id):
                    continue
                claims = self._staying(id)
                if claims is None:
                    del self._waiting[id]  # released once it is out of production
                elif self._in_production(id, claims):
                    found[id] = claims
            except LehrError:
                continue  # its own turn reports what is unreadable
        return found

    def _under_way(self, id: AssetId) -> bool:
        """Whether a push of an asset is running: only its newest can be."""
        return any(item.open for item in self._store.records.operations(self._partition, id, limit=1))

    def _staying(self, id: AssetId) -> Sequence[str] | None:
        """Claims of an asset in the newest incarnation; None if it leaves production."""
        asset = self._asset(id)
        return None if asset is None or is_turned_down(asset) else self._registry.claims(asset)

    def _asset(self, id: AssetId) -> Asset | None:
        newest = self._store.intent.newest(self._partition)
        key = AssetKey(self._partition, id)
        return None if newest is None else self._store.intent.asset(key, newest.sequence)

    def _in_production(self, id: AssetId, claims: Sequence[str]) -> bool:
        """Whether production holds only what is in `claims` for an asset."""
        key = AssetKey(self._partition, id)
        entry = self._store.records.ledger(key)
        if entry is None:
            return False
        asset = self._store.intent.asset(key, entry.content)
        return asset is None or set(self._registry.claims(asset)) <= set(claims)

    def _newest(self, ids: Iterable[AssetId]) -> Mapping[AssetId, Sequence[str]]:
        """Claims of these assets in the newest incarnation."""
        found = ((id, self._asset(id)) for id in ids)
        return {id: self._registry.claims(asset) for id, asset in found if asset is not None}

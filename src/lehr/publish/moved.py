"""Former claims of assets that moved, released once they are out of production."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lehr.base.blocking import Blocking
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange
from lehr.model.operation import LedgerEntry
from lehr.model.types import Registry
from lehr.publish.claims import Claimed, conflicts_of
from lehr.sdk.claims import Claims, Conflict
from lehr.sdk.store import Store

log = Log()


class Moved:
    """Releases what an asset no longer claims, once its newest content was applied.

    Until then production holds the former claims, by the ledger or by a running push: the new incarnation has
    not been pushed yet, or a pin holds the former content. The register knows which assets may hold any, so
    a new process finds what a former one had not released.
    """

    def __init__(
        self, claims: Claims, partition: Partition, store: Store, registry: Registry, blocking: Blocking
    ) -> None:
        self._claims = claims
        self._partition = partition
        self._store = store
        self._registry = registry
        self._blocking = blocking
        self._new: dict[AssetId, None] = {}
        self._trouble = ""

    def note(self, changes: Iterable[AssetChange]) -> None:
        """Note that these were published.

        An asset that returns is claimed again: its earlier claims may have been released since.
        """
        self._new |= {change.id: None for change in changes if change.before is None}

    async def settle(self) -> None:
        """Release what can be released by now. Failures are retried in the next pass."""
        try:
            moved = await self._claims.moved(self._partition)
            if moved or self._new:
                await self._settle(await self._blocking.run(self._applied, moved))
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
            self._new.pop(id, None)

    def _applied(self, moved: Iterable[AssetId]) -> Claimed:
        """Claims of the assets of which production holds nothing else."""
        found: dict[AssetId, Sequence[str]] = {}
        for id in sorted({*moved, *self._new}):
            try:
                entry = self._store.records.ledger(AssetKey(self._partition, id))
                if entry is None:
                    self._new.pop(id, None)  # its first push claims
                    continue
                if self._under_way(id):
                    continue
                claims = self._staying(id)
                if claims is None:
                    self._new.pop(id, None)  # released once it is out of production
                elif self._holds_only(entry, claims):
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

    def _holds_only(self, entry: LedgerEntry, claims: Sequence[str]) -> bool:
        """Whether production holds nothing of an asset but `claims`."""
        asset = self._store.intent.asset(AssetKey(self._partition, entry.asset), entry.content)
        return asset is None or set(self._registry.claims(asset)) <= set(claims)

    def _newest(self, ids: Iterable[AssetId]) -> Mapping[AssetId, Sequence[str]]:
        """Claims of these assets in the newest incarnation."""
        found = ((id, self._asset(id)) for id in ids)
        return {id: self._registry.claims(asset) for id, asset in found if asset is not None}

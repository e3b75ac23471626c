"""The newest incarnation as validators see it, with what outlives it: departed assets, former types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.damage import DamagedError
from lehr.model.decision import LEFT
from lehr.model.declared import TYPE, declared_type, declared_types
from lehr.model.incarnation import AssetChange
from lehr.model.selector import Selector
from lehr.model.types import AnyType, Mention, Registry, addon_names
from lehr.sdk.generation import Generated
from lehr.sdk.store import Records, Store, StoredIntent

_MOST_READ = 10_000


class StoredPredecessor:
    """`lehr.validate.Predecessor` over the store: looks up single assets, or those of some types."""

    def __init__(self, store: Store, registry: Registry, partition: Partition) -> None:
        self._intent = intent = store.intent
        self._records = store.records
        self._registry = registry
        self._partition = partition
        self._newest = intent.newest(partition)

    @property
    def sequence(self) -> int:
        """Sequence of the newest incarnation; 0 for none."""
        return 0 if self._newest is None else self._newest.sequence

    def asset(self, id: AssetId) -> Asset | None:
        """An asset of the predecessor."""
        if self._newest is None:
            return None  # a first candidate looks up each of its assets
        return self._intent.asset(AssetKey(self._partition, id), self.sequence)

    def leaving(self, id: AssetId) -> Asset | None:
        """The last version of an asset that the predecessor lacks and whose turndown continues."""
        if self._newest is None:
            return None
        return leaving(self._intent, self._records, self._registry, AssetKey(self._partition, id))

    def change(self, id: AssetId, after: Asset | None) -> AssetChange:
        """How an asset will change to `after`; None if it will be removed.

        A damaged asset can be replaced, which repairs it. Its former content is unknown, so the new content
        is assumed, with the type and digest that it is known to have had. It cannot be removed: whether it
        was turned down is unknown.

        Raises:
            DamagedError: it is damaged and would be removed.
        """
        try:
            return AssetChange(id, self.asset(id), after)
        except DamagedError:
            head = next(self._intent.heads(self._partition, (id,)), None)
            if after is None or head is None:
                raise
            return AssetChange(id, replace(after, type=head.type, digest=head.digest), after)

    def changes(
        self, after: Mapping[AssetId, Asset], among: Iterable[AssetId] | None = None
    ) -> list[AssetChange]:
        """How the predecessor will change to `after`, by id.

        Args:
            among: all assets that may differ; None if any may.

        Raises:
            DamagedError: as `change`.
        """
        if among is None:
            before = self._digests()
            differing = {id for id, asset in after.items() if before.get(id) != asset.digest}
            among = differing | (before.keys() - after.keys())
        found = (self.change(id, after.get(id)) for id in sorted(among))
        return [item for item in found if not same(item.before, item.after)]

    def _digests(self) -> dict[AssetId, Digest]:
        if self._newest is None:
            return {}
        digests = {head.id: head.digest for head in self._intent.heads(self._partition)}
        newest = self._intent.newest(self._partition)
        if newest is not None and newest.sequence == self.sequence:
            return digests
        # Another incarnation was published before the read of the heads began.
        return {asset.id: asset.digest for asset in self._intent.assets(self._partition, self.sequence)}

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        """References to `id` in the predecessor."""
        sources = dict.fromkeys(
            source for source, _path in self._intent.mentioned_by(AssetKey(self._partition, id))
        )
        for source in sources:
            asset = self.asset(source)
            if asset is None:
                continue
            for mention in self._registry.mentions(asset):
                if mention.target == id:
                    yield asset, mention

    def claimed_by(self, claim: str) -> Iterable[AssetId]:
        """Assets of the predecessor that claim something in production."""
        return self._intent.claimed_by(self._partition, claim)

    def selects(self, selector: Selector, but: Container[AssetId]) -> bool:
        """Whether the predecessor has an asset that `selector` selects, other than those of `but`.

        Assets are read only for their labels, and only those whose id and type are selected. After a limited
        number of reads without a match it assumes one: this only serves a warning.
        """
        if self._newest is None:
            return False
        read = 0
        for head in self._intent.heads(self._partition):
            if head.id in but or not selector.may_select(head.id, head.type):
                continue
            if not selector.labels:
                return True
            asset, read = self.asset(head.id), read + 1
            if read > _MOST_READ or (asset is not None and selector.matches(asset)):
                return True
        return False

    def of_types(self, types: Collection[str]) -> Iterable[Asset]:
        """Every asset of these types."""
        if self._newest is None:
            return ()
        return self._intent.assets(self._partition, self.sequence, sorted(types))

    def sizes(self) -> Mapping[str, int]:
        """Number of assets of each type."""
        newest = self._newest
        if newest is None:
            return {}
        if newest.types or not newest.assets:
            return newest.types
        return Counter(head.type for head in self._intent.heads(self._partition))


def same(old: Asset | None, new: Asset | None) -> bool:
    """Whether both are the same version of an asset, or neither exists."""
    return (old and old.digest) == (new and new.digest)


def leaving(intent: StoredIntent, records: Records, registry: Registry, key: AssetKey) -> Asset | None:
    """The last version of an asset whose turndown continues, although intent no longer has it.

    Call it only for assets that intent does not have. None for one that was removed or let go.
    """
    last = intent.last(key)
    if last is None or TURNDOWN not in addon_names(last[0]) or registry.inert(last[0].type):
        return None
    standing = records.standing(key)
    # One that never had a turn was never in production.
    return None if standing is None or standing.condition.status in LEFT else last[0]


def types_for(generated: Generated, intent: StoredIntent | None, partition: Partition) -> list[AnyType]:
    """The types that a candidate declares, and those that only its predecessor declares.

    An asset that is removed together with its type must remain readable.

    Args:
        intent: holds the predecessor; None for none.
    """
    newest = None if intent is None else intent.newest(partition)
    known: dict[str, AnyType] = {}
    if intent is not None and newest is not None:
        before = map(declared_type, intent.assets(partition, newest.sequence, (TYPE,)))
        known.update((item.name, item) for item in before)
    known.update((item.name, item) for item in declared_types(generated.assets, generated.types))
    return list(known.values())

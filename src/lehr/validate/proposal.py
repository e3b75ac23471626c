"""A candidate beside its predecessor, as a difference and a way to look up the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.model.types import Mention, Registry
from lehr.sdk.validator import Limits

Locate = Callable[[Asset, str], Position | None]
"""Where in the source the value at a JSON pointer into an asset's document stands, if that is known."""


class Predecessor(Protocol):
    """The incarnation that the candidate is to follow. Looked up, never read whole."""

    def asset(self, id: AssetId) -> Asset | None:
        """An asset of the predecessor; None when it has none of this id."""
        ...

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        """References to `id` in the predecessor."""
        ...

    def claimed_by(self, claim: str) -> Iterable[AssetId]:
        """Assets of the predecessor that claim a thing in production."""
        ...

    def size(self) -> int:
        """Number of assets."""
        ...


class MappingPredecessor:
    """A predecessor held in memory. Without assets, it stands for there being none.

    The first `mentioned_by` goes through all assets once.
    """

    def __init__(self, assets: Mapping[AssetId, Asset], registry: Registry) -> None:
        self._assets = assets
        self._registry = registry
        self._mentions: dict[AssetId, list[tuple[Asset, Mention]]] | None = None
        self._claims: dict[str, list[AssetId]] | None = None

    def asset(self, id: AssetId) -> Asset | None:
        return self._assets.get(id)

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        if self._mentions is None:
            self._mentions = {}
            for asset in self._assets.values():
                for mention in self._registry.mentions(asset):
                    self._mentions.setdefault(mention.target, []).append((asset, mention))
        return self._mentions.get(id, ())

    def claimed_by(self, claim: str) -> Iterable[AssetId]:
        if self._claims is None:
            self._claims = {}
            for asset in self._assets.values():
                for thing in self._registry.claims(asset):
                    self._claims.setdefault(thing, []).append(asset.id)
        return self._claims.get(claim, ())

    def size(self) -> int:
        return len(self._assets)


class DeltaProposal:
    """Implements `lehr.sdk.validator.Proposal` on a difference.

    Args:
        changes: every asset that differs from the predecessor. What does not differ is left out.
        locate: finds the line of a value; without it, diagnostics point to where an asset starts.
    """

    def __init__(
        self,
        partition: Partition,
        registry: Registry,
        limits: Limits,
        changes: Iterable[AssetChange],
        predecessor: Predecessor,
        locate: Locate | None = None,
    ) -> None:
        self._partition = partition
        self._registry = registry
        self._limits = limits
        self._changes = {change.id: change for change in changes if _differs(change)}
        self._predecessor = predecessor
        self._locate = locate
        self._mentions: dict[AssetId, list[tuple[Asset, Mention]]] | None = None

    @property
    def partition(self) -> Partition:
        return self._partition

    @property
    def registry(self) -> Registry:
        return self._registry

    @property
    def limits(self) -> Limits:
        return self._limits

    def changes(self) -> Iterable[AssetChange]:
        return self._changes.values()

    def asset(self, id: AssetId) -> Asset | None:
        """An asset of the candidate; None when it has none of this id."""
        change = self._changes.get(id)
        return self._predecessor.asset(id) if change is None else change.after

    def type_of(self, id: AssetId) -> str | None:
        asset = self.asset(id)
        return None if asset is None else asset.type

    def mentioned_by(self, id: AssetId) -> Iterator[tuple[Asset, Mention]]:
        yield from self.mentioned_by_changed(id)
        for asset, mention in self._predecessor.mentioned_by(id):
            if asset.id not in self._changes:
                yield asset, mention

    def mentioned_by_changed(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        """References to `id` in those assets of the candidate that are new or changed."""
        if self._mentions is None:
            self._mentions = {}
            for change in self._changes.values():
                if change.after is not None:
                    for mention in self._registry.mentions(change.after):
                        self._mentions.setdefault(mention.target, []).append((change.after, mention))
        return self._mentions.get(id, ())

    def changed_mentions(self) -> Iterator[tuple[Asset, Mention]]:
        """Every reference that a new or changed asset makes."""
        self.mentioned_by_changed(AssetId(""))
        assert self._mentions is not None
        for found in self._mentions.values():
            yield from found

    def claimed_before(self, claim: str) -> Iterator[AssetId]:
        """Assets that have not changed and claim a thing in production."""
        return (id for id in self._predecessor.claimed_by(claim) if id not in self._changes)

    def is_changed(self, id: AssetId) -> bool:
        """Whether the asset was added, changed or removed."""
        return id in self._changes

    def size_before(self) -> int:
        return self._predecessor.size()

    def place(self, asset: Asset, pointer: str = "") -> Position | None:
        """Where the value at `pointer` of the asset's document stands, as exactly as is known."""
        found = None if self._locate is None else self._locate(asset, pointer)
        return asset.origin if found is None else found


def _differs(change: AssetChange) -> bool:
    before = None if change.before is None else change.before.digest
    after = None if change.after is None else change.after.digest
    return before != after

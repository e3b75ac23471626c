"""A candidate and its predecessor, as a difference and a way to look up the rest."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.model.selector import Selector
from lehr.model.types import Mention, Registry
from lehr.sdk.asked_validator import Answered
from lehr.sdk.claims import Conflict
from lehr.sdk.validator import Answers, Limits

Locate = Callable[[Asset, str], Position | None]
"""Maps a JSON pointer into an asset's document to a position in the source, if known."""


class Predecessor(Protocol):
    """The incarnation that the candidate will follow. Looked up, never read whole."""

    @property
    def sequence(self) -> int:
        """Sequence of the incarnation; 0 for none."""
        ...

    def asset(self, id: AssetId) -> Asset | None:
        """An asset of the predecessor; None when it has none of this id."""
        ...

    def leaving(self, id: AssetId) -> Asset | None:
        """The last version of an asset that the predecessor lacks and whose turndown continues."""
        ...

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        """References to `id` in the predecessor."""
        ...

    def claimed_by(self, claim: str) -> Iterable[AssetId]:
        """Assets of the predecessor that claim something in production."""
        ...

    def selects(self, selector: Selector, but: Container[AssetId]) -> bool:
        """Whether the predecessor has an asset that `selector` selects, other than those of `but`.

        May return True if the real answer would be expensive.
        """
        ...

    def sizes(self) -> Mapping[str, int]:
        """Number of assets of each type."""
        ...

    def of_types(self, types: Collection[str]) -> Iterable[Asset]:
        """Every asset of these types."""
        ...


class MappingPredecessor:
    """A predecessor held in memory. Without assets, it means that there is no predecessor.

    The first `mentioned_by` reads all assets once.

    Args:
        leaving: assets that it lacks and whose turndown continues.

    Attributes:
        sequence: 1 if it has assets.
    """

    def __init__(
        self, assets: Mapping[AssetId, Asset], registry: Registry, leaving: Iterable[Asset] = ()
    ) -> None:
        self.sequence = 1 if assets else 0
        self._assets = assets
        self._registry = registry
        self._leaving = {asset.id: asset for asset in leaving}
        self._mentions: dict[AssetId, list[tuple[Asset, Mention]]] | None = None
        self._claims: dict[str, list[AssetId]] | None = None

    def asset(self, id: AssetId) -> Asset | None:
        return self._assets.get(id)

    def leaving(self, id: AssetId) -> Asset | None:
        return self._leaving.get(id)

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

    def selects(self, selector: Selector, but: Container[AssetId]) -> bool:
        return any(selector.matches(asset) for asset in self._assets.values() if asset.id not in but)

    def sizes(self) -> Mapping[str, int]:
        return Counter(asset.type for asset in self._assets.values())

    def of_types(self, types: Collection[str]) -> Iterable[Asset]:
        return (asset for asset in self._assets.values() if asset.type in types)


class AssetView(NamedTuple):
    """One changed asset: the only thing that a validator of scope `ASSET` can see.

    Attributes:
        leaving: its last declared version, if it is new and the turndown of that version continues.
    """

    change: AssetChange
    registry: Registry
    limits: Limits
    place: Locate
    answers: Answers
    leaving: Asset | None


class DeltaProposal:
    """Implements `lehr.sdk.validator.Proposal` based on a difference.

    Args:
        changes: every asset that differs from the predecessor. Unchanged assets are left out.
        locate: finds the line of a value; without it, diagnostics point to where an asset starts.
        answers: answers of the databases that must judge the changes.
        conflicts: claims of the changes that something else holds on this host.
        answered: answers of the validators of plugins.

    Attributes:
        mentions: the references that each new or changed asset makes, if it makes any.
        claims: the exclusive claims of each new or changed asset that has any.
    """

    def __init__(
        self,
        partition: Partition,
        registry: Registry,
        limits: Limits,
        changes: Iterable[AssetChange],
        predecessor: Predecessor,
        locate: Locate | None = None,
        answers: Answers | None = None,
        conflicts: Collection[Conflict] = (),
        answered: Collection[Answered] = (),
    ) -> None:
        self.answers: Answers = answers or {}
        self.conflicts = conflicts
        self.answered = answered
        self.partition = partition
        self.registry = registry
        self.limits = limits
        self._changes = {change.id: change for change in changes if _differs(change)}
        self._predecessor = predecessor
        self._locate = locate
        after = [change.after for change in self._changes.values() if change.after is not None]
        # There may be a million of them, and most refer to nothing.
        self.mentions = {asset.id: tuple(made) for asset in after if (made := registry.mentions(asset))}
        self.claims = {asset.id: held for asset in after if (held := registry.claims(asset))}
        self._mentioned_by: dict[AssetId, list[tuple[Asset, Mention]]] = {}
        for asset in after:
            for mention in self.mentions.get(asset.id, ()):
                self._mentioned_by.setdefault(mention.target, []).append((asset, mention))

    @property
    def base(self) -> str:
        """Name of the predecessor; without one, that of sequence 0."""
        return f"{self.partition}@{self._predecessor.sequence}"

    @property
    def sequence(self) -> int:
        """Sequence of the incarnation that the candidate becomes."""
        return self._predecessor.sequence + 1

    def changes(self) -> Iterable[AssetChange]:
        return self._changes.values()

    def views(self) -> Iterator[AssetView]:
        """Every change separately."""
        for change in self._changes.values():
            is_new = change.before is None and change.after is not None
            leaving = self._predecessor.leaving(change.id) if is_new else None
            yield AssetView(change, self.registry, self.limits, self.place, self.answers, leaving)

    def asset(self, id: AssetId) -> Asset | None:
        """An asset of the candidate; None when it has none of this id."""
        change = self._changes.get(id)
        return self._predecessor.asset(id) if change is None else change.after

    def leaving(self, id: AssetId) -> Asset | None:
        """The last version of an asset that the candidate does not have, and whose turndown continues."""
        return None if self.asset(id) is not None else self._predecessor.leaving(id)

    def of_types(self, wanted: Callable[[str], bool]) -> Iterator[Asset]:
        """Every asset of the candidate, changed or not, whose type is `wanted`."""
        for change in self._changes.values():
            if change.after is not None and wanted(change.after.type):
                yield change.after
        types = [type for type in self.sizes_before if wanted(type)]
        if types:
            yield from (asset for asset in self._predecessor.of_types(types) if asset.id not in self._changes)

    def selects_unchanged(self, selector: Selector) -> bool:
        """Whether `selector` selects an asset that has not changed."""
        return self._predecessor.selects(selector, self._changes)

    def type_of(self, id: AssetId) -> str | None:
        asset = self.asset(id)
        return None if asset is None else asset.type

    # --- references ----------------------------------------------------------------

    def mentioned_by(self, id: AssetId) -> Iterator[tuple[Asset, Mention]]:
        yield from self._mentioned_by.get(id, ())
        yield from self.mentioned_by_others(id)

    def mentioned_by_others(self, id: AssetId) -> Iterator[tuple[Asset, Mention]]:
        """References to `id` in assets that have not changed."""
        for asset, mention in self._predecessor.mentioned_by(id):
            if asset.id not in self._changes:
                yield asset, mention

    def changed_mentions(self) -> Iterator[tuple[Asset, Mention]]:
        """Every reference that a new or changed asset makes, by what is referred to."""
        for found in self._mentioned_by.values():
            yield from found

    def dependencies(self, id: AssetId) -> list[AssetId]:
        """Assets of the candidate that are pushed before this one, each once, in order of mention."""
        if id in self._changes:
            mentions = self.mentions.get(id, ())
            return list(dict.fromkeys(item.target for item in mentions if item.goes_first))
        asset = self._predecessor.asset(id)
        return [] if asset is None else self.registry.dependencies(asset)

    # --- claims --------------------------------------------------------------------

    def claimed_by_others(self, claim: str) -> Iterator[AssetId]:
        """Unchanged assets that claim something in production."""
        if self._predecessor.sequence:  # a first candidate has many claims, and nothing to compare them with
            yield from (id for id in self._predecessor.claimed_by(claim) if id not in self._changes)

    # --- numbers -------------------------------------------------------------------

    def size_before(self) -> int:
        return sum(self.sizes_before.values())

    @functools.cached_property
    def sizes_before(self) -> Mapping[str, int]:
        """Number of assets of the predecessor, of each type."""
        return self._predecessor.sizes()

    def prefetch(self, assets: Iterable[AssetId] = (), referrers: Iterable[AssetId] = ()) -> None:
        """Nothing: a look-up is cheap here."""

    def before(self, id: AssetId) -> Asset | None:
        """A changed asset as the predecessor has it; None if it is new, or has not changed."""
        change = self._changes.get(id)
        return None if change is None else change.before

    def place(self, asset: Asset, pointer: str = "") -> Position | None:
        """Position of the value at `pointer` of the asset's document, as exactly as known."""
        found = None if self._locate is None else self._locate(asset, pointer)
        return asset.origin if found is None else found


def _differs(change: AssetChange) -> bool:
    before = None if change.before is None else change.before.digest
    after = None if change.after is None else change.after.digest
    return before != after

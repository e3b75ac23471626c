"""Readers of intent for plugins, which record what was read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from lehr.base.digest import Digest, digest_all
from lehr.base.errors import NeedError, StalledError, WaitingError
from lehr.enforce.output_reads import NOTHING_OBSERVED, Observed, OutputPath, OutputReads
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.types import Registry
from lehr.sdk.plugin import version_read

T = TypeVar("T")

_NONE: Mapping[AssetId, Asset | None] = {}


class Assets(Protocol):
    """Reads single assets. Implementation: `lehr.enforce.lookups.Lookups`."""

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        """As `StoredIntent.asset`.

        Raises:
            NeedError: it is not in memory.
        """
        ...

    async def run(self, look: Callable[[], T]) -> T:
        """As `Lookups.run`."""
        ...


class RecordingReader:
    """`lehr.sdk.plugin.Reader` over the store.

    Attributes:
        reads: digest by id of every asset that was asked for; None for one that does not exist. One of which
            only outputs were asked for is not among them.
        outputs: those that were asked for; None if none were.
        missed: assets that were asked for and not in memory; the caller asks again once they are.
        understands: up to which version of which types the reader understands, as
            `AssetPlugin.versions`; None for one that always understands the newest.
    """

    __slots__ = (
        "_assets",
        "_elsewhere",
        "_fetched",
        "_intent",
        "_observe",
        "_partition",
        "_registry",
        "_removed",
        "_sequence",
        "_sequence_of",
        "missed",
        "outputs",
        "understands",
    )

    def __init__(
        self,
        intent: Assets,
        registry: Registry,
        partition: Partition,
        sequence: int,
        removed: Callable[[Asset], bool] = lambda asset: False,
        sequence_of: Callable[[AssetId], int] | None = None,
        observed: Callable[[Asset], Observed] = lambda asset: NOTHING_OBSERVED,
    ) -> None:
        """Read incarnation `sequence`.

        Args:
            removed: whether the turndown of an asset has removed it: it is not there then.
            sequence_of: the incarnation at which an asset is read instead. May raise `NeedError`.
            observed: as for `OutputReads`.
        """
        self._removed = removed
        self._sequence_of = sequence_of
        self._observe = observed
        self._intent = intent
        self._registry = registry
        self._partition = partition
        self._sequence = sequence
        self._assets: dict[AssetId, Asset | None] = {}
        self._elsewhere: dict[AssetId, int] = {}
        self._fetched: Mapping[AssetId, Asset | None] = _NONE
        self.outputs: OutputReads | None = None
        self.missed: dict[AssetId, None] = {}
        self.understands: Mapping[str, int] | None = None

    @property
    def incarnation(self) -> int:
        return self._sequence

    @property
    def reads(self) -> dict[AssetId, Digest | None]:
        return {id: _digest(asset) for id, asset in self._assets.items()}

    @property
    def elsewhere(self) -> tuple[tuple[AssetId, int], ...]:
        """Assets that were read at another incarnation, and at which."""
        if not self._elsewhere:
            return ()
        return tuple(item for item in self._elsewhere.items() if item[0] in self._assets)

    def others(self, id: AssetId) -> tuple[AssetId, ...]:
        """Ids of the assets that were asked for other than `id`."""
        assets = self._assets
        if len(assets) == 1 and id in assets:
            return ()
        return tuple(other for other in assets if other != id)

    def content_digest(self, asset: Asset) -> Digest:
        """Digest of `asset` and of everything that was read to apply it."""
        if self.outputs is not None:
            return content_digest(asset, self.reads, self.outputs.stable)
        return content_digest(asset, self.reads) if self.others(asset.id) else asset.digest

    def know(self, asset: Asset) -> None:
        """Save a look-up: `asset` is its version in this incarnation, and is read although removed."""
        self._assets[asset.id] = asset

    def know_same(self, other: RecordingReader) -> None:
        """Take over the reads of another reader of the same incarnation; they count as reads of this one."""
        self._assets = {**other._assets, **self._assets}
        self._elsewhere = {**other._elsewhere, **self._elsewhere}
        if other.outputs is not None:
            self._output_reads().take_over(other.outputs)

    def see_same(self, other: RecordingReader) -> None:
        """Find outputs as another reader has found them."""
        if other.outputs is not None:
            self._output_reads().see_same(other.outputs)

    def asset(self, id: AssetId) -> Asset | None:
        try:
            return self._assets[id]
        except KeyError:
            pass
        asset = self._assets[id] = self._found(id)
        return asset

    def _found(self, id: AssetId) -> Asset | None:
        """The asset, without counting as a read."""
        if id in self._fetched:
            return self._fetched[id]
        try:
            return self._look(id)
        except NeedError:
            self.missed[id] = None
            raise

    def _look(self, id: AssetId) -> Asset | None:
        asset, sequence = self._now(id)
        if sequence != self._sequence:
            self._elsewhere[id] = sequence
        return asset

    def _now(self, id: AssetId) -> tuple[Asset | None, int]:
        """The asset as it reads now, and the incarnation that has it so."""
        sequence = self._sequence if self._sequence_of is None else self._sequence_of(id)
        asset = self._intent.asset(AssetKey(self._partition, id), sequence)
        return None if asset is not None and self._removed(asset) else asset, sequence

    async def fetch_missed(self) -> None:
        """Read the assets that were missed.

        Raises:
            LehrError: one cannot be read.
        """
        while self.missed:
            await self.fetch(next(iter(self.missed)))

    async def fetch(self, id: AssetId) -> None:
        """Read an asset into memory.

        Raises:
            LehrError: it cannot be read.
        """
        if id not in self._assets:
            self._fetched = {**self._fetched, id: await self._intent.run(partial(self._look, id))}
        self.missed.pop(id, None)

    def digest_of(self, id: AssetId) -> Digest | None:
        """Digest of an asset that was fetched, as `reads` would have it, without counting as a read.

        Raises:
            NeedError: it is not in memory.
        """
        return _digest(self._assets[id] if id in self._assets else self._found(id))

    def payload(self, id: AssetId, kind: type[T]) -> T:
        asset = self._present(id)
        version = None if self.understands is None else version_read(self.understands, asset.type, kind)
        try:
            return self._registry.payload(asset, kind, version)
        except TypeError as error:
            raise StalledError(str(error), code="ENF102", fix="correct the reference in intent") from error

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        return self._registry.addon(self._present(id), name, kind)

    def output(self, id: AssetId, path: str) -> Any:
        asset = self._assets[id] if id in self._assets else self._found(id)
        if asset is None:
            asset = self._present(id)  # which raises, and records that it is not there
        return self._output_reads().read(asset, path)

    def _output_reads(self) -> OutputReads:
        if self.outputs is None:
            self.outputs = OutputReads(self._observe)
        return self.outputs

    @property
    def waking(self) -> tuple[OutputPath, ...]:
        """As `OutputReads.waking`."""
        return () if self.outputs is None else self.outputs.waking

    @property
    def out_of_date(self) -> bool:
        """Whether an output whose change wakes has changed since it was read."""
        return self.outputs is not None and bool(self.outputs.changed)

    def changed(self, reader: AssetId) -> list[AssetId]:
        """Assets other than `reader` whose content or outputs are not as they were read.

        Raises:
            NeedError: one of them is not in memory.
        """
        changed = [id for id in self.others(reader) if _digest(self._assets[id]) != _digest(self._now(id)[0])]
        if self.outputs is not None:
            changed += (id for id, _path in self.outputs.changed)
        return list(dict.fromkeys(changed))

    def recall(self, places: Iterable[OutputPath]) -> None:
        """Read these outputs where they are there."""
        for id, path in places:
            with contextlib.suppress(StalledError, WaitingError):
                self.output(id, path)

    def _present(self, id: AssetId) -> Asset:
        asset = self.asset(id)
        if asset is None:
            raise StalledError(
                f"incarnation {self._sequence} has no asset {id}",
                code="ENF103",
                fix="correct the reference in intent",
            )
        return asset


def _digest(asset: Asset | None) -> Digest | None:
    return None if asset is None else asset.digest


def content_digest(
    asset: Asset,
    reads: Mapping[AssetId, Digest | None],
    outputs: Mapping[OutputPath, Digest | None] | None = None,
) -> Digest:
    """Digest of an asset and of everything that its plugin read to apply it.

    Args:
        outputs: the stable ones that were read; None for one that is not known.
    """
    others = sorted(id for id in reads if id != asset.id)
    content = asset.digest
    if others:
        content = digest_all((content, *(part for id in others for part in (id, reads[id] or "absent"))))
    if outputs:
        values = (part for place in sorted(outputs) for part in (*place, outputs[place] or "absent"))
        content = digest_all(("outputs", content, *values))
    return content

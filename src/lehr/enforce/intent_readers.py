"""Readers of intent for plugins, which record what was read."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from lehr.base.digest import Digest, digest, digest_all
from lehr.base.errors import NeedError, StalledError, WaitingError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.outputs import NO_OUTPUTS, NoSuchValueError, OutputNames, name_in, value_at
from lehr.model.types import Registry
from lehr.sdk.plugin import version_read

T = TypeVar("T")

OutputPath = tuple[AssetId, str]
"""An asset, and a path into its outputs."""


class Observed(NamedTuple):
    """The outputs that an asset's type has, and those that are known."""

    names: OutputNames
    values: Mapping[str, Any]


_NOTHING = Observed(NO_OUTPUTS, {})


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
        awaited: outputs that were asked for and are not known yet.
        missed: assets that were asked for and not in memory; the caller asks again once they are.
        understands: up to which version of which types the reader understands, as
            `AssetPlugin.versions`; None for one that always understands the newest.
    """

    def __init__(
        self,
        intent: Assets,
        registry: Registry,
        partition: Partition,
        sequence: int,
        removed: Callable[[Asset], bool] = lambda asset: False,
        sequence_of: Callable[[AssetId], int] | None = None,
        observed: Callable[[Asset], Observed] = lambda asset: _NOTHING,
    ) -> None:
        """Read incarnation `sequence`.

        Args:
            removed: whether the turndown of an asset has removed it: it is not there then.
            sequence_of: the incarnation at which an asset is read instead. May raise `NeedError`.
            observed: the outputs of an asset as they are now; its first answer counts for all later reads.
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
        self._fetched: dict[AssetId, Asset | None] = {}
        self._observed: dict[AssetId, tuple[Asset, Observed]] = {}
        self._outputs: dict[OutputPath, Digest | None] = {}
        self.awaited: dict[OutputPath, None] = {}
        self.missed: dict[AssetId, None] = {}
        self.understands: Mapping[str, int] | None = None

    @property
    def incarnation(self) -> int:
        return self._sequence

    @property
    def reads(self) -> dict[AssetId, Digest | None]:
        return {id: asset.digest if asset else None for id, asset in self._assets.items()}

    @property
    def elsewhere(self) -> tuple[tuple[AssetId, int], ...]:
        """Assets that were read at another incarnation, and at which."""
        return tuple(item for item in self._elsewhere.items() if item[0] in self._assets)

    def others(self, id: AssetId) -> tuple[AssetId, ...]:
        """Ids of the assets that were asked for other than `id`."""
        assets = self._assets
        if len(assets) == 1 and id in assets:
            return ()
        return tuple(other for other in assets if other != id)

    def content_digest(self, asset: Asset) -> Digest:
        """Digest of `asset` and of everything that was read to apply it."""
        if not self._outputs and not self.others(asset.id):
            return asset.digest
        stable = {place: value for place, value in self._outputs.items() if self._is_stable(place)}
        return content_digest(asset, self.reads, stable)

    def know(self, asset: Asset) -> None:
        """Save a look-up: `asset` is its version in this incarnation, and is read although removed."""
        self._assets[asset.id] = asset

    def know_same(self, other: RecordingReader) -> None:
        """Take over the reads of another reader of the same incarnation; they count as reads of this one."""
        self._assets = {**other._assets, **self._assets}
        self._elsewhere = {**other._elsewhere, **self._elsewhere}
        self._outputs = {**other._outputs, **self._outputs}
        self.see_same(other)

    def see_same(self, other: RecordingReader) -> None:
        """Read outputs as another reader has read them."""
        self._observed = {**other._observed, **self._observed}

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
        sequence = self._sequence if self._sequence_of is None else self._sequence_of(id)
        asset = self._intent.asset(AssetKey(self._partition, id), sequence)
        if sequence != self._sequence:
            self._elsewhere[id] = sequence
        return None if asset is not None and self._removed(asset) else asset

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
            self._fetched[id] = await self._intent.run(partial(self._look, id))
        self.missed.pop(id, None)

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
        asset, observed = self._outputs_of(id)
        name = name_in(path)
        if name not in observed.names:
            known = f"its type {asset.type} has {observed.names}" if str(observed.names) else ""
            raise StalledError(
                f"asset {id} has no output `{name}`",
                code="ENF110",
                why=known or f"no plugin here declares outputs of its type {asset.type}",
                fix="correct what reads it, or update the plugin of that type",
            )
        try:
            value = value_at(observed.values, path)
        except NoSuchValueError:
            self._outputs[id, path] = None
            self.awaited[id, path] = None
            raise WaitingError(
                f"output `{path}` of {id} is not known yet",
                until=0.0,
                code="ENF111",
                fix=f"wait until {id} has been pushed; see `lehr why {id}`",
            ) from None
        self._outputs[id, path] = digest(value)
        return copy.deepcopy(value)

    def _outputs_of(self, id: AssetId) -> tuple[Asset, Observed]:
        if id not in self._observed:
            asset = self._assets[id] if id in self._assets else self._found(id)
            if asset is None:
                asset = self._present(id)  # which raises, and records that it is not there
            self._observed[id] = asset, self._observe(asset)
        return self._observed[id]

    def _is_stable(self, place: OutputPath) -> bool:
        id, path = place
        return name_in(path) in self._observed[id][1].names.stable

    @property
    def waking(self) -> tuple[OutputPath, ...]:
        """Outputs whose change makes what was read out of date: those that are stable, or were not known."""
        if not self._outputs:
            return ()
        return tuple(place for place in self._outputs if place in self.awaited or self._is_stable(place))

    @property
    def out_of_date(self) -> bool:
        """Whether one of these outputs has changed since it was read."""
        return any(self._now(place) != self._outputs[place] for place in self.waking)

    def _now(self, place: OutputPath) -> Digest | None:
        id, path = place
        return output_digest(self._observe(self._observed[id][0]), path)

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


def output_digest(observed: Observed, path: str) -> Digest | None:
    """Digest of an output; None while it is not known."""
    try:
        return digest(value_at(observed.values, path))
    except NoSuchValueError:
        return None


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

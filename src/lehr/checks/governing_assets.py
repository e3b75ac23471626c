"""The assets and controls of one kind that govern a push."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset
from lehr.model.control import Control, ControlKind
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckReader, CheckRequest

P = TypeVar("P", bound=msgspec.Struct)
C = TypeVar("C", bound="Selecting")


class Selecting(Protocol):
    """A configuration that selects the assets it governs."""

    @property
    def select(self) -> Selector: ...


class Governing(Generic[C]):
    """The governing assets of one type, decoded and prepared once for each content.

    A check runs for every push, and most configurations do not select its asset: each of those costs one
    look-up by digest and one selector.
    """

    def __init__(self, type: AssetType, payload: type[P], prepare: Callable[[P], C]) -> None:
        """Assets of `type`; `prepare` turns each decoded payload into what the check works with."""
        self._type = type.name
        self._read: Callable[[CheckReader, Asset], C] = lambda read, asset: prepare(
            read.payload(asset, payload)
        )
        self._prepared: dict[Digest, C] = {}

    def selecting(self, request: CheckRequest, read: CheckReader) -> Iterator[tuple[Asset, C]]:
        """The ones that select the asset of `request`, by id."""
        assets = read.governing(self._type)
        for asset in assets:
            configuration = self._prepared.get(asset.digest)
            if configuration is None:
                configuration = self._remember(asset, assets, read)
            if request.selected(configuration.select):
                yield asset, configuration

    def _remember(self, asset: Asset, assets: Sequence[Asset], read: CheckReader) -> C:
        if len(self._prepared) > 2 * len(assets):  # replaced by later incarnations
            current = {item.digest for item in assets}
            self._prepared = {key: value for key, value in self._prepared.items() if key in current}
        configuration = self._prepared[asset.digest] = self._read(read, asset)
        return configuration


def active_controls(kind: ControlKind, request: CheckRequest, read: CheckReader) -> Iterator[Control]:
    """The active controls of `kind` that select the asset of `request`."""
    for control in read.controls():
        if (
            control.kind is kind
            and control.partition == request.target.partition
            and control.is_active(request.now)
            and request.selected(control.selector)
        ):
            yield control

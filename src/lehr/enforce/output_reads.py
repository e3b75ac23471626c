"""Outputs of other assets, as one turn reads them: once, and the same for its diff, push and verification."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lehr.base.digest import Digest, digest
from lehr.base.errors import StalledError, WaitingError
from lehr.model.asset import Asset, AssetId
from lehr.model.outputs import NO_OUTPUTS, NoSuchValueError, OutputNames, name_in, value_at

OutputPath = tuple[AssetId, str]
"""An asset, and a path into its outputs."""


class Observed(NamedTuple):
    """The outputs that an asset's type has, and those that are known."""

    names: OutputNames
    values: Mapping[str, Any]


NOTHING_OBSERVED = Observed(NO_OUTPUTS, {})


class OutputReads:
    """The outputs that were read.

    Attributes:
        awaited: those that are not known yet.
    """

    def __init__(self, observe: Callable[[Asset], Observed]) -> None:
        """Read outputs. `observe`: those of an asset now; its first answer counts for all later reads."""
        self.awaited: dict[OutputPath, None] = {}
        self._observe = observe
        self._observed: dict[AssetId, tuple[Asset, Observed]] = {}
        self._digests: dict[OutputPath, Digest | None] = {}

    def read(self, asset: Asset, path: str) -> Any:
        """As `Reader.output`, of an asset that is there."""
        _asset, observed = self._observed.setdefault(asset.id, (asset, self._observe(asset)))
        place, name = (asset.id, path), name_in(path)
        if name not in observed.names:
            known = f"its type {asset.type} has {observed.names}" if str(observed.names) else ""
            raise StalledError(
                f"asset {asset.id} has no output `{name}`",
                code="ENF110",
                why=known or f"no plugin here declares outputs of its type {asset.type}",
                fix="correct what reads it, or update the plugin of that type",
            )
        try:
            value = value_at(observed.values, path)
        except NoSuchValueError:
            self._digests[place] = self.awaited[place] = None
            raise WaitingError(
                f"output `{path}` of {asset.id} is not known yet",
                until=0.0,
                code="ENF111",
                fix=f"wait until {asset.id} has been pushed; see `lehr why {asset.id}`",
            ) from None
        self._digests[place] = digest(value)
        return copy.deepcopy(value)

    def see_same(self, other: OutputReads) -> None:
        """Find outputs as another reader has found them."""
        self._observed = {**other._observed, **self._observed}

    def take_over(self, other: OutputReads) -> None:
        """Count the reads of another reader as reads of this one."""
        self._digests = {**other._digests, **self._digests}
        self.see_same(other)

    @property
    def stable(self) -> dict[OutputPath, Digest | None]:
        """Those that are part of the content of the reading asset; None for one that is not known."""
        return {place: value for place, value in self._digests.items() if self._is_stable(place)}

    @property
    def waking(self) -> tuple[OutputPath, ...]:
        """Those whose change makes what was read out of date: they are stable, or were not known."""
        return tuple(place for place in self._digests if place in self.awaited or self._is_stable(place))

    @property
    def changed(self) -> list[OutputPath]:
        """Those of `waking` that have changed since they were read."""
        return [place for place in self.waking if self._now(place) != self._digests[place]]

    def _is_stable(self, place: OutputPath) -> bool:
        id, path = place
        return name_in(path) in self._observed[id][1].names.stable

    def _now(self, place: OutputPath) -> Digest | None:
        id, path = place
        try:
            return digest(value_at(self._observe(self._observed[id][0]).values, path))
        except NoSuchValueError:
            return None

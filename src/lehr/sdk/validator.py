"""Validators: functions of a candidate and its predecessor that return diagnostics.

A validator declares its scope, so that validation costs O(changed): it is shown the changed
assets, and looks up the rest. It returns *all* problems it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.model.types import Mention, Registry


class Limits(msgspec.Struct, frozen=True):
    """What the workspace allows (`lehr.yaml`), for validators.

    Attributes:
        let_go: reasons, by id, of assets that may disappear from intent and stay in production.
        shrink_percent: share of the assets that one incarnation may let go or turn down.
        shrink_floor: number of assets that one incarnation may always let go or turn down.
    """

    let_go: dict[str, str] = {}
    shrink_percent: float = 30.0
    shrink_floor: int = 5


class Proposal(Protocol):
    """A candidate beside its predecessor."""

    @property
    def partition(self) -> Partition: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def limits(self) -> Limits: ...

    def changes(self) -> Iterable[AssetChange]:
        """Every asset that was added, changed or removed."""
        ...

    def type_of(self, id: AssetId) -> str | None:
        """Type of an asset of the candidate; None when it has none of this id."""
        ...

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        """References to `id` in the candidate."""
        ...

    def size_before(self) -> int:
        """Number of assets of the predecessor."""
        ...


class Validator(Protocol):
    """Finds problems. Pure."""

    def __call__(self, proposal: Proposal) -> Iterator[Diagnostic]: ...

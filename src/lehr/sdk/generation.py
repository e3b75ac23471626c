"""The results of generation for publishing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.digest import Digest
from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import SourceRevision
from lehr.model.provenance import DeclaredGenerator
from lehr.sdk.source import Snapshot
from lehr.sdk.validator import Limits


class Generated(msgspec.Struct, frozen=True):
    """Everything that one snapshot declares.

    Attributes:
        partition, limits: from the workspace file `lehr.yaml`; None when it is not readable.
        generators: digest of the code and settings that made the assets.
        assets: all of them, by id. Shared with the generator: read, never change.
        types: names of the asset types that it declares itself.
        declared: its generators, in the order in which they run.
        touched: ids that may differ from the last call's answer; None means any may.
        diagnostics: every problem found. With an error among them `assets` means nothing.
    """

    revision: SourceRevision
    partition: Partition | None
    limits: Limits | None
    generators: Digest
    assets: Mapping[AssetId, Asset]
    touched: frozenset[AssetId] | None
    diagnostics: tuple[Diagnostic, ...]
    types: tuple[str, ...] = ()
    declared: tuple[DeclaredGenerator, ...] = ()


class OvertakenError(TransientError):
    """A newer snapshot will be generated instead; results so far are remembered."""

    def __init__(self) -> None:
        super().__init__("a newer revision arrived before this one was complete", code="SDK101")


class Generation(Protocol):
    """Turns snapshots into assets, in a worker process."""

    async def generate(self, snapshot: Snapshot) -> Generated:
        """Run every generator over `snapshot`.

        Raises:
            TransientError: the worker died or did not answer in time (it is started again).
        """
        ...

    async def close(self) -> None:
        """End the worker process."""
        ...


@runtime_checkable
class Overtakable(Protocol):
    """A generation that can be stopped for something newer."""

    def overtake(self) -> None:
        """Have the call of `generate` that is under way raise `OvertakenError` soon, if it is not done."""
        ...

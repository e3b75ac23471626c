"""An asset plugin's inputs, as fixed values: for tests of plugins."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from lehr.base.digest import digest
from lehr.base.errors import StalledError, WaitingError
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.diff import NO_DIFF, Diff, Goal, Target
from lehr.model.operation import Operation
from lehr.model.outputs import NoSuchValueError, value_at
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.sdk.secrets import SecretValue

T = TypeVar("T")


class FixedReader:
    """A `lehr.sdk.plugin.Reader` over a fixed set of assets.

    Attributes:
        registry: the types that payloads and addons are decoded with.
        reads: ids in the order in which they were read, absent ones included.
        outputs: those of each asset, by id; others are not known yet.
        output_reads: ids and paths of the outputs that were read, unknown ones included.
    """

    def __init__(
        self,
        assets: Iterable[Asset],
        registry: Registry,
        *,
        incarnation: int = 1,
        outputs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.registry = registry
        self.reads: list[AssetId] = []
        self.outputs = dict(outputs or {})
        self.output_reads: list[tuple[AssetId, str]] = []
        self._assets = {asset.id: asset for asset in assets}
        self._incarnation = incarnation

    @property
    def incarnation(self) -> int:
        return self._incarnation

    def asset(self, id: AssetId) -> Asset | None:
        self.reads.append(id)
        return self._assets.get(id)

    def payload(self, id: AssetId, kind: type[T]) -> T:
        asset = self.asset(id)
        if asset is None:
            raise StalledError(f"incarnation {self._incarnation} has no asset {id}")
        try:
            return self.registry.payload(asset, kind)
        except TypeError as error:
            raise StalledError(str(error)) from error

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        asset = self.asset(id)
        return None if asset is None else self.registry.addon(asset, name, kind)

    def output(self, id: AssetId, path: str) -> Any:
        if id not in self._assets:
            raise StalledError(f"incarnation {self._incarnation} has no asset {id}")
        self.output_reads.append((id, path))
        try:
            return copy.deepcopy(value_at(self.outputs.get(id, {}), path))
        except NoSuchValueError:
            raise WaitingError(f"output `{path}` of {id} is not known yet", until=0.0) from None


class FixedSecrets:
    """`lehr.sdk.secrets.Secrets` over fixed values.

    Attributes:
        values: text by reference (`env:PASSWORD`); others do not exist.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)

    async def read(self, secret: Secret) -> SecretValue:
        if secret.secret not in self.values:
            raise StalledError(f"there is no secret {secret.secret}")
        return SecretValue(self.values[secret.secret].encode())


class FixedPush:
    """A `lehr.sdk.plugin.Push`.

    Attributes:
        operation: its record.
        superseded: set it to notify the plugin that newer content has overtaken the push.
        messages: the plugin's reports of its progress.
    """

    def __init__(self, operation: Operation, *, superseded: bool = False) -> None:
        self.operation = operation
        self.superseded = superseded
        self.messages: list[str] = []

    def progress(self, message: str) -> None:
        self.messages.append(message)


def target_of(asset: Asset, goal: Goal = Goal.PRESENT, *, incarnation: int = 1) -> Target:
    """A plugin's input for `asset`, in the partition `test`."""
    return Target(Partition("test"), asset.id, asset.type, incarnation, goal)


def push_of(
    target: Target,
    id: str = "operation-1",
    *,
    superseded: bool = False,
    diff: Diff = NO_DIFF,
    epoch: int = 1,
) -> FixedPush:
    """A push of `target` under way as operation `id`.

    Args:
        diff: the one it was admitted with, and approved if necessary.
        epoch: of the lease under which it was admitted.
    """
    operation = Operation(
        id=id,
        partition=target.partition,
        asset=target.id,
        type=target.type,
        goal=target.goal,
        content=target.incarnation,
        governing=target.incarnation,
        content_digest=digest(target),
        diff_digest=diff.digest(),
        epoch=epoch,
        started_at=0.0,
    )
    return FixedPush(operation, superseded=superseded)

"""The request that a controller's function receives: one asset and its intended state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.client.controller import Controller
from lehr.client.informer import SharedInformer
from lehr.model.asset import Asset, AssetId
from lehr.sdk.watch import Watchable

T = TypeVar("T")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One asset to reconcile. The request does not say what has changed, or whether anything has.

    Attributes:
        id: of the asset.
        asset: as it is intended now; None if intent does not have it (any more). That alone does not ask for
            removal: the addon `lehr.Turndown` does, as can a field of the payload.
        intent: all assets that the controller watches.
        clock: to read the time and to sleep, so that a test can simulate hours.
    """

    id: AssetId
    asset: Asset | None
    intent: SharedInformer
    clock: Clock

    def payload(self, kind: type[T]) -> T:
        """The payload as `kind`: a `msgspec.Struct` with the fields of the type, or `dict`.

        Raises:
            LehrError: intent does not have the asset, or its payload is not a `kind`.
        """
        if self.asset is None:
            raise LehrError(f"{self.id} has no payload", code="CLI166", why="intent does not have it")
        payload = self.asset.document()["payload"]
        try:
            return msgspec.convert(payload, kind)
        except msgspec.ValidationError as error:
            raise LehrError(
                f"the payload of {self.id} is no {kind.__name__}",
                code="CLI167",
                why=str(error),
                fix=f"give {kind.__name__} the fields that `lehr explain {self.asset.type}` tells",
            ) from error


Reconciler = Callable[[Request], Awaitable[float | None]]
"""Brings production to the requested state. Returns the seconds until its next call, even if nothing changes,
or None. When it raises, it is called again, after growing delays: it must continue from a half-done state. It
is called for several assets concurrently, but for each asset once at a time."""


def controller_of(
    reconciler: Reconciler, watchable: Watchable, clock: Clock, chance: Chance, *, workers: int = 4
) -> Controller:
    """A controller that calls `reconciler` for every asset of `watchable`; `run` it."""
    intent = SharedInformer(watchable, clock, chance)

    async def reconcile(id: AssetId) -> float | None:
        return await reconciler(Request(id=id, asset=intent.get(id), intent=intent, clock=clock))

    return Controller(intent, reconcile, clock, chance, workers=workers)

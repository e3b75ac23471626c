"""Holds pushes back while as many run as their provider allows at once.

A push that waited in the host would take the place of another provider's, and start when checks may no longer
allow it. So admission counts instead.
"""

from __future__ import annotations

import zlib

from lehr.model.asset import AssetId
from lehr.model.decision import Reservation, Verdict
from lehr.model.provider import PROVIDED_BY, PROVIDER, ProvidedBy, Provider
from lehr.model.reason import Reason
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

_SHORTEST_PAUSE = 3.0
_SPREAD_SECONDS = 4.0


class ProviderCheck(CheckPlugin):
    """Waits while the pushes of a `lehr.Provider` use up its `concurrency`."""

    name = "provider"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        provided = read.addon(request.asset, PROVIDED_BY, ProvidedBy)
        provider = None if provided is None else read.asset(AssetId(provided.provider))
        if provider is None or provider.type != PROVIDER:  # which the comparison has reported
            return []
        most = read.payload(provider, Provider).concurrency
        if most is None:
            return []
        key = f"{self.name}/{provider.id}"
        reservation = Reservation(key, most)
        used, _ends = read.usage(reservation)  # when a push will end is not known
        if used < most:
            return [Verdict(key, allow=True, reservations=(reservation,))]
        pushes = "1 push" if most == 1 else f"{most} pushes"
        return [
            Verdict(
                key,
                allow=False,
                reason=Reason.PROVIDER_BUSY,
                message=f"the provider {provider.id} allows {pushes} at the same time",
                unblock="wait until one of its pushes has ended",
                until=request.now + _pause(request.asset.id),
            )
        ]


def _pause(id: AssetId) -> float:
    """Seconds until an asset asks again: not all at the same moment."""
    return _SHORTEST_PAUSE + _SPREAD_SECONDS * (zlib.crc32(id.encode()) % 1000) / 1000

"""A limit that is held until a push has ended, and that admission alone counts."""

from __future__ import annotations

from lehr.model.decision import Reservation, Verdict
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

CAPACITY = 3
"""Pushes that may be under way at once, or whose outcome is unknown."""

HELD = Reservation("capacity/all", CAPACITY)


class Capacity(CheckPlugin):
    """Proposes a share for every push."""

    name = "capacity"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return [Verdict(self.name, allow=True, reservations=(HELD,))]

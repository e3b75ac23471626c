"""Units of a rollout: assets that are updated together."""

from __future__ import annotations

import math
import re
from typing import Annotated

import msgspec

_ABOVE_ZERO = r"^(0*[1-9][0-9]*(\.[0-9]+)?|0+\.0*[1-9][0-9]*)%$"

Amount = Annotated[int, msgspec.Meta(ge=1)] | Annotated[str, msgspec.Meta(pattern=_ABOVE_ZERO, max_length=12)]
"""A number of units, or a share of them, such as `10%`."""

MOST_SECONDS = 1e11
"""More than any time that is meant; the sum of two is still a number."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]

_PERCENT = re.compile(r"([0-9.]+)%")


class Unit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A unit, and how far it is.

    Attributes:
        labels: waves choose units by these.
        updated_at: since when it has the new content, in seconds since the epoch; None if it does not.
        validated_at: since when that is known to be good.
        exposure_seconds: how long it has been good so far. Time without a look does not count.
        held: why it cannot be pushed now, such as a pin; empty if it can.
        new: it has no content yet, so nothing of it runs.
    """

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    labels: dict[str, str] = {}
    updated_at: Seconds | None = None
    validated_at: Seconds | None = None
    exposure_seconds: Seconds = 0.0
    held: str = ""
    new: bool = False

    @property
    def updated(self) -> bool:
        return self.updated_at is not None

    @property
    def validated(self) -> bool:
        return self.validated_at is not None


def count_of(amount: Amount | None, total: int) -> int:
    """`amount` of `total` units: of a share, the next whole number, so at least one. All for None."""
    if amount is None:
        return total
    if isinstance(amount, int):
        return min(amount, total)
    found = _PERCENT.fullmatch(amount)
    assert found is not None, f"{amount!r} is not a share"
    return min(total, math.ceil(total * float(found[1]) / 100))

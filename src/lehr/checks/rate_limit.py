"""Rate limit: a number of pushes per period, counted by group. Rollbacks pass, and are not counted.

The check proposes a reservation; admission counts and grants it in its transaction, so that two assets
that both see capacity left cannot both use it.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import Annotated, Any

import msgspec

from lehr.base.digest import canonical
from lehr.base.pointers import parts_of
from lehr.checks.durations import seconds_in, shown
from lehr.checks.governing_assets import Governing
from lehr.model.asset import Asset, AssetId
from lehr.model.decision import Reservation, Verdict
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

_TERM = re.compile(r"type|id|label:.+|(/([^~/]|~[01])*)+")


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Start at most this many pushes of the selected assets in any period of this length.

    Rollbacks are neither delayed nor counted.

    Attributes:
        select: which assets.
        pushes: how many, at least 1.
        per: how long: seconds, or text such as `10m`, `1h30m`, `1d`.
        group_by: count separately for each value of these: `type`, `id`, `label:KEY`, or a JSON
            pointer into the asset (`/addons/lehr.Owner/team`, `/payload/path`). Assets without a
            value form a separate group. Empty: one count for all.
    """

    select: Selector
    pushes: Annotated[int, msgspec.Meta(ge=1)]
    per: float | str
    group_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.window()
        for term in self.group_by:
            if not _TERM.fullmatch(term):
                raise ValueError(
                    f"unknown group_by {term!r}: use type, id, label:KEY, or a JSON pointer such as "
                    "/addons/lehr.Owner/team"
                )

    def window(self) -> float:
        """`per` in seconds.

        Raises:
            ValueError: it cannot be parsed, or is not positive.
        """
        return seconds_in("per", self.per)


RATE_LIMIT_TYPE = AssetType("lehr.RateLimit", RateLimit, governs=True)


class RateLimitCheck(CheckPlugin):
    """Waits while a `lehr.RateLimit` that selects the asset is used up."""

    name = "rate"

    def __init__(self) -> None:
        self._limits = Governing(RATE_LIMIT_TYPE, RateLimit, lambda payload: payload)

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return [
            _verdict(asset.id, limit, request, read) for asset, limit in self._limits.selecting(request, read)
        ]


def _verdict(id: AssetId, limit: RateLimit, request: CheckRequest, read: CheckReader) -> Verdict:
    key = f"{RateLimitCheck.name}/{id}"
    if request.purpose is Purpose.ROLLBACK:
        # The newer content may be what is broken.
        return Verdict(key, allow=True, message=f"{id} does not limit rollbacks")
    group = _group(request.asset, limit.group_by)
    reservation = Reservation(f"{key}?{group}" if group else key, limit.pushes, limit.window())
    used, frees_at = read.usage(reservation)
    if used < limit.pushes:
        return Verdict(key, allow=True, reservations=(reservation,))
    among = f" for {group}" if group else ""
    pushes = "1 push" if limit.pushes == 1 else f"{limit.pushes} pushes"
    return Verdict(
        key,
        allow=False,
        reason=Reason.RATE_LIMITED,
        # No running numbers: a turn that waits again must report the same message.
        message=f"{id} allows {pushes} per {shown(limit.per)}{among}; the limit is used up",
        unblock="wait until the oldest push no longer counts",
        until=frees_at,
    )


def _group(asset: Asset, group_by: tuple[str, ...]) -> str:
    """The group of `asset` as a URL's query: quoting keeps any two groups apart."""
    if not group_by:
        return ""
    document = asset.document()
    pairs = [(term.removeprefix("label:"), _value(document, term)) for term in group_by]
    return urllib.parse.urlencode(pairs, safe="/:@")


def _value(document: dict[str, Any], term: str) -> str:
    found: Any = document
    for part in _path(term):
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            found = None
    if found is None:
        return ""
    return found if isinstance(found, str) else canonical(found).decode()


def _path(term: str) -> list[str]:
    if term.startswith("label:"):
        return ["addons", "lehr.Labels", "labels", term.removeprefix("label:")]
    if term.startswith("/"):
        return list(parts_of(term))
    return [term]

"""Claims around pushes: taken before an asset is pushed, and given up when it is out of Lehr's care."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from lehr.base.errors import LehrError
from lehr.model.asset import AssetKey
from lehr.sdk.claims import Claims
from lehr.store.writes import Refused

log = structlog.get_logger()

CLAIMED_ELSEWHERE = "ClaimedElsewhere"
PROTECTED_PATH = "ProtectedPath"


async def take_before_push(claims: Claims, key: AssetKey, claimed: Sequence[str]) -> Refused | None:
    """Take what a push is about to change; or why it must not: it is another partition's, or protected.

    Publication has taken it already, as a rule. But where a path leads may have changed since, older content
    may be pinned, and the register may have been lost.

    Raises:
        LehrError: the register cannot be used.
    """
    if not claimed:
        return None
    conflicts = await claims.take(key.partition, {key.id: claimed}, only=False)
    if not conflicts:
        return None
    first, holder = conflicts[0], conflicts[0].holder
    if first.protected:
        return Refused(PROTECTED_PATH, f"{first.what} is in {first.protected}, where no asset may write")
    message = (
        f"{first.what} belongs to `{holder.asset}` of partition {holder.partition},"
        f" whose state is in {holder.state}"
    )
    return Refused(CLAIMED_ELSEWHERE, message)


async def give_up(claims: Claims, key: AssetKey) -> None:
    """Let other partitions have what an asset held. A failure does not keep the turn from its end."""
    try:
        await claims.release(key.partition, (key.id,))
    except LehrError as error:
        log.warning("claims are not given up", asset=key.id, error=str(error))

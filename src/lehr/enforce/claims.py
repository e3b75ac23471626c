"""Claims around pushes: taken before an asset is pushed, released when Lehr no longer manages it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.enforce.lookups import Lookups
from lehr.enforce.slot import Slot
from lehr.model.addons import TURNDOWN
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.reason import Reason
from lehr.model.types import addon_names
from lehr.model.writes import Refused
from lehr.sdk.claims import Claims, Conflict
from lehr.sdk.runtime import Runtime

log = Log()


class PushRefusal(NamedTuple):
    """Why a push must not begin, and the asset whose settling may change that."""

    refused: Refused
    wait_for: tuple[AssetId, ...] = ()


async def take_before_push(
    claims: Claims, key: AssetKey, claimed: Sequence[str], still_holds: Callable[[Conflict], Awaitable[bool]]
) -> PushRefusal | None:
    """Claim what a push is about to change, or return why it must not begin: held elsewhere, or protected.

    Publication has taken it already, as a rule. But where a path leads may have changed since, older content
    may be pinned, and the register may have been lost.

    Args:
        still_holds: whether another asset of ours, the holder by the register, still is.

    Raises:
        LehrError: the register cannot be used.
    """
    if not claimed:
        return None
    conflicts = await claims.take(key.partition, {key.id: claimed}, only=False)
    first = await _first_that_counts(conflicts, still_holds)
    if conflicts and first is None:
        over = {conflict.holder.asset for conflict in conflicts}
        conflicts = await claims.take(key.partition, {key.id: claimed}, only=False, over=over)
        first = await _first_that_counts(conflicts, still_holds)
    return None if first is None else _refusal(first)


async def _first_that_counts(
    conflicts: Sequence[Conflict], still_holds: Callable[[Conflict], Awaitable[bool]]
) -> Conflict | None:
    for conflict in conflicts:
        if conflict.protected or not conflict.holder.ours or await still_holds(conflict):
            return conflict
    return None


def _refusal(first: Conflict) -> PushRefusal:
    holder = first.holder
    if first.protected:
        message = f"{first.what} is in {first.protected}, where no asset may write"
        return PushRefusal(Refused(Reason.PROTECTED_PATH, message))
    if holder.ours:
        message = f"{first.what} still belongs to `{holder.asset}`"
        return PushRefusal(Refused(Reason.CLAIMED_HERE, message), (holder.asset,))
    message = (
        f"{first.what} belongs to `{holder.asset}` of partition {holder.partition},"
        f" whose state is in {holder.state}"
    )
    return PushRefusal(Refused(Reason.CLAIMED_ELSEWHERE, message))


class ClaimReleaser:
    """Releases the claims of assets that have left: immediately, or once the register is available again.

    Args:
        gone: whether an asset is still out of production or care. It is asked right before the
            register is: an asset published after that claims again, and keeps its claims.
    """

    def __init__(
        self, claims: Claims, partition: Partition, gone: Callable[[AssetId], Awaitable[bool]]
    ) -> None:
        self._claims = claims
        self._partition = partition
        self._gone = gone
        self._owed: dict[AssetId, None] = {}
        self._may_hold_more = True

    async def release(self, id: AssetId) -> None:
        """Release what `id` held. After a failure, `settle` repeats it."""
        self._owed[id] = None
        await self.settle()

    async def settle(self) -> None:
        """Release what could not be released before, and, the first time, what a previous process left."""
        try:
            if self._may_hold_more:
                self._owed |= dict.fromkeys(sorted(await self._claims.assets(self._partition)))
                self._may_hold_more = False
            while owed := list(self._owed):
                gone = [id for id in owed if await self._gone(id)]
                if gone:
                    await self._claims.release(self._partition, gone)
                for id in owed:
                    self._owed.pop(id, None)
        except LehrError as error:
            log.warning("claims could not be released; retrying", error=str(error))


class SlotClaims:
    """The claims of enforced assets. Does nothing where the host has no register."""

    def __init__(
        self,
        claims: Claims | None,
        runtime: Runtime,
        lookups: Lookups,
        slots: Mapping[AssetId, Slot],
    ) -> None:
        """`slots` are the Enforcer's own, looked at as they are."""
        self._claims = claims
        self._runtime = runtime
        self._lookups = lookups
        self._slots = slots
        self._releaser = None if claims is None else ClaimReleaser(claims, runtime.partition, self._is_gone)

    async def take(self, slot: Slot) -> PushRefusal | None:
        """Claim what the push of a slot changes; or return why it must not begin.

        Raises:
            LehrError: the register cannot be used.
        """
        turn = slot.state.turn
        if self._claims is None or turn is None or turn.view.asset is None:
            return None
        claimed = self._runtime.registry.claims(turn.view.asset)
        return await take_before_push(self._claims, slot.key, claimed, self._still_holds)

    async def release(self, id: AssetId) -> None:
        """Release what an asset held that has left."""
        if self._releaser is not None:
            await self._releaser.release(id)

    async def settle(self) -> None:
        """Release what could not be released before, but only once all running turndowns are known."""
        if self._releaser is not None:
            await self._releaser.settle()

    async def _still_holds(self, conflict: Conflict) -> bool:
        """Whether the asset of ours that holds a claim is, or will be, in production with it."""
        return await self._lookups.run(partial(self._intends, conflict))

    def _intends(self, conflict: Conflict) -> bool:
        slot = self._slots.get(conflict.holder.asset)
        if slot is None or slot.departed:
            return slot is not None
        last = self._lookups.last(slot.key)
        return last is not None and conflict.claim in self._runtime.registry.claims(last[0])

    async def _is_gone(self, id: AssetId) -> bool:
        """Whether an asset is out of production or of our care, and intent as it is now leaves it so."""
        return await self._lookups.run(partial(self._has_gone, id))

    def _has_gone(self, id: AssetId) -> bool:
        slot = self._slots.get(id)
        if slot is not None and not slot.state.left:
            return False
        if self._lookups.head(self._runtime.partition, id) is None:
            return True
        last = self._lookups.last(AssetKey(self._runtime.partition, id))
        return slot is not None and last is not None and TURNDOWN in addon_names(last[0])

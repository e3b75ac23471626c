"""The newest incarnation, controls and releases in force, and the assets that their changes wake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.base.pauses import in_parts
from lehr.enforce.committer import Committer
from lehr.enforce.governance import Governance, load, load_releases
from lehr.enforce.intent_follower import Heads
from lehr.enforce.lookups import Lookups, selected
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.recovery import Recovery, recover, unfinished_pushes
from lehr.enforce.slot import ADMITTING, Slot
from lehr.enforce.state import State
from lehr.enforce.turns import Turns
from lehr.enforce.wakeups import Wakeups
from lehr.model.asset import AssetId, AssetKey
from lehr.model.declared import TYPE, declared_type
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.pinning import pin
from lehr.model.release import NO_RELEASES, Released
from lehr.model.selector import Selector
from lehr.model.writes import Finish
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Head

log = Log()

T = TypeVar("T")

_MOST_SELECTORS = 16
"""Of more selectors, all assets are woken: to match each of them with every asset takes longer."""

_CONTROLS_CHANGED = "controls were set or lifted"


async def as_of_newest(
    newest: Callable[[], Awaitable[Incarnation]], read: Callable[[Incarnation], Awaitable[T]]
) -> tuple[Incarnation, T]:
    """The newest incarnation, and what `read` finds in it, with nothing published in between.

    Otherwise an asset's newest digest could meet an older incarnation, whose content would be admitted.
    """
    current = await newest()
    while True:
        found = await read(current)
        before, current = current, await newest()
        if current == before:
            return current, found


class InForce:
    """Keeps the slots of a partition, and the governance of their turns, as what is in force demands.

    One change is taken in at a time: publications, controls and releases are read one after the other.
    """

    def __init__(
        self,
        runtime: Runtime,
        committer: Committer,
        lookups: Lookups,
        neighbours: Neighbours,
        wakeups: Wakeups,
        turns: Turns,
        add: Callable[[AssetId, str, Digest | None], Slot],
        policies_in_force: Callable[[], None],
    ) -> None:
        """Keep the slots of `wakeups` and the governance of `turns`.

        Args:
            add: starts to enforce one more asset.
            policies_in_force: called whenever rollout policies come into force, or stay in force.
        """
        self._runtime = runtime
        self._committer = committer
        self._lookups = lookups
        self._neighbours = neighbours
        self._wakeups = wakeups
        self._turns = turns
        self._add = add
        self._policies_in_force = policies_in_force
        self._changing = asyncio.Lock()

    # --- the newest incarnation --------------------------------------------------------

    async def listed(self) -> int:
        """An incarnation is in force, and its changes are not known. Returns its sequence."""
        async with self._changing:
            if self._turns.governance is None:
                return await self._take_over()
            runtime = self._runtime
            heads: dict[AssetId, Head | None] = {}
            gone = dict.fromkeys(self._wakeups.slots)
            newest, listed = await as_of_newest(self._newest, lambda _: runtime.reading.run(self._heads))
            async for head in in_parts(listed, runtime.clock):
                gone.pop(head.id, None)
                slot = self._wakeups.slots.get(head.id)
                if slot is None or slot.digest != head.digest:
                    heads[head.id] = head
            self._lookups.advance(0, newest.sequence, ())
            await self._apply(newest, heads | gone)
            return newest.sequence

    async def _take_over(self) -> int:
        """Continue from the state that the previous process left."""
        runtime, store = self._runtime, self._runtime.store
        now = runtime.clock.now()

        async def read(newest: Incarnation) -> tuple[Governance, Recovery]:
            governance = await self._load(newest)  # its types are known from here on
            return governance, await runtime.reading.run(
                recover, store.intent, store.records, runtime.registry, self._runtime.partition
            )

        newest, (governance, recovered) = await as_of_newest(self._newest, read)
        self._lookups.advance(0, newest.sequence, ())
        # Read everything before changing anything: after a failure, all of it is read again.
        self._turns.governance = governance
        self._neighbours.continue_from(recovered)
        async for item in in_parts(recovered.assets, runtime.clock):
            slot = self._add(item.id, item.type, item.digest)
            slot.continue_from(item.state, item.successor, item.damage)
            if item.damage is not None:
                log.error("an asset cannot be enforced", asset=item.id, error=str(item.damage))
        unknown = Outcome(Result.UNKNOWN, "the control plane stopped during the push")
        for operation in unfinished_pushes(recovered.assets):
            finish = Finish(operation.partition, operation.id, unknown, now)
            self._turns.post(self._wakeups.slots[operation.asset], [finish])
        await self._wakeups.sweep("start")
        if governance.policies:
            self._policies_in_force()
        return newest.sequence

    async def _load(self, newest: Incarnation) -> Governance:
        """Governance of `newest`, whose types are known from now on: later reads use these types."""
        runtime, before = self._runtime, self._turns.governance
        known = NO_RELEASES if before is None else before.releases
        governance = await runtime.reading.run(
            load, runtime.store, runtime.registry, newest, runtime.clock.now(), known
        )
        runtime.registry.declare(map(declared_type, governance.of_type(TYPE)))
        return governance

    def _heads(self) -> list[Head]:
        return list(self._runtime.store.intent.heads(self._runtime.partition))

    async def _newest(self) -> Incarnation:
        newest = await self._runtime.reading.run(self._runtime.store.intent.newest, self._runtime.partition)
        assert newest is not None, "only a partition with an incarnation is followed"
        return newest

    async def published(self, incarnation: Incarnation, heads: Heads) -> None:
        """`incarnation` is in force, and differs from the one before in `heads`."""
        async with self._changing:
            self._lookups.advance(incarnation.sequence - 1, incarnation.sequence, heads)
            await self._apply(incarnation, heads)

    async def _apply(self, incarnation: Incarnation, heads: Heads) -> None:
        before = self._turns.governance
        assert before is not None
        slots = self._wakeups.slots
        # Read everything before changing anything: after a failure, the same changes are read again.
        same = before.digest == incarnation.governance
        governance = replace(before, incarnation=incarnation) if same else await self._load(incarnation)
        enforced = {
            id: head
            for id, head in heads.items()
            if head is None or id in slots or not self._runtime.registry.inert(head.type)
        }
        new = [id for id, head in enforced.items() if head is not None and id not in slots]
        remembered = await self._runtime.reading.run(self._remembered, new) if new else {}
        overtaken = await self._lookups.run(
            lambda: [id for id in enforced if id in slots and self._overtakes(slots[id])]
        )
        # From here on, nothing waits until every slot knows of the incarnation.
        self._govern_by(governance, before)
        arriving = [id for id in new if id not in slots]
        for id in arriving:
            if (arrived := enforced[id]) is not None:
                self._add(id, arrived.type, arrived.digest).state = remembered[id]
        for id in overtaken:
            if id in slots:
                slots[id].superseded()
        for id, head in enforced.items():
            if (slot := slots.get(id)) is not None:
                slot.update_head(head)
        if governance.controls_version != before.controls_version:
            await self._wakeups.sweep(_CONTROLS_CHANGED)
        if not same:
            await self._wake_in_parts(list(self._wakeups.unsettled), "checks, limits or freezes have changed")
            await self._wake_held_by_policies(before, governance)
        await self._wake_in_parts(enforced, f"published in {incarnation.name}")
        async for id in in_parts(heads, self._runtime.clock):
            self._wakeups.wake_readers(id, f"{id}, which it reads, has changed")
        self._wakeups.changed.set()

    async def _wake_in_parts(self, ids: Iterable[AssetId], cause: str) -> None:
        async for id in in_parts(ids, self._runtime.clock):
            self._wakeups.wake(id, cause)

    async def _wake_held_by_policies(self, before: Governance, now: Governance) -> None:
        """When policies change, wake each asset that only a policy held: no release will."""
        if now.policies.items == before.policies.items:
            return
        async for slot in in_parts(list(self._wakeups.slots.values()), self._runtime.clock):
            if slot.held_at and not now.releases.knows(slot.key.id):
                self._wakeups.wake_slot(slot, "rollout policies have changed", urgent=True)

    def _remembered(self, ids: list[AssetId]) -> dict[AssetId, State]:
        """The states of assets that come back, as they were left."""
        records = self._runtime.store.records
        keys = {id: AssetKey(self._runtime.partition, id) for id in ids}
        return {
            id: State(ledger=records.ledger(key), handle=records.handle(key), outputs=records.outputs_of(key))
            for id, key in keys.items()
        }

    def _overtakes(self, slot: Slot) -> bool:
        """Whether the latest publication makes a push that runs, or is about to begin, out of date.

        Not where a pin or a release decides: only what it allows can be newer content for the asset.
        """
        return (slot.push is not None or slot.activity is ADMITTING) and not self._held(slot)

    def _held(self, slot: Slot) -> bool:
        last = self._lookups.last_known(slot.key, slot.type)
        if last is None or self._turns.governance is None:
            return False
        holds = self._turns.governance.holds(last[0], self._runtime.clock.now())
        return holds.released is not None or pin(last[0], last[1], holds).pin is not None

    # --- controls and releases -----------------------------------------------------------

    async def look_at_controls(self) -> None:
        runtime = self._runtime
        version, _controls = await runtime.reading.run(
            runtime.store.records.controls, self._runtime.partition, runtime.clock.now()
        )
        if self._turns.governance is not None and version != self._turns.governance.controls_version:
            await self.controls_changed(Selector(all=True), _CONTROLS_CHANGED)
        await self.releases_changed()

    async def releases_changed(self) -> None:
        """Assets may have been released, or releases withdrawn.

        Raises:
            LehrError: the store cannot be read; it is read again within seconds.
        """
        async with self._changing:
            before, runtime = self._turns.governance, self._runtime
            if before is None:
                return
            known = before.releases
            releases = await runtime.reading.run(load_releases, runtime.store, self._runtime.partition, known)
            if releases is not known:
                self._govern_by(replace(before, releases=releases), before)

    def _govern_by(self, governance: Governance, before: Governance) -> None:
        """Judge turns by `governance` from now on, and wake the assets for which another release counts.

        Whatever it was read for, it has the newest releases. A push of other content is out of date.
        """
        self._turns.governance = governance
        if governance.policies:
            self._policies_in_force()
        for id in governance.releases.changed_from(before.releases):
            if (slot := self._wakeups.slots.get(id)) is not None:
                if slot.push is None or not self._allows(governance.releases.of(id), slot.push.operation):
                    slot.superseded()
                self._wakeups.wake_slot(slot, "another release counts", urgent=True)

    def _allows(self, released: Released | None, operation: Operation) -> bool:
        """Whether a release is for the content of a push, in the same incarnation or in another one."""
        release = None if released is None else released.release
        if release is None or release.target is None:
            return False
        ids = release.asset, *release.reads
        return self._lookups.unchanged(ids, release.target, operation.content)

    async def controls_changed(self, selector: Selector, cause: str) -> None:
        """A control on the assets of `selector` was set or lifted."""
        async with self._changing:
            before = self._turns.governance
            if before is None:
                return
            try:
                governance = await self._load(before.incarnation)
                # Also of those whose own notification found a store that lagged behind.
                ids = await self._select_any([selector, *governance.selectors_changed_from(before)])
            except LehrError as error:
                # The control is stored all the same, and its version is looked for again until it is read.
                log.warning("the store cannot be read; retrying", error=str(error))
                return
            self._govern_by(governance, before)
            await self._wake_in_parts(ids, cause)

    async def lifted(self, id: AssetId) -> None:
        """A turn has lifted controls that select only this asset."""
        try:
            await self._committer.ask()  # with nothing to write: until everything before it is written
        except LehrError:
            return  # noticed later, by their version
        await self.controls_changed(Selector(ids=(id,)), "its restart is done")

    async def _select_any(self, selectors: Iterable[Selector]) -> Iterable[AssetId]:
        """Ids of the enforced assets that at least one of these selects."""
        different = {str(selector): selector for selector in selectors}
        if len(different) > _MOST_SELECTORS:
            return list(self._wakeups.slots)
        found = [await self.select(selector) for selector in different.values()]
        return dict.fromkeys(id for ids in found for id in ids)

    async def select(self, selector: Selector) -> list[AssetId]:
        """Ids of the enforced assets that `selector` selects.

        Raises:
            LehrError: an asset cannot be read.
        """
        slots = self._wakeups.slots
        if selector.all:
            return list(slots)
        named = selector.exact_ids or [
            id async for id in in_parts(list(slots), self._runtime.clock) if selector.may_name(id)
        ]
        known = [(slot.key, slot.type) for slot in map(slots.get, named) if slot is not None]
        if not selector.types and not selector.labels:
            return [key.id for key, _type in known]
        found = await self._runtime.reading.run(selected, self._runtime.store.intent, known, selector)
        return [id for id in found if id in slots]

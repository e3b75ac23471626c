"""Other assets, as a turn sees them: how they differ, which refer to it, which need it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.claims import PushRefusal
from lehr.enforce.governance import AsOf
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lane import Lane
from lehr.enforce.lookups import Lookups
from lehr.enforce.output_reads import Observed
from lehr.enforce.recovery import Recovery
from lehr.enforce.slot import Slot
from lehr.enforce.state import Diffed, DiffFailed, State
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, Target
from lehr.model.outputs import NO_OUTPUTS
from lehr.model.pinning import NO_HOLDS, Holds, applied_content, pin
from lehr.model.reason import Reason
from lehr.model.types import Mention, addon_names
from lehr.model.writes import Admit, Refused
from lehr.sdk.check import Referrer
from lehr.sdk.runtime import Runtime

_UNKNOWN = Effects(capacity=None)
"""Unknown effects block in both directions."""

UNDER_WAY = Diff((Change("push", "ended", "under way"),), _UNKNOWN)
"""How an asset differs while a push of it is, or may be, under way."""


class Look(NamedTuple):
    """Another asset, as a turn has found it.

    Attributes:
        newest: its digest in the incarnation that governs.
        rests_on: assets whose pins and releases decide what was found: it reads their content.
    """

    diff: Diff
    newest: Digest | None
    rests_on: tuple[AssetId, ...] = ()


HoldsOver = Callable[[Asset], Holds]
"""The controls and the release that may keep an asset, as intent last had it, from newer content."""


def needs(mentions: Iterable[Mention], id: AssetId) -> bool:
    """Whether an asset that makes these references needs asset `id`, and does not merely follow it."""
    return any(mention.target == id and not mention.follows for mention in mentions)


def no_holds(asset: Asset) -> Holds:
    """`HoldsOver` for those who ignore pins and releases."""
    return NO_HOLDS


class Neighbours:
    """The assets of the partition, as the loops see them.

    Attributes:
        registry: types, to decode payloads and addons with.
        lookups: reads of the store. Methods that are not coroutines raise `NeedError` for data that is not in
            memory: they are for `Lookups.run`.
        unwatched: handles and outputs of assets that intent has let go, for those held at content that
            depends on them or reads them.
        orphans: of these, the ones that stay in production, because no turndown has removed them.
    """

    def __init__(
        self,
        runtime: Runtime,
        lookups: Lookups,
        slots: Mapping[AssetId, Slot],
        lanes: Mapping[str, Lane[Slot]],
    ) -> None:
        """`slots` and `lanes` (by type) are the Enforcer's own, looked at as they are."""
        self._partition = runtime.partition
        self.registry = runtime.registry
        self.lookups = lookups
        self._slots = slots
        self._lanes = lanes
        self.unwatched: dict[AssetId, State] = {}
        self.orphans: set[AssetId] = set()

    def continue_from(self, recovery: Recovery) -> None:
        """Know what the previous process knew of the assets that are no longer enforced."""
        self.unwatched.update(recovery.unwatched)
        self.orphans |= recovery.orphans

    def let_go(self, slot: Slot) -> None:
        """The asset of `slot` is no longer enforced."""
        id, ledger = slot.key.id, slot.state.ledger
        left = State(handle=slot.state.handle, outputs=slot.state.outputs)
        if left == State():
            self.unwatched.pop(id, None)
        else:
            self.unwatched[id] = left
        if ledger is not None and ledger.goal is Goal.ABSENT:
            self.orphans.discard(id)
        else:
            self.orphans.add(id)

    def asset(self, id: AssetId, sequence: int) -> Asset | None:
        """An asset as `sequence` has it."""
        return self.lookups.asset(AssetKey(self._partition, id), sequence)

    def content_of(self, id: AssetId, governing: int, holds_over: HoldsOver) -> int:
        """The incarnation whose content an asset has, by its pin or release if any; 0 if it is gone."""
        newest = self.asset(id, governing)
        return 0 if newest is None else self._content_of(newest, governing, holds_over)

    def _content_of(self, newest: Asset, governing: int, holds_over: HoldsOver) -> int:
        holds = holds_over(newest)
        if holds == NO_HOLDS:
            return governing
        slot = self._slots.get(newest.id)
        applied = 0 if slot is None else applied_content(slot.state.ledger, newest)
        return pin(newest, governing, holds, applied=applied, same=self.lookups.same_content).content

    def awaits_release(self, id: AssetId, sequence: int, as_of: AsOf) -> bool:
        """Whether the release of an asset kept it, in its last turn, from the content of `sequence`."""
        slot = self._slots.get(id)
        if slot is None or not slot.held_at:
            return False
        newest = self.asset(id, as_of.sequence)
        if newest is None or as_of.holds(newest).released is None:
            return False
        return not self.lookups.same_content(id, slot.held_at, sequence)

    async def look(
        self, id: AssetId, sequence: int, as_of: AsOf, *, settled: bool = False, needed: bool = False
    ) -> Look | None:
        """Compare an asset of `sequence`, using its digest in the incarnation that governs.

        The turn took that for the newest incarnation, so admission finds out if a newer one exists.

        A push that is or may be under way, and a plugin that does not answer, count as differences
        with unknown effects. None if the incarnation has no such asset.

        Args:
            settled: do not ask the plugin where the last turn of the asset found this content in place.
            needed: by an asset that stays: where its turndown goes back, it is compared as present.
        """
        known = await self.lookups.run(partial(self._known, id, sequence, as_of, settled, needed))
        if known is None:
            return None
        found, newest = known
        if isinstance(found, Diff):
            slot = self._slots.get(id)
            return Look(found, newest, () if slot is None else tuple(slot.reads))
        lane = self._lanes.get(found.type)
        if lane is None:
            return Look(Diff((Change("plugin", "serving", None),), _UNKNOWN), newest)
        compared, read = await self.compare(lane, found, as_of)
        if isinstance(compared, DiffFailed):
            return Look(Diff((Change("observed", "known", compared.message),), _UNKNOWN), newest)
        own = () if found.goal is Goal.PRESENT else (id,)  # held at other content, it would come back
        return Look(compared.diff, newest, (*own, *read.others(id)))

    def _known(
        self, id: AssetId, sequence: int, as_of: AsOf, settled: bool, needed: bool
    ) -> tuple[Diff | Target, Digest | None] | None:
        """How the asset differs, if that is known without its plugin, and else what to compare."""
        asset, governing = self.asset(id, sequence), as_of.sequence
        if asset is None:
            return None
        newest_asset = self.asset(id, governing)
        newest = None if newest_asset is None else newest_asset.digest
        slot = self._slots.get(id)
        if slot is not None and slot.may_be_pushing:
            return UNDER_WAY, newest
        reached = self._reached(asset)
        turned_down = needed and slot is not None and reached is not Goal.PRESENT
        returns = turned_down and (self._stays(id, as_of) or bool(self.needing(id, governing)))
        if settled and not returns and (slot is None or self._is_in_place(slot, asset, sequence, as_of)):
            return NO_DIFF, newest
        goal = Goal.PRESENT if returns else reached
        target = Target(self._partition, id, asset.type, sequence, goal)
        state = self._remembered(id)
        return (target if state is None else state.identified(target)), newest

    def _stays(self, id: AssetId, as_of: AsOf) -> bool:
        """Whether no turndown of an asset is asked for: by its newest version, or by what it is held at."""
        newest = self.asset(id, as_of.sequence)
        if newest is None:
            return False
        own = self.asset(id, self._content_of(newest, as_of.sequence, as_of.holds))
        return own is not None and not all(TURNDOWN in addon_names(asset) for asset in (newest, own))

    def _remembered(self, id: AssetId) -> State | None:
        """The memory of an asset, whether or not intent still has it."""
        slot = self._slots.get(id)
        return self.unwatched.get(id) if slot is None else slot.state

    def _is_in_place(self, slot: Slot, asset: Asset, sequence: int, as_of: AsOf) -> bool:
        """Whether the last turn of `slot` left nothing to do, and was about `asset` as `sequence` has it."""
        ledger, read = slot.state.ledger, self.reader(asset.id, sequence, as_of)
        for id in slot.reads:
            read.asset(id)
        read.recall(slot.output_reads)
        return slot.settled and ledger is not None and ledger.content_digest == read.content_digest(asset)

    async def compare(
        self,
        lane: Lane[Slot],
        target: Target,
        as_of: AsOf,
        *,
        known: Asset | None = None,
        routine: bool = False,
        like: RecordingReader | None = None,
    ) -> tuple[Diffed | DiffFailed, RecordingReader]:
        """The findings of the plugin of `lane`, and what it read for them.

        Args:
            as_of: decides at which incarnation other assets are read.
            known: the asset of `target`, if it was looked up before.
            routine: as for `Lane.diff`.
            like: it reads outputs as this one has read them.
        """
        if known is None:
            asset, read = await self.lookups.run(partial(self.begun, target, as_of))
        else:
            asset, read = known, self._reader(known, target.incarnation, as_of)
        if like is not None:
            read.see_same(like)
        found = await lane.diff(target, asset, read, routine=routine)
        if not isinstance(found, Diffed) and asset is not None:
            found = replace(found, refers_to=tuple(self.referred(asset)))
        return found, read

    def begun(self, target: Target, as_of: AsOf) -> tuple[Asset | None, RecordingReader]:
        """The asset to compare or push, and its reader."""
        asset = self.asset(target.id, target.incarnation)
        return asset, self._reader(asset, target.incarnation, as_of)

    def reader(self, id: AssetId, sequence: int, as_of: AsOf) -> RecordingReader:
        """Reads for asset `id`, whose content is that of `sequence`.

        Invariant: I1. It reads each other asset as production has it, or is about to: at the content that
        the other's own pin or release allows, and without those that their turndown has removed. Assets
        without production belong to the content of `id` and are read at `sequence`; so are those that are
        gone from intent. `id` itself is there also after its removal.
        """
        return self._reader(self.asset(id, sequence), sequence, as_of)

    def _reader(self, asset: Asset | None, sequence: int, as_of: AsOf) -> RecordingReader:
        sequence_of = partial(self._read_at, sequence, as_of)
        read = RecordingReader(
            self.lookups,
            self.registry,
            self._partition,
            sequence,
            self._removed,
            sequence_of,
            self._observed,
        )
        if asset is not None:
            read.know(asset)
        return read

    def _read_at(self, sequence: int, as_of: AsOf, id: AssetId) -> int:
        """The incarnation at which an asset with content of `sequence` reads another one."""
        governing = as_of.sequence
        newest = self.asset(id, governing)
        if newest is None or self.registry.inert(newest.type):
            return sequence
        return self._content_of(newest, governing, as_of.holds) or sequence

    def _observed(self, asset: Asset) -> Observed:
        """The outputs of an asset now. Those of another asset that has, or had, its id do not count."""
        lane, state = self._lanes.get(asset.type), self._remembered(asset.id)
        names = NO_OUTPUTS if lane is None else lane.plugin.outputs.get(asset.type, NO_OUTPUTS)
        outputs = None if state is None else state.outputs
        known = outputs is not None and outputs.type == asset.type
        return Observed(names, outputs.values if outputs is not None and known else {})

    def was_removed(self, id: AssetId) -> bool:
        """Whether the turndown of an asset has removed it from production."""
        slot = self._slots.get(id)
        return slot is not None and slot.state.ledger is not None and slot.state.ledger.goal is Goal.ABSENT

    def _removed(self, asset: Asset) -> bool:
        return self._reached(asset) is Goal.ABSENT

    def _reached(self, asset: Asset) -> Goal:
        """How far the turndown that `asset` asks for has come; PRESENT without one."""
        if TURNDOWN not in addon_names(asset) or self.registry.inert(asset.type):
            return Goal.PRESENT
        slot = self._slots.get(asset.id)
        if slot is None:  # it has left: by its turndown, or later, when intent wanted it again and let it go
            return Goal.PRESENT if asset.id in self.orphans else Goal.ABSENT
        return Goal.PRESENT if slot.state.ledger is None else slot.state.ledger.goal

    def referrers(self, id: AssetId, sequence: int, holds_over: HoldsOver = no_holds) -> list[Referrer]:
        """Assets of incarnation `sequence` that refer, or once referred, to `id`, and have not left.

        Each is as its pin or release keeps it: it runs that, not its newest version.
        """
        found = []
        for newest in self._ever_referred(id, sequence):
            if not self.has_left(newest.id, sequence):
                key = AssetKey(self._partition, newest.id)
                content = self._content_of(newest, sequence, holds_over)
                asset = newest if content == sequence else self.lookups.asset(key, content) or newest
                mentions = tuple(item for item in self.registry.mentions(asset) if item.target == id)
                found.append(Referrer(asset, mentions))
        return found

    def removed_referrers(
        self, id: AssetId, sequence: int, known: Collection[AssetId] = ()
    ) -> dict[AssetId, Digest]:
        """Assets of incarnation `sequence` that once referred to `id` and have left, with their digests.

        A push may bring each of them back.

        Args:
            known: of those that have not left; others may be back by now, and are among the answer.
        """
        ever = self._ever_referred(id, sequence)
        return {
            asset.id: asset.digest
            for asset in ever
            if asset.id in self._slots and (self.has_left(asset.id, sequence) or asset.id not in known)
        }

    def _ever_referred(self, id: AssetId, sequence: int) -> list[Asset]:
        others = self.lookups.past_and_present_referrers(AssetKey(self._partition, id))
        found = [self.lookups.asset(AssetKey(self._partition, other), sequence) for other in others]
        return [asset for asset in found if asset is not None and asset.id != id]

    def referred(self, asset: Asset) -> list[AssetId]:
        """The other assets that `asset` refers to, each once."""
        targets = dict.fromkeys(mention.target for mention in self.registry.mentions(asset))
        return [id for id in targets if id != asset.id]

    def referred_by(self, read: RecordingReader, id: AssetId) -> list[AssetId]:
        """The other assets that asset `id` refers to, as `read` has it."""
        asset = read.asset(id)
        return [] if asset is None else self.referred(asset)

    def has_left(self, id: AssetId, sequence: int, asked: frozenset[AssetId] = frozenset()) -> bool:
        """True for an asset that is out of production and will stay so, or is out of Lehr's care.

        Args:
            asked: assets about which this is being found out already.
        """
        slot = self._slots.get(id)
        if slot is None:
            return True
        if slot.state.ledger is None or slot.state.ledger.goal is not Goal.ABSENT:
            return False
        if slot.state.operation is not None and slot.state.operation.goal is Goal.PRESENT:
            return False  # a push is bringing it back
        last = self.lookups.last(slot.key, sequence)
        if last is None or TURNDOWN not in addon_names(last[0]):
            return False
        # A removed asset comes back if one that has not left needs it.
        return not self.needing(id, sequence, asked | {id})

    def needing(self, id: AssetId, sequence: int, asked: frozenset[AssetId] = frozenset()) -> list[AssetId]:
        """Assets that still need this one, including those in turndown, until they are removed.

        Not those that merely follow it: they are pushed again once the asset has been removed.
        """
        found: list[AssetId] = []
        for other in self.lookups.past_and_present_referrers(AssetKey(self._partition, id)):
            if other == id or other in asked or self.has_left(other, sequence, asked):
                continue
            last = self.lookups.last(AssetKey(self._partition, other), sequence)
            mentions = self.registry.mentions(last[0]) if last else ()
            if needs(mentions, id):
                found.append(other)
        return found

    async def needed_again(self, admit: Admit) -> PushRefusal | None:
        """Why a turndown must not continue: what had left when the turn began is back, and needs the asset.

        Invariant: I4. Admission itself refuses only while a push that brings it back is under way.

        Raises:
            LehrError: it cannot be looked up.
        """
        operation, looked_at = admit.operation, admit.basis.looked_at
        back = [id for id, _digest in looked_at if operation.goal is not Goal.PRESENT and self._is_back(id)]
        if not back:
            return None
        find = partial(self._that_need, operation.asset, back, operation.governing)
        needing = await self.lookups.run(find)
        if not needing:
            return None
        why = f"turndown waits: referenced again by {', '.join(needing)}"
        return PushRefusal(Refused(Reason.STILL_REFERENCED, why), tuple(needing))

    def _is_back(self, id: AssetId) -> bool:
        """Whether an asset is in production, or a push is bringing it back."""
        slot = self._slots.get(id)
        operation = None if slot is None else slot.state.operation
        comes_back = operation is not None and operation.goal is Goal.PRESENT
        return slot is not None and (comes_back or not self.was_removed(id))

    def _that_need(self, id: AssetId, others: Iterable[AssetId], sequence: int) -> list[AssetId]:
        """Those of `others` that need an asset, as `sequence` has them."""
        assets = [asset for other in others if (asset := self.asset(other, sequence)) is not None]
        return [asset.id for asset in assets if needs(self.registry.mentions(asset), id)]

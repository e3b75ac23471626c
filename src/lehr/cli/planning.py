"""What the Enforcer would do, were a workspace published now: real diffs and checks, and no push.

This is one turn of each asset without its end. What differs from a real turn: checks are asked
once for all assets, so two that would use up the same limit may both be told that there is room.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from lehr.base.errors import LehrError, StalledError
from lehr.enforce.turndown import Circumstances, plan
from lehr.model.addons import TURNDOWN, Turndown
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, Target
from lehr.model.governance import OBSERVE_ONLY, ObserveOnly
from lehr.model.reason import Reason
from lehr.model.types import Registry
from lehr.sdk.check import CheckPlugin, CheckRequest, Referrer
from lehr.sdk.plugin import AssetPlugin, version_read
from lehr.sdk.store import Store

T = TypeVar("T")


class Fate(enum.StrEnum):
    """What would become of an asset."""

    AS_INTENDED = "as intended"
    PUSHED = "pushed"
    WAITS = "waits"
    APPROVAL = "needs approval"
    HELD = "held"
    NOT_KNOWN = "not known"


class Planned(msgspec.Struct, frozen=True):
    """What would be done about one asset.

    Attributes:
        diff: None when its plugin could not compare, or was not asked.
        why: one line for each thing that stands in the way.
    """

    id: AssetId
    type: str
    goal: Goal
    fate: Fate
    diff: Diff | None = None
    why: tuple[str, ...] = ()


class Circumstance(msgspec.Struct, frozen=True):
    """What a plan rests on beside the workspace.

    Attributes:
        store: what was published and done; None before anything was.
        sequence: of the newest incarnation; 0 for none. The workspace would become the next.
        now: wall-clock seconds.
    """

    partition: Partition
    registry: Registry
    store: Store | None
    sequence: int
    now: float

    def controls(self) -> Sequence[Control]:
        """Words of people that stand."""
        return () if self.store is None else self.store.records.controls(self.partition, self.now)[1]


class Planner:
    """Plans a whole workspace."""

    def __init__(
        self,
        assets: Mapping[AssetId, Asset],
        around: Circumstance,
        plugins: Sequence[AssetPlugin],
        checks: Sequence[CheckPlugin],
    ) -> None:
        self._assets = assets
        self._around = around
        self._plugins = {type: plugin for plugin in plugins for type in plugin.types}
        self._places = {plugin: asyncio.Semaphore(plugin.traits.turns) for plugin in plugins}
        self._checks = checks
        self._controls = around.controls()
        self._diffs: dict[AssetId, asyncio.Task[Diff]] = {}
        self._observed = [
            around.registry.payload(asset, ObserveOnly)
            for asset in assets.values()
            if asset.type == OBSERVE_ONLY
        ]

    async def plan(self) -> list[Planned]:
        """What would be done, by asset id. Assets without production are left out."""
        enforced = [a for _id, a in sorted(self._assets.items()) if not self._around.registry.inert(a.type)]
        return list(await asyncio.gather(*(self._plan(asset) for asset in enforced)))

    async def _plan(self, asset: Asset) -> Planned:
        goal, obstacle = self._goal(asset)
        if asset.type not in self._plugins:
            return Planned(asset.id, asset.type, goal, Fate.NOT_KNOWN, None, ("no plugin serves its type",))
        try:
            diff = await self.diff(asset)
        except LehrError as error:
            return Planned(asset.id, asset.type, goal, Fate.NOT_KNOWN, None, (str(error),))
        if diff.empty:
            fate = Fate.WAITS if obstacle else Fate.AS_INTENDED
            return Planned(asset.id, asset.type, goal, fate, diff, obstacle)
        held = tuple(self._holds(asset))
        if held:
            return Planned(asset.id, asset.type, goal, Fate.HELD, diff, held)
        if diff.effects.destructive and goal is Goal.PRESENT:
            why = ("carrying it out destroys what cannot be brought back",)
            return Planned(asset.id, asset.type, goal, Fate.APPROVAL, diff, why)
        waits = tuple(
            f"{verdict.check}: {verdict.message or verdict.reason}"
            for verdict in await self._verdicts(asset, goal, diff)
            if not verdict.allow
        )
        return Planned(asset.id, asset.type, goal, Fate.WAITS if waits else Fate.PUSHED, diff, waits)

    # --- diff ------------------------------------------------------------------

    async def diff(self, asset: Asset) -> Diff:
        """What the asset's plugin finds; asked once.

        Raises:
            LehrError: it cannot compare.
        """
        if asset.id not in self._diffs:
            self._diffs[asset.id] = asyncio.create_task(self._ask(asset))
        return await self._diffs[asset.id]

    async def _ask(self, asset: Asset) -> Diff:
        plugin = self._plugins.get(asset.type)
        if plugin is None:
            return NO_DIFF
        goal, _obstacle = self._goal(asset)
        around = self._around
        target = Target(around.partition, asset.id, asset.type, around.sequence + 1, goal)
        reader = WorkingTreeReader(self._assets, around.registry, around.sequence + 1, plugin.versions)
        try:
            async with self._places[plugin], asyncio.timeout(plugin.traits.diff_timeout):
                return await plugin.diff(target, reader)
        except TimeoutError as error:
            limit = plugin.traits.diff_timeout
            raise LehrError(f"looking at production took longer than {limit:g} s", code="CLI121") from error
        except LehrError:
            raise
        except Exception as error:
            raise LehrError(f"its plugin failed: {type(error).__name__}: {error}", code="CLI122") from error

    def _goal(self, asset: Asset) -> tuple[Goal, tuple[str, ...]]:
        """The goal of its next turn, and what keeps its turndown from going further."""
        around = self._around
        addon = around.registry.addon(asset, TURNDOWN, Turndown)
        if addon is None:
            return Goal.PRESENT, ()
        key = AssetKey(around.partition, asset.id)
        plugin = self._plugins.get(asset.type)
        since = None if around.store is None else around.store.intent.addon_since(key, TURNDOWN)
        found = Circumstances(
            around.now if since is None else since,
            frozenset() if plugin is None else plugin.traits.goals,
            self._referrers(asset.id),
            None if around.store is None else around.store.records.ledger(key),
        )
        course = plan(addon, found, around.now)
        return course.goal, () if course.obstacle is None else (course.obstacle[1],)

    def _referrers(self, id: AssetId) -> list[AssetId]:
        registry = self._around.registry
        return [
            asset.id
            for asset in self._assets.values()
            if asset.id != id
            and not self._has_left(asset.id)
            and any(mention.target == id for mention in registry.mentions(asset))
        ]

    def _has_left(self, id: AssetId) -> bool:
        store = self._around.store
        ledger = None if store is None else store.records.ledger(AssetKey(self._around.partition, id))
        return ledger is not None and ledger.goal is Goal.ABSENT

    # --- what stands in the way ---------------------------------------------------

    def _holds(self, asset: Asset) -> list[str]:
        kinds = (ControlKind.PAUSE, ControlKind.PIN)
        words = [
            f"{control.kind} by {control.actor}: {control.reason}"
            for control in self._controls
            if control.kind in kinds and control.selector.matches(asset)
        ]
        observed = [item.reason for item in self._observed if item.select.matches(asset)]
        return words + [f"observed only: {reason}" for reason in observed]

    async def _verdicts(self, asset: Asset, goal: Goal, diff: Diff) -> list[Verdict]:
        around = self._around
        target = Target(around.partition, asset.id, asset.type, around.sequence + 1, goal)
        request = CheckRequest(target, asset, diff, around.sequence + 1, around.now, asset)
        reader = _WorkingTreeCheckReader(self, asset.id, self._assets, around, self._controls)
        verdicts: list[Verdict] = []
        for check in self._checks:
            try:
                verdicts += await check.check(request, reader)
            except Exception as error:
                said = f"the check failed: {type(error).__name__}: {error}"
                verdicts.append(Verdict(check.name, allow=False, reason=Reason.CHECK_FAILED, message=said))
        return verdicts


class WorkingTreeReader:
    """`lehr.sdk.plugin.Reader` over assets in memory, for a plugin that understands these versions."""

    def __init__(
        self,
        assets: Mapping[AssetId, Asset],
        registry: Registry,
        incarnation: int,
        understands: Mapping[str, int],
    ) -> None:
        self._understands = understands
        self._assets = assets
        self._registry = registry
        self._incarnation = incarnation

    @property
    def incarnation(self) -> int:
        return self._incarnation

    def asset(self, id: AssetId) -> Asset | None:
        return self._assets.get(id)

    def payload(self, id: AssetId, kind: type[T]) -> T:
        asset = self._present(id)
        try:
            return self._registry.payload(asset, kind, version_read(self._understands, asset.type, kind))
        except TypeError as error:
            raise StalledError(str(error), code="CLI123") from error

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        return self._registry.addon(self._present(id), name, kind)

    def _present(self, id: AssetId) -> Asset:
        asset = self._assets.get(id)
        if asset is None:
            raise StalledError(f"the workspace has no asset {id}", code="CLI124")
        return asset


class _WorkingTreeCheckReader:
    """`lehr.sdk.check.CheckReader`: configuration from the workspace, the rest as it is now."""

    def __init__(
        self,
        planner: Planner,
        asking: AssetId,
        assets: Mapping[AssetId, Asset],
        around: Circumstance,
        controls: Sequence[Control],
    ) -> None:
        """Look around for the asset `asking`."""
        self._planner = planner
        self._asking = asking
        self._assets = assets
        self._around = around
        self._controls = controls

    @property
    def registry(self) -> Registry:
        return self._around.registry

    def governing(self, type: str) -> Sequence[Asset]:
        return [asset for _id, asset in sorted(self._assets.items()) if asset.type == type]

    def controls(self) -> Sequence[Control]:
        return self._controls

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        store = self._around.store
        return (0, None) if store is None else store.records.usage(reservation, self._around.now)

    async def diff(self, id: AssetId) -> Diff | None:
        asset = self._assets.get(id)
        if asset is None:
            return None
        try:
            return await self._planner.diff(asset)
        except LehrError as error:
            return Diff((Change("observed", "known", str(error)),), Effects(capacity=None))

    def referrers(self) -> Sequence[Referrer]:
        found = []
        for _id, asset in sorted(self._assets.items()):
            mentions = tuple(m for m in self.registry.mentions(asset) if m.target == self._asking)
            if mentions and asset.id != self._asking:
                found.append(Referrer(asset, mentions))
        return found

"""What the next turn of one asset would come to if some commands were given. Writes and pushes nothing.

The turn is that of a plan (`planner`), over published intent, under the controls and releases that there
would be. It remembers failed pushes as the running process does, so that a retry makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from lehr.base.errors import LehrError
from lehr.dry_run.candidate import PublishedIntent
from lehr.dry_run.planner import Planned, PlannedResult, Planner
from lehr.dry_run.suppositions import (
    OF_ROLLOUTS,
    SUPPOSED,
    Supposition,
    Verb,
    controls_under,
    lifts_over,
    parse,
)
from lehr.enforce.governance import Governance, load
from lehr.enforce.memory import NO_MEMORY, Memory, memory_after
from lehr.enforce.to_intent import to_intent
from lehr.model.asset import Asset, AssetKey, Partition
from lehr.model.control import Control
from lehr.model.evidence import RolloutCommand
from lehr.model.reason import Reason
from lehr.model.release import Released
from lehr.model.selector import Selector
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Records, Store

RolledOut = Callable[[Governance, Sequence[tuple[RolloutCommand, str]]], Sequence[Released]]
"""The releases that count after commands about rollouts, of assets for which they change. May block.

Raises `LehrError` for a command that would be refused.
"""


class Supposed(msgspec.Struct, frozen=True):
    """What a turn would come to.

    Attributes:
        commands: those that are supposed, as they would be typed.
        unblocked: whether nothing would keep the asset from its intended state: `is_unblocked`.
        planned: the turn.
    """

    commands: tuple[str, ...]
    unblocked: bool
    planned: Planned


class _Overlay(NamedTuple):
    intent: Any
    records: Any


class _SupposedRecords:
    """Records with other controls and releases."""

    def __init__(self, records: Records, controls: Sequence[Control], released: Sequence[Released]) -> None:
        self._records = records
        self._controls = list(controls)
        self._released = list(released)

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        version, _controls = self._records.controls(partition, now)
        return version, self._controls

    def released(self, partition: Partition, since: int = 0) -> tuple[int, list[Released]]:
        version, found = self._records.released(partition, since)
        if not self._released:
            return version, found
        return version + 1, [*found, *self._released]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)


class WhatIf:
    """Supposes commands about one asset, at one moment."""

    def __init__(
        self,
        runtime: Runtime,
        asset: Asset,
        plugins: Sequence[AssetPlugin],
        checks: Sequence[CheckPlugin],
        rolled_out: RolledOut | None = None,
    ) -> None:
        """Reads the store, which is not written. Blocks.

        Args:
            asset: as intent last had it.
            rolled_out: None where commands about rollouts cannot be supposed.

        Raises:
            LehrError: nothing is published yet, or the asset has no production; the store cannot be read.
        """
        newest = runtime.store.intent.newest(runtime.partition)
        if newest is None or runtime.registry.inert(asset.type):
            raise LehrError(
                f"{asset.id} has no production, so nothing blocks it",
                code="DRY104",
                fix="name an asset that is pushed; see `lehr get assets`",
            )
        self._runtime = replace(runtime, only=Selector(ids=(asset.id,)))
        self._newest = newest
        self._asset = asset
        self._plugins = plugins
        self._checks = checks
        self._rolled_out = rolled_out
        self._now = runtime.clock.now()
        _version, self._controls = runtime.store.records.controls(runtime.partition, self._now)
        self._governance = load(runtime.store, runtime.registry, newest, self._now)
        self._memory = self._remembered()
        self._known: dict[frozenset[Supposition], Supposed] = {}

    @property
    def turns(self) -> int:
        """How many sets of commands were supposed."""
        return len(self._known)

    def parsed(self, texts: Iterable[str]) -> tuple[Supposition, ...]:
        """The suppositions that texts write, each once. Raises as `lehr.dry_run.suppositions.parse`."""
        found = [item for text in texts for item in parse(text, self._asset, self._controls)]
        return tuple(dict.fromkeys(found))

    def candidates(self) -> list[Supposition]:
        """The commands that could make a difference to the asset, those that lift something first."""
        found = lifts_over(self._asset, self._controls)
        if self._memory != NO_MEMORY:
            found.append(Supposition(Verb.RETRY))
        found += self._overrides()
        governance, id = self._governance, self._asset.id
        policy = governance.policies.of(self._asset)
        released = governance.releases.of(id, policy is not None)
        if released is not None and policy is None:
            found.append(Supposition(Verb.RELEASE))
        if policy is not None and released is not None and self._rolled_out is not None:
            found += [item for verb in OF_ROLLOUTS if self._is_possible(item := Supposition(verb, policy.id))]
        found.append(Supposition(Verb.APPROVE))
        return found

    async def turn(self, suppositions: Iterable[Supposition]) -> Supposed:
        """What the next turn would come to, if these commands were given.

        Raises:
            LehrError: one of them would be refused; the store cannot be read.
        """
        given = tuple(dict.fromkeys(suppositions))
        known = self._known.get(frozenset(given))
        if known is None:
            planned = await self._planned(given)
            commands = tuple(item.command(self._asset.id) for item in given)
            known = self._known[frozenset(given)] = Supposed(commands, is_unblocked(planned), planned)
        return known

    async def _planned(self, given: tuple[Supposition, ...]) -> Planned:
        released = self._released(given)
        planned = await self._turn(given, self._changed(given), released)
        if planned.result is PlannedResult.APPROVAL and Supposition(Verb.APPROVE) in given:
            # The approval is for the diff that the other commands lead to.
            assert planned.diff is not None
            approved = planned.diff.digest()
            planned = await self._turn(given, self._changed(given, approved), released)
        return planned

    def _changed(self, given: Iterable[Supposition], approved: Any = None) -> list[Control]:
        key = AssetKey(self._runtime.partition, self._asset.id)
        return controls_under(given, key, self._controls, self._now, approved)

    async def _turn(
        self, given: Iterable[Supposition], controls: Sequence[Control], released: Sequence[Released]
    ) -> Planned:
        real = self._runtime.store
        records = _SupposedRecords(real.records, controls, released)
        runtime = replace(self._runtime, store=cast(Store, _Overlay(real.intent, records)))
        retried = Supposition(Verb.RETRY) in given
        memories = {} if retried else {self._asset.id: self._memory}
        candidate = PublishedIntent(real.intent, self._newest)
        found = await Planner(runtime, candidate, self._plugins, self._checks, memories).plan()
        if not found:
            raise LehrError(
                f"{self._asset.id} has left intent and production, so nothing blocks it",
                code="DRY105",
                fix=f"see `lehr why {self._asset.id}`",
            )
        return found[0]

    def _released(self, given: Iterable[Supposition]) -> list[Released]:
        found: list[Released] = []
        if Supposition(Verb.RELEASE) in given:
            releases = to_intent(
                self._asset.id,
                [self._asset],
                self._governance,
                actor=SUPPOSED,
                reason=SUPPOSED,
                now=self._now,
                identifier=lambda: SUPPOSED,
            )
            found += [Released(item.asset, item) for item in releases]
        commands = [(OF_ROLLOUTS[item.verb], item.of) for item in given if item.verb in OF_ROLLOUTS]
        if commands and self._rolled_out is None:
            raise LehrError("commands about rollouts cannot be supposed here", code="DRY106")
        if commands and self._rolled_out is not None:
            found += self._rolled_out(self._governance, commands)
        return found

    def _is_possible(self, supposition: Supposition) -> bool:
        try:
            self._released([supposition])
        except LehrError:
            return False
        return True

    def _overrides(self) -> list[Supposition]:
        """Overrides of the checks over the asset whose configuration allows them."""
        found = []
        for assets in self._governance.assets.values():
            for asset in assets:
                payload = asset.document()["payload"]
                if payload.get("override") is True and self._is_selected(payload.get("select")):
                    found.append(Supposition(Verb.OVERRIDE, asset.id))
        return found

    def _is_selected(self, select: Any) -> bool:
        try:
            return msgspec.convert(select, Selector).matches(self._asset)
        except (msgspec.ValidationError, ValueError):
            return True  # it selects in another way

    def _remembered(self) -> Memory:
        """What the running process remembers of the asset."""
        records, partition = self._runtime.store.records, self._runtime.partition
        numbers = [number for number, _decision in records.decisions(partition, self._asset.id, 1)]
        recorded = records.decision(partition, numbers[0]) if numbers else None
        if recorded is None or not recorded[1]:
            return NO_MEMORY
        try:
            return memory_after(*recorded, self._now, self._runtime.clock.monotonic())
        except msgspec.DecodeError:
            return NO_MEMORY


def is_unblocked(planned: Planned) -> bool:
    """Whether nothing keeps an asset from its intended state: it would be pushed, or is there."""
    if planned.result is PlannedResult.AS_INTENDED:
        return planned.reason not in _HELD_BACK
    return planned.result in (PlannedResult.PUSHED, PlannedResult.ORPHANED)


_HELD_BACK = (Reason.AWAITING_RELEASE, Reason.PINNED)
"""Reasons of an asset that is as it should be for now, and not as the newest intent has it."""

"""The next turn of one asset, if some commands were given. Writes and pushes nothing.

The turn is that of a plan (`planner`), over published intent, under the controls and releases that there
would be. It remembers failed pushes as the running process does, so that a retry makes a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.dry_run.candidate import PublishedIntent
from lehr.dry_run.comparisons import Comparisons
from lehr.dry_run.memories import no_memories, remembered
from lehr.dry_run.planned import Planned, PlannedResult
from lehr.dry_run.planner import Planner, recovered
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
from lehr.enforce.overrides import overridable, require_overridable
from lehr.enforce.to_intent import to_intent
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.control import Control
from lehr.model.control_index import ControlIndex
from lehr.model.evidence import RolloutCommand
from lehr.model.release import Released
from lehr.model.selector import Selector
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Records, Store


class Rollouts(Protocol):
    """Rollouts at one moment, without the effects of any command. May block."""

    def effective(self, policy: AssetId) -> Sequence[RolloutCommand]:
        """The commands that would have an effect on the rollout of a policy now."""
        ...

    def released(
        self,
        governance: Governance,
        about: AssetId | None,
        commands: Sequence[tuple[RolloutCommand, str]],
    ) -> Sequence[Released]:
        """The releases that would count of all assets for which they change, without time passing.

        Args:
            governance: with the supposed controls, and releases as they are.
            about: a policy whose rollout continues, whether or not a command is about it.
            commands: each with its policy; empty for the only one.

        Raises:
            LehrError: a command would be refused.
        """
        ...


class Supposed(msgspec.Struct, frozen=True):
    """The result of a turn that is only supposed.

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
        rollouts: Rollouts | None = None,
    ) -> None:
        """Reads the store, which is not written. Blocks.

        Args:
            asset: as intent last had it.
            rollouts: None where releases stay as they are.

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
        self._rollouts = rollouts
        self._now = runtime.clock.now()
        _version, self._controls = runtime.store.records.controls(runtime.partition, self._now)
        self._governance = load(runtime.store, runtime.registry, newest, self._now)
        self._memory = remembered(runtime)(asset.id)
        self._known: dict[frozenset[Supposition], Planned] = {}
        self._comparisons = Comparisons()
        self._recovery = recovered(runtime)  # no command that can be supposed changes it
        self._releases: dict[frozenset[Supposition], Sequence[Released]] = {}

    @property
    def sets(self) -> int:
        """How many sets of commands were supposed."""
        return len(self._known)

    def parsed(self, texts: Iterable[str]) -> tuple[Supposition, ...]:
        """The suppositions that texts write, each once.

        Raises:
            LehrError: as `lehr.dry_run.suppositions.parse`; or a check cannot be overridden.
        """
        found = [item for text in texts for item in parse(text, self._asset, self._controls)]
        for item in found:
            if item.verb is Verb.OVERRIDE:
                require_overridable(item.of, self._governing())
        return tuple(dict.fromkeys(found))

    def candidates(self) -> list[Supposition]:
        """The commands that could make a difference to the asset, those that lift something first."""
        found = lifts_over(self._asset, self._controls)
        if self._memory.slows:
            found.append(Supposition(Verb.RETRY))
        found += [
            Supposition(Verb.OVERRIDE, check.id)
            for check in overridable(self._governing())
            if self._is_selected(check.document()["payload"].get("select"))
        ]
        policy = self._governance.policies.of(self._asset)
        released = self._governance.releases.of(self._asset.id, policy is not None)
        if released is not None and policy is None:
            found.append(Supposition(Verb.RELEASE))
        if released is not None and policy is not None and self._rollouts is not None:
            effective = self._rollouts.effective(policy.id)
            found += [Supposition(verb, policy.id) for verb, of in OF_ROLLOUTS.items() if of in effective]
        found.append(Supposition(Verb.APPROVE))
        return found

    async def turn(self, suppositions: Iterable[Supposition]) -> Supposed:
        """The next turn, if these commands were given.

        Raises:
            LehrError: one of them would be refused; the store cannot be read.
        """
        given = tuple(dict.fromkeys(suppositions))
        planned = await self._planned(frozenset(given))
        commands = tuple(item.command(self._asset.id) for item in given)
        return Supposed(commands, is_unblocked(planned), planned)

    async def _planned(self, given: frozenset[Supposition]) -> Planned:
        known = self._known.get(given)
        if known is None:
            known = self._known[given] = await self._approved(given)
        return known

    async def _approved(self, given: frozenset[Supposition]) -> Planned:
        """The turn; an approval is for the diff that the other commands lead to."""
        others = given - {Supposition(Verb.APPROVE)}
        if others == given:
            return await self._turn(given)
        planned = await self._planned(others)
        if planned.result is not PlannedResult.APPROVAL:
            return planned
        assert planned.diff is not None
        return await self._turn(given, planned.diff.digest())

    def _governing(self) -> list[Asset]:
        return [asset for assets in self._governance.assets.values() for asset in assets]

    async def _turn(self, given: frozenset[Supposition], approved: Digest | None = None) -> Planned:
        real, key = self._runtime.store, AssetKey(self._runtime.partition, self._asset.id)
        controls = controls_under(sorted(given), key, self._controls, self._now, approved)
        records = _SupposedRecords(real.records, controls, self._released(given, controls))
        runtime = replace(self._runtime, store=cast(Store, _Overlay(real.intent, records)))
        retried = Supposition(Verb.RETRY) in given
        memories = no_memories if retried else lambda _id: self._memory
        candidate = PublishedIntent(real.intent, self._newest)
        shared = self._comparisons, self._recovery
        planner = Planner(runtime, candidate, self._plugins, self._checks, memories, *shared)
        found = await planner.plan()
        if not found:
            raise LehrError(
                f"{self._asset.id} has left intent and production, so nothing blocks it",
                code="DRY105",
                fix=f"see `lehr why {self._asset.id}`",
            )
        return found[0]

    def _released(self, given: frozenset[Supposition], controls: Sequence[Control]) -> Sequence[Released]:
        """The releases that change: of the asset itself, and as rollouts continue under these controls."""
        relevant = given - {Supposition(Verb.APPROVE), Supposition(Verb.RETRY)}
        known = self._releases.get(relevant)
        if known is None:
            known = self._releases[relevant] = [
                *self._to_intent(given),
                *self._rolled_out(given, controls),
            ]
        return known

    def _to_intent(self, given: frozenset[Supposition]) -> list[Released]:
        if Supposition(Verb.RELEASE) not in given:
            return []
        releases = to_intent(
            self._asset.id,
            [self._asset],
            self._governance,
            departed=self._departed(),
            actor=SUPPOSED,
            reason=SUPPOSED,
            now=self._now,
            identifier=lambda: SUPPOSED,
        )
        return [Released(item.asset, item) for item in releases]

    def _departed(self) -> frozenset[AssetId]:
        """The asset, if the newest incarnation does not have it."""
        id = self._asset.id
        there = any(self._runtime.store.intent.heads(self._runtime.partition, (id,)))
        return frozenset() if there else frozenset((id,))

    def _rolled_out(self, given: frozenset[Supposition], controls: Sequence[Control]) -> Sequence[Released]:
        commands = [(OF_ROLLOUTS[item.verb], item.of) for item in sorted(given) if item.verb in OF_ROLLOUTS]
        if self._rollouts is None:
            if commands:
                raise LehrError("commands about rollouts cannot be supposed here", code="DRY106")
            return []
        policy = self._governance.policies.of(self._asset)
        if not commands and policy is None:
            return []
        governance = replace(self._governance, controls=ControlIndex(controls))
        return self._rollouts.released(governance, None if policy is None else policy.id, commands)

    def _is_selected(self, select: Any) -> bool:
        try:
            return msgspec.convert(select, Selector).matches(self._asset)
        except (msgspec.ValidationError, ValueError):
            return True  # it selects in another way


def is_unblocked(planned: Planned) -> bool:
    """Whether nothing keeps an asset from its intended state: it would be pushed, or is there."""
    return planned.result in (PlannedResult.PUSHED, PlannedResult.AS_INTENDED, PlannedResult.ORPHANED)

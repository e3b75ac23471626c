"""The rollouts of a partition, read from the store. Writes nothing, and needs no running program."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lehr.base.errors import LehrError
from lehr.base.moments import Moment
from lehr.base.text import listed
from lehr.enforce.governance import Governance, load
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.evidence import Evidence
from lehr.model.incarnation import Incarnation
from lehr.model.release import Release
from lehr.model.types import Registry
from lehr.rollouts.canary_trace import CanaryTrace, canary_trace
from lehr.rollouts.course import folded
from lehr.rollouts.emergency import in_effect
from lehr.rollouts.figures import RolloutState
from lehr.rollouts.forecast import Forecast
from lehr.rollouts.forecast_inputs import as_if_begun, as_if_changed
from lehr.rollouts.members import units_of
from lehr.rollouts.past import PastRollout, past_rollouts
from lehr.rollouts.policy import Policy
from lehr.rollouts.status import (
    RolloutStatus,
    UnitStatus,
    status_of,
    unusable,
)
from lehr.rollouts.taking_part import taking_part_in
from lehr.rollouts.validation_samples import validated_in
from lehr.sdk.calendars import Calendars
from lehr.sdk.store import Records, Store
from lehr.strategist.forecasts import forecast_of
from lehr.strategist.roster import Roster

_ROWS = 1000


class AwaitedRelease(msgspec.Struct, frozen=True):
    """The release that an asset waits for.

    Attributes:
        release: the one that counts; None if it never had one.
        status: the rollouts of the policy that governs it; None if no policy does.
        unit: its unit in the rollout under way; None if it does not take part.
    """

    asset: AssetId
    release: Release | None
    status: RolloutStatus | None
    unit: UnitStatus | None


class RolloutForecast(msgspec.Struct, frozen=True):
    """A forecast, and the rollout that it is of.

    Attributes:
        rollout: id of the one under way; empty if none is.
        target: the incarnation whose content it brings.
        begun_at: None if it has not begun.
        every_unit: whether it is of a rollout that would update every unit.
    """

    policy: AssetId
    rollout: str
    target: int
    begun_at: Moment | None
    every_unit: bool
    forecast: Forecast


class Rollouts:
    """The rollouts of all policies in force, at one moment."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        incarnation: Incarnation,
        partition: Partition,
        now: float,
        calendars: Calendars,
    ) -> None:
        """Reads the store. Blocks.

        Args:
            incarnation: the newest.
            now: wall-clock seconds.
            calendars: reads when pushes may not start.

        Raises:
            LehrError: the store cannot be read.
        """
        self._now = now
        self._records = store.records
        self._registry = registry
        self._governance: Governance = load(store, registry, incarnation, now)
        self._roster = Roster(store, registry, partition, calendars)
        self._calendars = calendars
        self._evidence = evidence_by_policy(store.records, partition)

    @property
    def policies(self) -> Sequence[AssetId]:
        """Ids of the policies in force."""
        return [policy.id for policy in self._governance.policies.items]

    def all(self) -> list[RolloutStatus]:
        """The status of each policy, by id.

        Raises:
            LehrError: the store cannot be read.
        """
        return [self._status(policy) for policy in self._governance.policies.items]

    def of(self, policy: str | None) -> RolloutStatus:
        """The status of a policy, or of the only one.

        Raises:
            LehrError: there is no such policy, or several to choose from; or as `all`.
        """
        return self._status(self._policy(policy))

    def canary(self, policy: str | None) -> CanaryTrace | None:
        """The canary analysis of a policy's newest rollout; None if it has none.

        Raises:
            LehrError: as `of`.
        """
        chosen = self._policy(policy)
        return canary_trace(chosen, folded(self._evidence.get(chosen.id, [])))

    def _policy(self, policy: str | None) -> Policy:
        items = self._governance.policies.items
        named = [item for item in items if policy in (None, item.id)]
        if len(named) == 1:
            return named[0]
        if not items:
            raise LehrError(
                "no rollout policy is in force", code="ROL130", fix="see `lehr explain lehr.RolloutPolicy`"
            )
        known = f"policies in force: {listed(self.policies)}"
        if policy is not None:
            raise LehrError(f"there is no rollout policy {policy}", code="ROL131", why=known)
        raise LehrError("name a rollout policy", code="ROL133", why=known)

    def forecast(self, policy: str | None, *, every_unit: bool = False) -> RolloutForecast:
        """The forecast of a policy's rollout: the one under way, or that of the newest content.

        Args:
            every_unit: forecast a rollout of new content of every unit, which begins now.

        Raises:
            LehrError: there is no such policy, or several to choose from; or its rollout cannot be forecast.
        """
        chosen = self._policy(policy)
        return self._forecast(chosen, self._status(chosen), every_unit=every_unit)

    def awaited_by(self, asset: Asset) -> AwaitedRelease | None:
        """The release that an asset waits for; None for an asset that releases do not govern."""
        policy = self._governance.policies.of(asset)
        released = self._governance.releases.of(asset.id, policy is not None)
        if released is None:
            return None
        status = None if policy is None else self._status(policy)
        unit = None if status is None else status.unit_of(asset.id)
        return AwaitedRelease(asset.id, released.release, status, unit)

    def _forecast(self, policy: Policy, status: RolloutStatus, *, every_unit: bool) -> RolloutForecast:
        governance = self._governance
        course = folded(self._evidence.get(policy.id, []))
        by = in_effect(policy.payload, course, governance.sequence, self._now).selected_by
        if by is not None:
            raise LehrError(
                f"a rollout of {policy.id} cannot be forecast",
                code="ROL134",
                why=f"the selection {by.service} decides which units are updated when, and not Lehr",
            )
        evidence = self._evidence.get(policy.id, [])
        running = None if every_unit else course.running
        members = self._roster.members(policy, running, governance, self._now, resting=every_unit)
        if every_unit:
            members = as_if_changed(members)
        rollout = running
        if rollout is None:
            rollout, members = as_if_begun(members, governance.sequence, self._now)
        if not taking_part_in(rollout, units_of(members), self._now):
            raise LehrError(
                f"{policy.id} has nothing to roll out",
                code="ROL135",
                why="each of its units has its newest content",
                fix="add --every-unit to forecast a rollout of every unit",
            )
        try:
            found = forecast_of(
                policy,
                course,
                rollout,
                members,
                self._roster.contents,
                self._records,
                validated_in(evidence),
                self._calendars(self._registry, governance.assets),
                governance,
                self._now,
                hold="" if every_unit else _hold(status),
            )
        except ValueError as error:
            raise LehrError(
                f"a rollout of {policy.id} cannot be forecast",
                code="ROL136",
                why=str(error),
                fix="correct `target_selection` of the policy",
            ) from error
        begun_at = None if running is None else running.begun_at
        return RolloutForecast(policy.id, rollout.id, rollout.target, begun_at, every_unit, found)

    def _status(self, policy: Policy) -> RolloutStatus:
        evidence = self._evidence.get(policy.id, [])
        course, governance = folded(evidence), self._governance
        members = self._roster.members(policy, course.running, governance, self._now)
        past: tuple[PastRollout, ...] = past_rollouts(evidence)
        try:
            return status_of(policy, course, members, governance.sequence, self._now, past)
        except ValueError as error:
            return unusable(policy, course, str(error), past)


def _hold(status: RolloutStatus) -> str:
    """Why no further unit is updated until a person decides; empty if that is not so."""
    held = (RolloutState.PAUSED, RolloutState.HOLDING, RolloutState.BLOCKED)
    return status.waits_for if status.state in held else ""


def evidence_by_policy(records: Records, partition: Partition) -> dict[AssetId, list[Evidence]]:
    """All evidence, in the order in which it was written. Blocks.

    Raises:
        LehrError: the store cannot be read.
    """
    found: dict[AssetId, list[Evidence]] = {}
    seen = 0
    while True:
        rows = records.evidence(partition, seen, _ROWS)
        for item in rows:
            found.setdefault(item.policy, []).append(item)
            seen = item.number
        if len(rows) < _ROWS:
            return found

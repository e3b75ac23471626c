"""The rollouts of the partition that a command reads."""

from __future__ import annotations

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli.stored import remote_store, state_folder
from lehr.model.provenance import Commit
from lehr.query.incarnations import commit_of as commit_of_sources
from lehr.query.partition_view import Reading
from lehr.rollouts.status import RolloutStatus
from lehr.strategist.overview import RolloutForecast, Rollouts

_VERSIONS = 200


def rollouts_of(reading: Reading) -> Rollouts | None:
    """The rollouts now; None before the first incarnation."""
    newest = reading.newest()
    if newest is None:
        return None
    registry = wiring.registry_of(reading.store, reading.partition)
    return Rollouts(reading.store, registry, newest, reading.partition, reading.now, wiring.calendars)


def status_of(reading: Reading, policy: str | None) -> RolloutStatus:
    """The rollouts of a policy, or of the only one.

    Raises:
        LehrError: there is no such policy, or several to choose from.
    """
    return _require(rollouts_of(reading)).of(policy)


def forecast_of(reading: Reading, policy: str | None, *, every_unit: bool) -> RolloutForecast:
    """The forecast of the rollout of a policy, or of the only one.

    Raises:
        LehrError: as `lehr.strategist.overview.Rollouts.forecast`.
    """
    return _require(rollouts_of(reading)).forecast(policy, every_unit=every_unit)


def _require(rollouts: Rollouts | None) -> Rollouts:
    if rollouts is None:
        raise LehrError("no rollout policy is in force", code="CLI187", why="nothing is published yet")
    return rollouts


def commit_of(reading: Reading, sequence: int) -> Commit | None:
    """The commit that an incarnation was made from; None if it is not known."""
    header = reading.intent.incarnation(reading.partition, sequence) if sequence else None
    if header is None:
        return None
    remote = remote_store(reading)
    if remote is None:
        return commit_of_sources(header.sources, lambda revision: wiring.past(state_folder(), revision))
    found = remote.intent.intent_versions(reading.partition, _VERSIONS)
    return next((item.commit for item in found if item.incarnation == header), None)

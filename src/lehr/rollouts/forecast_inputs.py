"""The inputs of the forecast of a policy's rollout, from how its members are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from lehr.model.asset import Asset, AssetId
from lehr.model.operation import Operation
from lehr.rollouts.course import Course, Rollout
from lehr.rollouts.forecast import ForecastInputs, UnitWork
from lehr.rollouts.members import Member, Units, units_of
from lehr.rollouts.observing import LONGEST_GAP
from lehr.rollouts.policy import RolloutPolicy
from lehr.rollouts.push_samples import push_samples
from lehr.rollouts.taking_part import taking_part_in, trusted_units
from lehr.rollouts.units import Unit
from lehr.rollouts.validation_samples import Validated, validation_samples
from lehr.sdk.calendars import PushTimes

AssetOf = Callable[[AssetId], Asset | None]


class Known(msgspec.Struct, frozen=True):
    """Recorded pushes and validations, and calendars.

    Attributes:
        operations: recorded pushes.
        validated: recorded validations of the policy's units.
        calendars: those in force.
        course: of the policy's rollouts: which content has passed before.
        overridden: whether an asset may be pushed although a calendar is closed.
    """

    operations: Sequence[Operation]
    validated: Sequence[Validated]
    calendars: Sequence[PushTimes]
    course: Course = Course()
    overridden: Callable[[PushTimes, Asset], bool] = lambda _calendar, _asset: False


def as_if_begun(members: Sequence[Member], newest: int, now: float) -> tuple[Rollout, list[Member]]:
    """A rollout of the newest content that begins now, and its members."""
    return Rollout("", newest, now), [replace(item, target=item.newest) for item in members]


def as_if_changed(members: Sequence[Member]) -> list[Member]:
    """The same members, as if each had newer content."""
    return [replace(item, applied=item.applied or item.released, released=None) for item in members]


def inputs_of(
    policy: RolloutPolicy,
    rollout: Rollout,
    members: Sequence[Member],
    asset_of: AssetOf,
    known: Known,
    now: float,
    hold: str = "",
    check_time: Callable[[], None] = lambda: None,
) -> ForecastInputs:
    """The inputs of the forecast of a rollout from `now` on, in wall-clock seconds.

    Args:
        members: all assets that the policy governs.
        asset_of: an asset as the target of the rollout has it; None if it is not there.
        hold: as in `ForecastInputs`.
        check_time: called again and again; it may raise to end this.
    """
    units = units_of([replace(item, closed="") for item in members])  # `calendars` has when that ends
    since = min(max(0.0, now - rollout.looked_at), LONGEST_GAP * policy.validation.look_every)
    trusted = trusted_units(policy.trust_for, replace(known.course, last=rollout), units)
    taking_part = taking_part_in(rollout, units, now, trusted)
    works = tuple(_works(rollout, units, taking_part, asset_of, known, since, check_time))
    found = ForecastInputs(
        selection=policy.target_selection,
        works=works,
        now=now,
        pushes=push_samples(known.operations),
        validations=validation_samples(
            known.validated, known.operations, {item.id: item.unit for item in members}
        ),
        hold=hold,
        closed_pauses=False,
    )
    used = {name for work in works for name in work.calendars}
    until = now + found.horizon_seconds
    return replace(found, calendars=dict(_closed(known.calendars, used, now, until, check_time)))


def _closed(
    calendars: Sequence[PushTimes],
    used: set[str],
    start: float,
    end: float,
    check_time: Callable[[], None],
) -> Iterator[tuple[str, Sequence[tuple[float, float]] | None]]:
    for calendar in calendars:
        if calendar.id in used:
            check_time()
            yield calendar.id, calendar.closed(start, end)


def _works(
    rollout: Rollout,
    units: Units,
    taking_part: Mapping[str, Unit],
    asset_of: AssetOf,
    known: Known,
    since_look: float,
    check_time: Callable[[], None],
) -> Iterator[UnitWork]:
    """The units of a rollout.

    Args:
        since_look: so many seconds will count as exposure at the next look, if a unit is still good.
    """
    for id, unit in taking_part.items():
        check_time()
        moving = [item for item in units[id] if item.id in rollout.before or item.wants_target]
        assets = [asset for item in moving if (asset := asset_of(item.id)) is not None]
        look = rollout.looks.get(id)
        grown = unit.exposure_seconds + (since_look if look is not None and look.good else 0.0)
        yield UnitWork(
            replace(unit, exposure_seconds=grown),
            tuple(asset.type for asset in assets),
            tuple(calendar.id for calendar in known.calendars if _waits(known, calendar, assets)),
            pushed_at(rollout, id, units[id]),
        )


def _waits(known: Known, calendar: PushTimes, assets: Sequence[Asset]) -> bool:
    """Whether a unit waits while a calendar is closed: one asset holds all of its unit."""
    return any(calendar.select.matches(item) and not known.overridden(calendar, item) for item in assets)


def pushed_at(rollout: Rollout, unit: str, members: Sequence[Member]) -> float | None:
    """When the last asset of a unit got the content of a rollout; None while one has not.

    A repair is recorded later than the push, so a validated unit had its content by then.
    """
    if unit not in rollout.updated:
        return None
    got = [item for item in members if item.id in rollout.before]
    times = [item.applied_since for item in got if item.reached and item.applied_since is not None]
    if len(times) < len(got) or not times:
        return None
    last, validated = max(*times, rollout.updated[unit]), rollout.validated.get(unit)
    return last if validated is None else min(last, validated)

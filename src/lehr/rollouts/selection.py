"""Target selection: the units to update now, and why not the others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from lehr.base.text import listed
from lehr.rollouts.units import Unit, count_of
from lehr.rollouts.waves import Assigned, TargetSelection, assigned, in_order

_NEW_ONES_FOLLOW = "it is new, and new units follow once another one is validated"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """An answer.

    Attributes:
        update: ids of the units to update now, in order.
        others: why not each of the other units, by id.
        wave: number of the wave under way, from 1; 0 once all are over.
        waves: how many there are.
        done: every unit that can be pushed is updated and validated.
        hold: why it waits until a person changes something; empty if it does not.
        ask_again_at: when time alone changes the answer, in seconds since the epoch; None if it does not.
        notes: further remarks for people.
        overdue: ids of updated units that have not passed within their deadline. The policy decides whether
            the rollout then waits or fails.
    """

    update: tuple[str, ...]
    others: dict[str, str]
    wave: int
    waves: int
    done: bool
    hold: str = ""
    ask_again_at: float | None = None
    notes: tuple[str, ...] = ()
    overdue: tuple[str, ...] = ()


def select(
    selection: TargetSelection,
    units: Sequence[Unit],
    now: float,
    check_time: Callable[[], None] = lambda: None,
) -> Selection:
    """The units to update at `now`, in seconds since the epoch.

    A wave is over when each of its units is updated, validated, and has had its exposure. Units that cannot
    be pushed are skipped, and join later. A wave that has updated nothing is never over: a misspelled label
    must not open the next one. While a unit is past its deadline, no other is updated.

    Args:
        units: all units of the rollout; their ids differ.
        check_time: called again and again; it may raise to end this.

    Raises:
        ValueError: the order of `selection` cannot be used.
    """
    ordered = in_order(selection, _with_new_held(selection, units), check_time)
    waves = assigned(selection, ordered, check_time)
    wave = next((item for item in waves if _hold(item) or not _is_over(item)), None)
    deadlines = _deadlines(selection, wave)
    overdue = tuple(id for id, at in deadlines.items() if at <= now)
    chosen, limited = _next(selection, ordered, None if overdue else wave)
    places = {unit.id: item.number for item in waves for unit in item.units}
    left = [unit.id for unit in ordered if unit.id not in places and not unit.updated and not unit.held]
    late = f"{listed(overdue)} did not pass within the deadline of wave {wave.number}" if wave else ""
    reasons = {unit.id: _reason(unit, places.get(unit.id), wave) for unit in ordered if unit.id not in chosen}
    if overdue:
        limited = [unit.id for unit in ordered if not unit.updated and not unit.held]
    limit = f"at most {selection.at_most} may be updated and not validated at the same time"
    hold = "" if wave is None else late if overdue else _hold(wave)
    if wave is None and left:
        hold = f"no wave takes {listed(left)}"
    times = [*deadlines.values(), *_soaked_at(wave, now, deferred=bool(limited))]
    return Selection(
        update=tuple(chosen),
        others={**reasons, **dict.fromkeys(limited, late if overdue else limit)},
        wave=0 if wave is None else wave.number,
        waves=len(waves),
        done=wave is None and not left,
        hold=hold,
        ask_again_at=None if chosen else min((at for at in times if at > now), default=None),
        notes=_notes(waves, ordered, wave, chosen),
        overdue=overdue,
    )


def _with_new_held(selection: TargetSelection, units: Iterable[Unit]) -> list[Unit]:
    """New units wait for a first pass, if they should."""
    found = list(units)
    if selection.new == "in_wave" or any(unit.validated and not unit.new for unit in found):
        return found
    if all(unit.new for unit in found):
        return found  # there is no other that could pass first
    return [
        replace(unit, held=_NEW_ONES_FOLLOW) if unit.new and not unit.updated and not unit.held else unit
        for unit in found
    ]


def _hold(item: Assigned) -> str:
    """Why a wave can never be over as it is; empty if it can."""
    if not item.matching:
        return f"wave {item.number} takes {item.wave}, and there are none"
    if (item.units or item.missing) and all(unit.held and not unit.updated for unit in item.units):
        why = f": {listed(item.held)}" if item.held else ""
        return f"no unit that wave {item.number} takes can be pushed now{why}"
    return ""


def _is_over(item: Assigned) -> bool:
    return all(unit.held if not unit.updated else _has_passed(unit, item) for unit in item.units)


def _has_passed(unit: Unit, item: Assigned) -> bool:
    return unit.validated and unit.exposure_seconds >= item.wave.soak_seconds


def _deadlines(selection: TargetSelection, item: Assigned | None) -> dict[str, float]:
    """Until when each updated unit of a wave that has not passed must do so."""
    if item is None or selection.deadline_seconds is None:
        return {}
    within = item.wave.soak_seconds + selection.deadline_seconds
    return {
        unit.id: unit.updated_at + unit.paused_seconds + within
        for unit in item.units
        if unit.updated_at is not None and not _has_passed(unit, item)
    }


def _next(
    selection: TargetSelection, ordered: Sequence[Unit], wave: Assigned | None
) -> tuple[list[str], list[str]]:
    """The units of a wave to update now, and those for which the limit has no room yet."""
    mine = set() if wave is None else {unit.id for unit in wave.units}
    ready = [unit.id for unit in ordered if unit.id in mine and not unit.updated and not unit.held]
    unvalidated = sum(unit.updated and not unit.validated for unit in ordered)
    room = max(0, count_of(selection.at_most, len(ordered)) - unvalidated)
    return ready[:room], ready[room:]


def _reason(unit: Unit, number: int | None, wave: Assigned | None) -> str:
    """Why a unit is not updated now."""
    if unit.updated:
        return "it is updated and validated" if unit.validated else "it is updated, and not validated yet"
    if unit.held:
        return unit.held
    if number is None or wave is None:
        return "no wave takes it"
    return f"it is in wave {number}, and wave {wave.number} is under way"


def _soaked_at(item: Assigned | None, now: float, *, deferred: bool) -> list[float]:
    """When the last unit of a wave has had its exposure, if only time is missing.

    Args:
        deferred: other units of the wave wait for room.
    """
    updated = [] if item is None or deferred else [unit for unit in item.units if unit.updated]
    if item is None or not updated or not all(unit.validated for unit in updated):
        return []
    return [now + max(item.wave.soak_seconds - unit.exposure_seconds for unit in updated)]


def _notes(
    waves: Sequence[Assigned], units: Sequence[Unit], wave: Assigned | None, chosen: Sequence[str]
) -> tuple[str, ...]:
    if wave is None or len(waves) < 2:
        return ()
    if len(units) == 1:
        return ("no canary is possible: there is only one unit, so it is judged absolutely",)
    if chosen and all(unit.updated or unit.id in chosen for unit in units):
        return (f"after wave {wave.number}, no unit is left to compare with: it is judged absolutely",)
    return ()

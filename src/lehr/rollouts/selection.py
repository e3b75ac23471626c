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
    """

    update: tuple[str, ...]
    others: dict[str, str]
    wave: int
    waves: int
    done: bool
    hold: str = ""
    ask_again_at: float | None = None
    notes: tuple[str, ...] = ()


def select(
    selection: TargetSelection,
    units: Sequence[Unit],
    now: float,
    check_time: Callable[[], None] = lambda: None,
) -> Selection:
    """The units to update at `now`, in seconds since the epoch.

    A wave is over when each of its units is updated, validated, and has had its exposure. Units that cannot
    be pushed are skipped, and join later. A wave that has updated nothing is never over: a misspelled label
    must not open the next one.

    Args:
        units: all units of the rollout; their ids differ.
        check_time: called again and again; it may raise to end this.

    Raises:
        ValueError: the order of `selection` cannot be used.
    """
    ordered = in_order(selection, _with_new_held(selection, units), check_time)
    waves = assigned(selection, ordered, check_time)
    wave = next((item for item in waves if _hold(item) or not _is_over(item)), None)
    chosen, limited = _next(selection, ordered, wave)
    places = {unit.id: item.number for item in waves for unit in item.units}
    left = [unit.id for unit in ordered if unit.id not in places and not unit.updated and not unit.held]
    reasons = {unit.id: _reason(unit, places.get(unit.id), wave) for unit in ordered if unit.id not in chosen}
    limit = f"at most {selection.at_most} may be updated and not validated at the same time"
    hold = "" if wave is None else _hold(wave)
    if wave is None and left:
        hold = f"no wave takes {listed(left)}"
    return Selection(
        update=tuple(chosen),
        others={**reasons, **dict.fromkeys(limited, limit)},
        wave=0 if wave is None else wave.number,
        waves=len(waves),
        done=wave is None and not left,
        hold=hold,
        ask_again_at=None if wave is None or chosen or limited else _soaked_at(wave, now),
        notes=_notes(waves, ordered),
    )


def _with_new_held(selection: TargetSelection, units: Iterable[Unit]) -> list[Unit]:
    """New units wait for a first pass, if they should."""
    found = list(units)
    if selection.new == "in_wave" or any(unit.validated and not unit.new for unit in found):
        return found
    return [
        replace(unit, held=_NEW_ONES_FOLLOW) if unit.new and not unit.updated and not unit.held else unit
        for unit in found
    ]


def _hold(item: Assigned) -> str:
    """Why a wave can never be over as it is; empty if it can."""
    if not item.matching:
        return f"wave {item.number} takes {item.wave}, and there are none"
    if (item.units or item.missing) and all(unit.held and not unit.updated for unit in item.units):
        return f"no unit that wave {item.number} takes can be pushed now"
    return ""


def _is_over(item: Assigned) -> bool:
    return all(
        unit.held if not unit.updated else unit.validated and unit.exposure_seconds >= item.wave.soak_seconds
        for unit in item.units
    )


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


def _soaked_at(item: Assigned, now: float) -> float | None:
    """When the last unit of a wave has had its exposure, if only time is missing."""
    updated = [unit for unit in item.units if unit.updated]
    if not updated or not all(unit.validated for unit in updated):
        return None
    left = max(item.wave.soak_seconds - unit.exposure_seconds for unit in updated)
    return now + left if left > 0 else None


def _notes(waves: Sequence[Assigned], units: Sequence[Unit]) -> tuple[str, ...]:
    if len(waves) > 1 and len(units) == 1:
        return ("there is one unit, so none can go before the others",)
    return ()

"""Waves: definitions, and which unit belongs to which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from lehr.cel import NoAnswerError, compile_expression
from lehr.rollouts.units import MOST_SECONDS, Amount, Seconds, Unit, count_of

ORDER_VARIABLES = ("id", "labels")


class Wave(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One wave.

    Attributes:
        where: labels that its units have; all units if empty.
        units: how many of these are updated once the wave is over, those of earlier waves included. All if
            None.
        soak_seconds: exposure that each of its units needs before the next wave.
    """

    where: dict[str, str] = {}
    units: Amount | None = None
    soak_seconds: Seconds = 0.0

    def takes(self, unit: Unit) -> bool:
        """Whether a unit has its labels."""
        return all(unit.labels.get(name) == value for name, value in self.where.items())

    def __str__(self) -> str:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(self.where.items()))
        return f"units with {labels}" if labels else "all units"


class TargetSelection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a rollout proceeds.

    Attributes:
        waves: in their order. Units that none of them takes are not updated.
        order: a CEL expression over `id` and `labels`: units with smaller values come first. By id if empty.
        at_most: units that may be updated and not validated at the same time; any number if None.
        deadline_seconds: in which an updated unit must be validated, besides its soak. After that, no other
            unit is updated. None for any time.
        new: whether new units take part in waves, or wait until some other unit is validated.
    """

    waves: Annotated[tuple[Wave, ...], msgspec.Meta(min_length=1, max_length=100)] = (Wave(),)
    order: str = ""
    at_most: Amount | None = None
    new: Literal["in_wave", "after_first_pass"] = "in_wave"
    deadline_seconds: Annotated[float, msgspec.Meta(gt=0, le=MOST_SECONDS)] | None = None


class Assigned(msgspec.Struct, frozen=True):
    """The units of a wave.

    Attributes:
        number: of the wave, from 1.
        matching: units with its labels.
        units: those that belong to it, updated ones first.
        missing: units that it lacks, because the others cannot be pushed now.
        held: units with its labels that cannot be pushed, each with its reason.
    """

    number: int
    wave: Wave
    matching: int
    units: tuple[Unit, ...]
    missing: int
    held: tuple[str, ...] = ()


def _unlimited() -> None:
    """No limit of time."""


def in_order(
    selection: TargetSelection, units: Sequence[Unit], check_time: Callable[[], None] = _unlimited
) -> list[Unit]:
    """Units by the order of `selection`, then by id.

    Args:
        check_time: called for each unit; it may raise to end this.

    Raises:
        ValueError: the order is not a valid expression, or has no answer for a unit, or has numbers for some
            units and texts for others.
    """
    by_id = sorted(units, key=lambda unit: unit.id)
    if not selection.order:
        return by_id
    key = _key(selection.order, check_time)
    try:
        return sorted(by_id, key=key)
    except TypeError:
        raise ValueError(f"`{selection.order}` is a number for some units and a text for others") from None


def _key(order: str, check_time: Callable[[], None]) -> Callable[[Unit], Any]:
    ask = compile_expression(order, ORDER_VARIABLES)[0]

    def key(unit: Unit) -> Any:
        check_time()
        try:
            value = ask({"id": unit.id, "labels": unit.labels})
        except NoAnswerError as error:
            raise ValueError(f"`{order}` has no value for {unit.id}: {error}") from error
        if not isinstance(value, int | float | str) or value != value:  # noqa: PLR0124 - NaN has no place
            raise ValueError(f"`{order}` is neither a number nor a text for {unit.id}")
        return value

    return key


def assigned(
    selection: TargetSelection, ordered: Sequence[Unit], check_time: Callable[[], None] = _unlimited
) -> list[Assigned]:
    """The units of each wave.

    Updated units come first, so a unit that joins does not take the place of one that is being watched. Where
    a wave takes only some units, one that cannot be pushed takes no place: another one goes instead.
    """
    places = sorted(ordered, key=lambda unit: (not unit.updated, unit.updated_at or 0.0))
    taken: set[str] = set()
    found = []
    for number, wave in enumerate(selection.waves, start=1):
        check_time()
        matching = [unit for unit in places if wave.takes(unit)]
        before = sum(unit.id in taken for unit in matching)
        room = max(0, count_of(wave.units, len(matching)) - before)
        free = [unit for unit in matching if unit.id not in taken]
        if wave.units is not None:
            free = [unit for unit in free if unit.updated or not unit.held]
        units = tuple(free[:room])
        taken.update(unit.id for unit in units)
        held = tuple(f"{unit.id} ({unit.held})" for unit in matching if unit.held and not unit.updated)
        found.append(Assigned(number, wave, len(matching), units, room - len(units), held))
    return found

"""Target selection: which units of a rollout get new content next.

A selection of your own answers one question: given the units as they are, which are updated now, and why not
the others? It is stateless: everything that it may use is in the question, and the same question always has
the same answer. Implement `TargetSelector` in Python, or serve the same JSON over HTTP in any language.

An answer is checked before anything follows from it. It can only name units of the question, and the limits
of the policy apply to it: an answer that exceeds them is refused as a whole, and nothing is updated.
"""

from __future__ import annotations

import abc
import math
import re
from typing import Annotated, Any, Protocol

import msgspec

from lehr.base.errors import LehrError

_ABOVE_ZERO = r"^(0*[1-9][0-9]*(\.[0-9]+)?|0+\.0*[1-9][0-9]*)%$"
_PERCENT = re.compile(r"([0-9.]+)%")

Amount = Annotated[int, msgspec.Meta(ge=1)] | Annotated[str, msgspec.Meta(pattern=_ABOVE_ZERO, max_length=12)]
"""A number of units, or a share of them, such as `10%`."""

MOST_SECONDS = 1e11
"""More than any time that is meant; the sum of two is still a number."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]


class Unit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A unit, and how far it is.

    Attributes:
        labels: waves choose units by these.
        updated_at: since when it has the new content, in seconds since the epoch; None if it does not.
        validated_at: since when that is known to be good.
        exposure_seconds: how long it has been good so far. Time without a look does not count.
        paused_seconds: time since its update that does not count towards a deadline, such as that of a closed
            calendar.
        held: why it cannot be pushed now, such as a pin; empty if it can.
        new: it has no content yet, so nothing of it runs.
    """

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    labels: dict[str, str] = {}
    updated_at: Seconds | None = None
    validated_at: Seconds | None = None
    exposure_seconds: Seconds = 0.0
    paused_seconds: Seconds = 0.0
    held: str = ""
    new: bool = False

    @property
    def updated(self) -> bool:
        return self.updated_at is not None

    @property
    def validated(self) -> bool:
        return self.validated_at is not None


def count_of(amount: Amount | None, total: int) -> int:
    """`amount` of `total` units: of a share, the next whole number, so at least one. All for None."""
    if amount is None:
        return total
    if isinstance(amount, int):
        return min(amount, total)
    found = _PERCENT.fullmatch(amount)
    assert found is not None, f"{amount!r} is not a share"
    return min(total, math.ceil(total * float(found[1]) / 100))


class SelectionQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question.

    Attributes:
        units: all units of the rollout, in any order.
        selection: the settings of the policy. `at_most` and `new` mean the same for every selection, and
            apply to its answer; all others are its own.
        now: in seconds since the epoch.
    """

    units: tuple[Unit, ...]
    selection: dict[str, Any] = {}
    now: Seconds

    @property
    def room(self) -> int:
        """How many units may be updated now under `at_most`."""
        unvalidated = sum(unit.updated and not unit.validated for unit in self.units)
        return max(0, count_of(self.selection.get("at_most"), len(self.units)) - unvalidated)

    @property
    def candidates(self) -> list[Unit]:
        """The units that may be updated now, by id."""
        passed = any(unit.validated and not unit.new for unit in self.units)
        passed = passed or all(unit.new for unit in self.units)
        waiting = self.selection.get("new") == "after_first_pass" and not passed
        free = [unit for unit in self.units if not unit.updated and not unit.held]
        return sorted((unit for unit in free if not (waiting and unit.new)), key=lambda unit: unit.id)


class SelectionAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer.

    Attributes:
        update: ids of the units to update now, in order.
        others: why not each of the other units, by id.
        hold: why nothing is updated until a person changes something; empty if that is not so.
        ask_again_at: when time alone changes the answer, in seconds since the epoch; None if it does not.
        done: whether the rollout is over; None if all units that can be pushed are updated and validated.
        wave: number of the wave under way, from 1; 0 without waves, or once all are over.
        waves: how many there are.
        notes: further remarks for people.
        overdue: ids of updated units that have not passed within their time.
    """

    update: tuple[str, ...] = ()
    others: dict[str, str] = {}
    hold: str = ""
    ask_again_at: Seconds | None = None
    done: bool | None = None
    wave: Annotated[int, msgspec.Meta(ge=0)] = 0
    waves: Annotated[int, msgspec.Meta(ge=0)] = 0
    notes: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    overdue: tuple[str, ...] = ()


class TargetSelector(abc.ABC):
    """A selection in Python. Packages offer one as an entry point `lehr.target_selections`.

    Invariant: its answer depends on the question alone.
    """

    @abc.abstractmethod
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        """The units to update now. Called in a thread of its own. If it raises, nothing is updated."""


class Selections(Protocol):
    """The selections that this installation has besides Lehr's own."""

    def __call__(self, name: str) -> SelectionService:
        """The one of this name.

        Raises:
            LehrError: there is none, or it cannot be used.
        """
        ...


class SelectionService(Protocol):
    """Answers questions as messages: JSON in, JSON out.

    Attributes:
        name: in messages.
    """

    name: str

    async def ask(self, question: bytes) -> bytes:
        """The encoded `SelectionAnswer` to an encoded `SelectionQuestion`. It ends, whatever happens.

        Raises:
            LehrError: there is no answer, or none in time.
        """
        ...


def no_selections(name: str) -> SelectionService:
    """Without any selection but Lehr's own."""
    raise LehrError(
        f"there is no selection {name!r}",
        code="SDK120",
        fix="install its package, or give its address with `lehr run --selection`",
    )

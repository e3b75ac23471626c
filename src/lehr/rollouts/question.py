"""Questions to target selection, and what is wrong with one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from lehr.rollouts.units import Seconds, Unit
from lehr.rollouts.waves import TargetSelection, in_order

_ORDER = "write a CEL expression over `id` and `labels`, such as `labels.stage`"


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to target selection.

    Attributes:
        now: in seconds since the epoch; None for the time at which it is asked.
    """

    units: tuple[Unit, ...]
    selection: TargetSelection = TargetSelection()
    now: Seconds | None = None


class QuestionProblem(NamedTuple):
    """A problem that no type states.

    Attributes:
        path: keys and indexes that lead to it.
        of_order: the order cannot be used.
    """

    path: tuple[str | int, ...]
    what: str
    why: str
    fix: str
    of_order: bool = False


def problems_of_question(
    question: Question, check_time: Callable[[], None] = lambda: None
) -> Iterator[QuestionProblem]:
    """All problems of a question.

    Args:
        check_time: called for each unit that is ordered; it may raise to end this.
    """
    known = Counter(unit.id for unit in question.units)
    for number, unit in enumerate(question.units):
        at = ("units", number)
        if known[unit.id] > 1:
            what = f"there are {known[unit.id]} units `{unit.id[:60]}`"
            yield QuestionProblem(at, what, "", "give each unit an id of its own")
        if unit.validated and not unit.updated:
            what = f"unit `{unit.id[:60]}` is validated and not updated"
            yield QuestionProblem(at, what, "", "add `updated_at`, or remove `validated_at`")
    try:
        in_order(question.selection, question.units, check_time)
    except ValueError as error:
        yield QuestionProblem(("selection", "order"), "the order cannot be used", str(error), _ORDER, True)

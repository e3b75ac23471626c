"""The rules of `lehr.sdk.target_selection`, for any selection: in Python, or over HTTP in any language.

In: a selection, and settings of a policy that it understands. Out: `AssertionError` naming the rule that it
breaks. A test lists subjects and holds each of them to every rule:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule):
        asyncio.run(rule(Subject(MySelection, {"regions": ["eu"]}, labels=[{"region": "eu"}])))
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.rollouts.selection import Selection
from lehr.rollouts.services import judged, question_of
from lehr.sdk.target_selection import (
    SelectionAnswer,
    SelectionQuestion,
    SelectionService,
    TargetSelector,
    Unit,
)
from lehr.testing.conformance.rules import Rules, hold
from lehr.testing.virtual import EPOCH

_MOST_STEPS = 200
_DAY = 86_400.0


@dataclass(frozen=True)
class Subject:
    """A selection, and what it is asked.

    Attributes:
        make: makes the selection.
        settings: those of the policy that are the selection's own.
        labels: labels of units, repeated in this order.
    """

    make: Callable[[], TargetSelector | SelectionService]
    settings: Mapping[str, Any] = field(default_factory=dict)
    labels: Sequence[Mapping[str, str]] = ({},)

    def units(self, count: int = 7) -> list[Unit]:
        """Units of which none is updated."""
        return [
            Unit(id=f"unit-{number}", labels=dict(self.labels[number % len(self.labels)]))
            for number in range(count)
        ]

    def question(self, units: Sequence[Unit], now: float = EPOCH, **limits: Any) -> SelectionQuestion:
        """A question about `units`."""
        return question_of(units, now, settings=self.settings, **limits)

    async def content(
        self, question: SelectionQuestion, selection: TargetSelector | SelectionService | None = None
    ) -> bytes:
        """The encoded answer of `selection`, by default a new one. The question is sent as a message."""
        asked = self.make() if selection is None else selection
        sent = msgspec.json.encode(question)
        if not isinstance(asked, TargetSelector):
            return await asked.ask(sent)
        answer = asked.select(msgspec.json.decode(sent, type=SelectionQuestion))
        hold(isinstance(answer, SelectionAnswer), f"it returns a SelectionAnswer, not {answer!r}")
        return msgspec.json.encode(answer)

    async def answer(self, question: SelectionQuestion) -> Selection:
        """The outcome of the answer. One that Lehr refuses raises."""
        return judged(question, await self.content(question))


Rule = Callable[[Subject], Coroutine[Any, Any, None]]
RULES: Rules[Rule] = Rules()


def _passed(unit: Unit, now: float = EPOCH) -> Unit:
    return replace(unit, updated_at=now - 7200, validated_at=now - 3600, exposure_seconds=3600.0)


def _situations(subject: Subject) -> Iterator[list[Unit]]:
    """Units in all states, mixed in several ways."""
    fresh = subject.units()
    for shift in range(len(fresh)):
        mixed = []
        for number, unit in enumerate(fresh):
            match (number + shift) % 7:
                case 0:
                    mixed.append(_passed(unit))
                case 1:
                    mixed.append(replace(unit, updated_at=EPOCH - 60))
                case 2:
                    mixed.append(replace(unit, held="it is pinned"))
                case 3:
                    mixed.append(replace(unit, updated_at=EPOCH - 60, held="it is paused"))
                case 4:
                    mixed.append(replace(unit, new=True))
                case _:
                    mixed.append(unit)
        yield mixed
    yield fresh
    yield [_passed(unit) for unit in fresh]
    yield [replace(unit, held="it is pinned") for unit in fresh]


@RULES
async def its_answers_are_not_refused(subject: Subject) -> None:
    """It names only units that it was given, none that is updated or held, and keeps the limits."""
    for units in _situations(subject):
        for at_most in (None, 1, 3, "10%", "50%"):
            for new in ("in_wave", "after_first_pass"):
                question = subject.question(units, at_most=at_most, new=new)
                await subject.answer(question)  # which raises


@RULES
async def without_units_it_selects_nothing(subject: Subject) -> None:
    """It answers a question about no units."""
    answer = await subject.answer(subject.question(()))
    hold(not answer.update, f"of no units, it does not select {answer.update}")


@RULES
async def every_unit_has_a_reason(subject: Subject) -> None:
    """Each unit that could be updated and is not is in `others`, with a reason of one line."""
    for units in _situations(subject):
        question = subject.question(units, at_most=1)
        answer = msgspec.json.decode(await subject.content(question), type=SelectionAnswer)
        for unit in question.candidates:
            why = answer.others.get(unit.id, "")
            hold(unit.id in answer.update or bool(why), f"{unit.id} is selected, or has a reason")
            hold("\n" not in why, f"the reason of {unit.id} is one line")


@RULES
async def the_same_question_has_the_same_answer(subject: Subject) -> None:
    """It keeps no state: asked again, after other questions or after a restart, it answers the same."""
    selection = subject.make()
    questions = [subject.question(units, at_most=2) for units in _situations(subject)]
    first = [await subject.content(question, selection) for question in questions]
    second = [await subject.content(question, selection) for question in reversed(questions)]
    hold(first == second[::-1], "it answers the same twice")
    hold(first == [await subject.content(question) for question in questions], "a restart changes nothing")


@RULES
async def the_order_of_units_changes_nothing(subject: Subject) -> None:
    """Units may come in any order."""
    for units in _situations(subject):
        one = await subject.answer(subject.question(units, at_most=2))
        other = await subject.answer(subject.question(units[::-1], at_most=2))
        hold(one == other, f"units in another order have the same answer: {one}, not {other}")


@RULES
async def a_rollout_ends_or_names_what_holds_it(subject: Subject) -> None:
    """If every unit that it selects passes, all are updated in the end; or `hold` has the reason."""
    for at_most in (None, 1):
        units, now = subject.units(), EPOCH
        for _step in range(_MOST_STEPS):
            answer = await subject.answer(subject.question(units, now, at_most=at_most))
            if answer.done or answer.hold:
                break
            hold(
                bool(answer.update) or answer.ask_again_at is not None,
                f"with all updated units validated, it selects others, or has `ask_again_at`: {answer}",
            )
            now = max(now, answer.ask_again_at or now) + _DAY
            chosen = set(answer.update)
            units = [
                replace(unit, updated_at=now - 7200, validated_at=now - 3600) if unit.id in chosen else unit
                for unit in units
            ]
            units = [
                replace(unit, exposure_seconds=now - unit.validated_at) if unit.validated_at else unit
                for unit in units
            ]
        else:
            hold(False, f"of {len(units)} units, a rollout ends within {_MOST_STEPS} steps")


@RULES
async def it_waits_for_those_that_were_updated(subject: Subject) -> None:
    """While as many units are unvalidated as the limit allows, it selects none."""
    first, *rest = subject.units()
    question = subject.question([replace(first, updated_at=EPOCH - 60), *rest], at_most=1)
    answer = await subject.answer(question)
    hold(not answer.update, f"while {first.id} is not validated, it does not select {answer.update}")

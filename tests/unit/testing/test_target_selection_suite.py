"""The conformance suite of target selections finds what it claims to find."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from lehr.rollouts import TargetSelection, Wave, select
from lehr.sdk.target_selection import SelectionAnswer, SelectionQuestion, TargetSelector
from lehr.testing.conformance import target_selection as suite
from lehr.testing.conformance.target_selection import RULES, Rule, Subject


class OneByOne(TargetSelector):
    """One unit at a time, each once the one before it is validated."""

    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        if not question.units:
            return SelectionAnswer(hold="there are no units")
        unvalidated = any(unit.updated and not unit.validated for unit in question.units)
        ready = [] if unvalidated else [unit.id for unit in question.candidates][: min(1, question.room)]
        return SelectionAnswer(
            update=tuple(ready),
            others={unit.id: "not its turn" for unit in question.units if unit.id not in ready},
        )


class Shipped(TargetSelector):
    """What Lehr ships."""

    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        found = select(msgspec.convert(question.selection, TargetSelection), question.units, question.now)
        return msgspec.convert(msgspec.to_builtins(found), SelectionAnswer)


class Everything(OneByOne):
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        return SelectionAnswer(update=tuple(unit.id for unit in question.units))


class Invents(OneByOne):
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        return super().select(question) if question.units else SelectionAnswer(update=("lon",))


class Silent(OneByOne):
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        return replace(super().select(question), others={})


class Counts(OneByOne):
    asked = 0

    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        self.asked += 1
        return replace(super().select(question), notes=(f"question {self.asked}",))


class AsGiven(OneByOne):
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        found = super().select(question)
        ready = [unit.id for unit in question.units if unit in question.candidates][: len(found.update)]
        others = {unit.id: "not its turn" for unit in question.units if unit.id not in ready}
        return replace(found, update=tuple(ready), others=others)


class StopsAfterOne(OneByOne):
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        begun = any(unit.updated for unit in question.units)
        return SelectionAnswer() if begun else super().select(question)


class AlwaysOneMore(OneByOne):
    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        ready = tuple(unit.id for unit in question.candidates)[:1]
        return SelectionAnswer(update=ready)


BREAKS: list[tuple[Rule, type[TargetSelector]]] = [
    (suite.its_answers_are_not_refused, Everything),
    (suite.without_units_it_selects_nothing, Invents),
    (suite.every_unit_has_a_reason, Silent),
    (suite.the_same_question_has_the_same_answer, Counts),
    (suite.the_order_of_units_changes_nothing, AsGiven),
    (suite.a_rollout_ends_or_names_what_holds_it, StopsAfterOne),
    (suite.it_waits_for_those_that_were_updated, AlwaysOneMore),
]
WAVES = msgspec.to_builtins((Wave(units=1, soak_seconds=60.0), Wave(units="50%"), Wave()))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize(
    "subject", [Subject(OneByOne), Subject(Shipped), Subject(Shipped, {"waves": WAVES, "order": "id"})]
)
def test_a_good_selection_keeps_every_rule(rule: Rule, subject: Subject) -> None:
    asyncio.run(rule(subject))


@pytest.mark.parametrize(("rule", "broken"), BREAKS, ids=lambda value: value.__name__)
def test_a_selection_that_breaks_a_rule_is_caught_by_it(rule: Rule, broken: type[TargetSelector]) -> None:
    with pytest.raises(AssertionError, match=f"^{rule.__name__}: "):
        asyncio.run(rule(Subject(broken)))


def test_every_rule_of_selections_has_one_that_breaks_it() -> None:
    assert {rule for rule, _ in BREAKS} == set(RULES)

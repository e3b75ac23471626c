"""A selection of an installed package that hangs or fails: nothing is updated, and the cause has a code."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from click.testing import CliRunner

from lehr.base.blocking import Threads
from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.rollouts.services import Asked, ask, question_of
from lehr.sdk.target_selection import SelectionAnswer, SelectionQuestion, TargetSelector, Unit
from lehr.wiring.selection_services import InstalledSelection, selections

QUESTION = question_of([Unit(id="a"), Unit(id="b")], 1000.0, at_most=1)


class Selector(TargetSelector):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        if isinstance(self.answer, BaseException):
            raise self.answer
        answer: SelectionAnswer = self.answer
        return answer


class Hanging(TargetSelector):
    def __init__(self) -> None:
        self.end = threading.Event()

    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        self.end.wait(30)
        return SelectionAnswer(update=("a",))


def asked(selector: TargetSelector) -> Asked:
    return asyncio.run(ask(InstalledSelection("mine", selector, Threads("mine", 1), 30.0), QUESTION))


def test_its_answer_is_followed() -> None:
    assert asked(Selector(SelectionAnswer(update=("b",)))).selection.update == ("b",)


def test_what_it_must_not_update_is_refused() -> None:
    found = asked(Selector(SelectionAnswer(update=("a", "b"))))
    assert found.refused is not None
    assert (found.refused.code, found.selection.update) == ("ROL113", ())


def test_what_it_raises_is_the_cause() -> None:
    for wrong in (RuntimeError("a bug"), SystemExit(3), object(), "a"):
        found = asked(Selector(wrong))
        assert found.refused is not None
        assert found.refused.code in ("ROL101", "ROL105")
        assert found.selection.update == ()


def test_names_are_those_of_addresses_and_packages() -> None:
    known = selections({"mine": "http://127.0.0.1:9000/select"})
    assert known("mine").name == "http://127.0.0.1:9000/select"
    assert known("mine") is known("mine")
    for name, code in (("yours", "WIR102"), ("http://127.0.0.1:9000/select", "WIR107")):
        with pytest.raises(LehrError) as caught:
            known(name)
        assert caught.value.code == code


@pytest.mark.parametrize("given", ["mine", "=http://h/", "mine=ftp://h/", "mine=http://user:word@h/"])
def test_an_address_that_cannot_be_used_is_refused_before_anything_starts(given: str) -> None:
    done = CliRunner().invoke(cli, ["run", "--selection", given])
    assert done.exit_code == 2
    assert "--selection" in done.stderr


def test_one_that_hangs_is_left_and_not_asked_again_before_it_has_answered() -> None:
    async def main() -> None:
        hanging = Hanging()
        service = InstalledSelection("mine", hanging, Threads("mine", 1), 0.05)
        codes = []
        for _ in range(2):
            found = await ask(service, QUESTION)
            assert found.selection.update == ()
            codes.append(found.refused.code if found.refused else "")
        assert codes == ["WIR104", "WIR103"]
        hanging.end.set()
        await asyncio.wait_for(service.idle(), 30)
        assert (await ask(service, QUESTION)).selection.update == ("a",)

    asyncio.run(main())

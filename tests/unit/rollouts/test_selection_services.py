"""The answer of somebody else's selection: whatever it says, no more is updated than the limits allow."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.base.errors import LehrError
from lehr.rollouts.policy import RolloutPolicy
from lehr.rollouts.services import (
    MOST_ANSWER_BYTES,
    Answer,
    Asked,
    RefusedAnswerError,
    ask,
    judged,
    question_of,
)
from lehr.rollouts.units import Unit, count_of
from lehr.sdk.target_selection import SelectionQuestion

NOW = 1000.0
A, B, C = (Unit(id=id) for id in "abc")
QUESTION = question_of([A, B, C], NOW, at_most=2, settings={"regions": ["eu"]})


def answered(question: Any = QUESTION, **answer: Any) -> Any:
    return judged(question, json.dumps(answer).encode())


def refused(question: Any = QUESTION, **answer: Any) -> str:
    with pytest.raises(RefusedAnswerError) as caught:
        answered(question, **answer)
    return caught.value.code


class Answering:
    name = "example"

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = answer
        self.asked: list[bytes] = []

    async def ask(self, question: bytes) -> bytes:
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_sound_answer_is_followed() -> None:
    found = answered(update=["b"], others={"a": "not its turn"}, ask_again_at=NOW + 1, notes=["hello"])
    assert (found.update, found.ask_again_at, found.notes) == (("b",), NOW + 1, ("hello",))
    assert found.others == {"a": "not its turn", "c": "the selection gives no reason"}
    assert (found.done, found.hold) == (False, "")


def test_what_lehr_knows_of_a_unit_comes_before_what_the_selection_says() -> None:
    question = question_of([replace(A, updated_at=1.0), replace(B, held="it is pinned"), C], NOW)
    found = answered(question, update=["c"], others={"a": "lie", "b": "lie"})
    assert found.others == {"a": "it is updated, and not validated yet", "b": "it is pinned"}


def test_the_question_has_the_limits_and_the_settings() -> None:
    service = Answering(b"{}")
    asyncio.run(ask(service, QUESTION))
    sent = json.loads(service.asked[0])
    assert sent["selection"] == {"at_most": 2, "new": "in_wave", "regions": ["eu"]}
    assert sent["units"] == [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    assert sent["now"] == NOW
    with pytest.raises(ValueError, match="at_most"):
        question_of([A], NOW, settings={"at_most": 9})


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("ROL105", {"update": "a"}),
        ("ROL105", {"update": ["a"], "force": True}),
        ("ROL105", {"update": [1]}),
        ("ROL105", {"ask_again_at": "soon"}),
        ("ROL105", {"ask_again_at": 1e300}),
        ("ROL105", {"notes": ["x"] * 101}),
        ("ROL106", {"update": ["a", "z"]}),
        ("ROL106", {"others": {"z": "why"}}),
        ("ROL107", {"update": ["a", "a"]}),
        ("ROL108", {"update": ["a"], "others": {"a": "why"}}),
        ("ROL108", {"update": ["a"], "hold": "why"}),
        ("ROL106", {"overdue": ["z"]}),
        ("ROL121", {"overdue": ["a"]}),
        ("ROL109", {"ask_again_at": NOW}),
        ("ROL113", {"update": ["a", "b", "c"]}),
        ("ROL102", {"done": True}),
        ("ROL102", {"update": ["a"], "done": True}),
    ],
)
def test_a_lie_is_refused_with_its_cause(code: str, answer: dict[str, Any]) -> None:
    assert refused(**answer) == code


@pytest.mark.parametrize(
    ("code", "units", "limits"),
    [
        ("ROL110", [replace(A, updated_at=1.0), B], {}),
        ("ROL111", [replace(A, held="it is pinned"), B], {}),
        ("ROL112", [replace(A, new=True), B], {"new": "after_first_pass"}),
        ("ROL113", [A, replace(B, updated_at=1.0)], {"at_most": 1}),
    ],
)
def test_what_must_not_be_updated_is_not(code: str, units: list[Unit], limits: dict[str, Any]) -> None:
    assert refused(question_of(units, NOW, **limits), update=["a"]) == code


@pytest.mark.parametrize(
    "content", [b"", b"nothing", b"[1", b"{}{}", b'{"update": NaN}', b'{"hold": "", "hold": ""}', b"\xff"]
)
def test_what_is_not_json_is_refused(content: bytes) -> None:
    with pytest.raises(RefusedAnswerError) as caught:
        judged(QUESTION, content)
    assert caught.value.code == "ROL104"


@pytest.mark.parametrize("content", [b"[]", b"null", b"3", b'"x"', b"[" * 3000 + b"]" * 3000])
def test_what_is_not_an_answer_is_refused(content: bytes) -> None:
    with pytest.raises(RefusedAnswerError) as caught:
        judged(QUESTION, content)
    assert caught.value.code in ("ROL104", "ROL105")


def test_an_answer_is_bounded() -> None:
    with pytest.raises(RefusedAnswerError) as caught:
        judged(QUESTION, b" " * (MOST_ANSWER_BYTES + 1))
    assert caught.value.code == "ROL103"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (LehrError("it hangs", code="ROL114"), "ROL114"),
        (RuntimeError("a bug"), "ROL101"),
        (b"nothing", "ROL104"),
        (b'{"update": ["a", "b", "c"]}', "ROL113"),
    ],
)
def test_a_refused_answer_updates_nothing_and_names_its_cause(answer: Any, code: str) -> None:
    asked = asyncio.run(ask(Answering(answer), QUESTION))
    assert asked.refused is not None
    assert asked.refused.code == code
    assert (asked.selection.update, asked.selection.done) == ((), False)
    assert asked.selection.hold.startswith("selection example: ")
    assert asked.selection.others.keys() == {"a", "b", "c"}
    assert asked.content == (answer if isinstance(answer, bytes) else b"")


def test_text_of_an_answer_is_one_printable_line() -> None:
    found = answered(hold="wait\n\x1b[31mfor me", others={"a": "x" * 5000})
    assert found.hold == "wait |  [31mfor me"
    assert len(found.others["a"]) < 1100


def test_a_rollout_is_done_when_all_that_can_be_pushed_is_validated() -> None:
    passed = replace(A, updated_at=1.0, validated_at=2.0)
    question = question_of([passed, replace(B, held="it is pinned")], NOW)
    assert answered(question).done
    assert answered(question, done=True).done
    assert not answered(question, done=False).done
    assert not answered(question, hold="wait").done
    assert not answered(question_of([], NOW)).done
    assert refused(question_of([], NOW), done=True) == "ROL102"


def test_an_answer_counts_in_the_situation_that_it_is_about() -> None:
    asked = Asked(answered(update=["b"]), None, b'{"update": ["b"]}')
    answer = Answer(QUESTION, asked)
    later = question_of(
        [replace(A, exposure_seconds=9.0), B, C], NOW + 9, at_most=2, settings={"regions": ["eu"]}
    )
    assert (found := answer.to(later)) is not None
    assert found.update == ("b",)
    for other in (
        question_of([replace(A, updated_at=1.0), B, C], NOW, at_most=2, settings={"regions": ["eu"]}),
        question_of([A, replace(B, held="it is pinned"), C], NOW, at_most=2, settings={"regions": ["eu"]}),
        question_of([A, B], NOW, at_most=2, settings={"regions": ["eu"]}),
        question_of([A, B, C], NOW, at_most=1, settings={"regions": ["eu"]}),
        question_of([A, B, C], NOW, at_most=2, settings={"regions": ["us"]}),
    ):
        assert answer.to(other) is None


def test_exposure_without_end_can_be_sent() -> None:
    question = question_of([replace(A, exposure_seconds=float("inf"))], NOW)
    sent = msgspec.json.decode(msgspec.json.encode(question), type=SelectionQuestion)
    assert sent == question


@pytest.mark.parametrize(
    "wrong",
    [
        {"selected_by": {"service": "mine", "settings": {"at_most": 3}}},
        {"selected_by": {"service": "mine"}, "target_selection": {"waves": [{"units": 1}]}},
        {"selected_by": {"service": "mine"}, "target_selection": {"order": "id"}},
        {"selected_by": {"service": ""}},
    ],
)
def test_a_policy_has_either_waves_or_a_selection_of_its_own(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"select": {"ids": ["a"]}, **wrong}, RolloutPolicy)


IDS = st.sampled_from(["a", "b", "c", "d", "e", "z"])
UNITS = st.lists(
    st.builds(
        Unit,
        id=IDS.filter(lambda id: id != "z"),
        updated_at=st.none() | st.just(1.0),
        held=st.sampled_from(["", "", "it is pinned"]),
        new=st.booleans(),
    ).flatmap(
        lambda unit: st.sampled_from([unit, replace(unit, validated_at=2.0 if unit.updated else None)])
    ),
    unique_by=lambda unit: unit.id,
)
TEXTS = st.text(max_size=5)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "update": st.lists(IDS, max_size=4) | TEXTS,
        "others": st.dictionaries(IDS, TEXTS),
        "hold": st.just("") | TEXTS,
        "ask_again_at": st.none() | st.floats(0, 2000),
        "done": st.booleans(),
        "notes": st.lists(TEXTS),
        "wave": st.integers(-1, 3),
    },
)


LIMITS = st.none() | st.integers(1, 3) | st.just("40%")


@given(UNITS, LIMITS, st.sampled_from(["in_wave", "after_first_pass"]), ANSWERS)
def test_whatever_is_answered(units: list[Unit], at_most: Any, new: str, answer: dict[str, Any]) -> None:
    question = question_of(units, NOW, at_most=at_most, new=new)
    asked = asyncio.run(ask(Answering(json.dumps(answer).encode()), question))
    found, known = asked.selection, {unit.id: unit for unit in units}
    assert {*found.update, *found.others} == known.keys()
    assert len(set(found.update)) == len(found.update)
    chosen = [known[id] for id in found.update]
    assert not any(unit.updated or unit.held for unit in chosen)
    unvalidated = sum(unit.updated and not unit.validated for unit in units)
    assert not chosen or len(chosen) + unvalidated <= count_of(at_most, len(units))
    if new == "after_first_pass" and any(unit.new for unit in chosen):
        assert all(unit.new for unit in units) or any(unit.validated and not unit.new for unit in units)
    if found.done:
        assert units
        assert all(unit.validated or (unit.held and not unit.updated) for unit in units)
    assert asked.refused is None or (not found.update and found.hold)
    msgspec.json.encode(found)

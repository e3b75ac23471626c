"""Selections of other people: a question for one, and what its answer may lead to. Pure, but for the call.

Invariant: an answer is never trusted. It names units of the question only, none that must not be updated, and
no more than the limit allows; otherwise nothing is updated, and the cause has a code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from lehr.base import documents
from lehr.base.errors import LehrError
from lehr.base.text import listed, one_line, writable
from lehr.rollouts.selection import Selection
from lehr.sdk.target_selection import (
    MOST_SECONDS,
    Amount,
    SelectionAnswer,
    SelectionQuestion,
    SelectionService,
    Unit,
)

MOST_ANSWER_BYTES = 2**23
_MOST_CHARACTERS = 1000
UNANSWERED = "the selection has not answered yet"
_NO_REASON = "the selection gives no reason"
_FIX = "fix the service; nothing is updated until its answer can be used"


class RefusedAnswerError(LehrError):
    """The answer of a selection cannot be used: nothing is updated."""


class Asked(NamedTuple):
    """The outcome of a question.

    Attributes:
        selection: what follows from it. If the answer is refused: nothing, and `hold` has the cause.
        refused: why the answer is not used; None if it is.
        content: the answer as received, to be recorded; empty if there is none.
    """

    selection: Selection
    refused: LehrError | None = None
    content: bytes = b""


class Answer(NamedTuple):
    """The outcome of a question, and the question."""

    question: SelectionQuestion
    asked: Asked

    def to(self, question: SelectionQuestion) -> Selection | None:
        """The selection that it leads to for a question; None if that is about another situation."""
        if situation(question) != situation(self.question):
            return None
        if self.asked.refused is not None:
            return nothing(question, self.asked.selection.hold)
        return judged(replace(question, now=self.question.now), self.asked.content)


def situation(question: SelectionQuestion) -> SelectionQuestion:
    """A question without what time alone changes."""
    units = tuple(replace(unit, exposure_seconds=0.0, paused_seconds=0.0) for unit in question.units)
    return replace(question, units=units, now=0.0)


def question_of(
    units: Iterable[Unit],
    now: float,
    *,
    at_most: Amount | None = None,
    new: str = "in_wave",
    settings: Mapping[str, Any] | None = None,
) -> SelectionQuestion:
    """A question under limits that are those of Lehr, with settings that are those of the selection.

    Raises:
        ValueError: the settings contain a limit.
    """
    given = dict(settings or {})
    if both := sorted(given.keys() & {"at_most", "new"}):
        raise ValueError(f"settings of a selection contain {listed(both)}")
    limits = {"new": new} if at_most is None else {"at_most": at_most, "new": new}
    finite = tuple(replace(unit, exposure_seconds=min(unit.exposure_seconds, MOST_SECONDS)) for unit in units)
    return SelectionQuestion(units=finite, selection={**given, **limits}, now=now)


async def ask(service: SelectionService, question: SelectionQuestion) -> Asked:
    """Ask `service`; whatever it does, the outcome keeps the limits of the question."""
    content = b""
    try:
        content = await service.ask(msgspec.json.encode(question))
        return Asked(judged(question, content), None, content)
    except LehrError as error:
        return Asked(nothing(question, f"selection {service.name}: {error}"), error, content)
    except Exception as error:
        failed = RefusedAnswerError(
            "the selection failed", code="ROL101", why=f"{type(error).__name__}: {error}", fix=_FIX
        )
        return Asked(nothing(question, f"selection {service.name}: {failed}"), failed, content)


def judged(question: SelectionQuestion, content: bytes) -> Selection:
    """What follows from a recorded answer: the same each time.

    Raises:
        RefusedAnswerError: it cannot be used.
    """
    answer = _parsed(content)
    _require_sound(question, answer)
    _require_allowed(question, answer)
    chosen = set(answer.update)
    left = [unit for unit in question.units if unit.id not in chosen]
    over = all(unit.held if not unit.updated else unit.validated for unit in left) and not chosen
    if answer.done and not (over and question.units):
        busy = [unit.id for unit in left if not unit.held and not unit.validated] or list(answer.update)
        raise RefusedAnswerError(
            "the selection is not done, and its answer has `done: true`",
            code="ROL102",
            why=f"not updated and validated: {listed(busy)}" if busy else "there are no units",
            fix=_FIX,
        )
    return Selection(
        update=answer.update,
        others={unit.id: _reason(unit, answer.others.get(unit.id, _NO_REASON)) for unit in left},
        wave=answer.wave,
        waves=answer.waves,
        done=over and bool(question.units) and not answer.hold and answer.done is not False,
        hold=_text(answer.hold),
        ask_again_at=answer.ask_again_at,
        notes=tuple(map(_text, answer.notes)),
        overdue=answer.overdue,
    )


def nothing(question: SelectionQuestion, cause: str) -> Selection:
    """No unit is updated, because of `cause`."""
    why = _text(cause)
    others = {unit.id: _reason(unit, f"nothing is updated: {why}") for unit in question.units}
    return Selection(update=(), others=others, wave=0, waves=0, done=False, hold=why)


def _parsed(content: bytes) -> SelectionAnswer:
    if len(content) > MOST_ANSWER_BYTES:
        why = f"it has more than {MOST_ANSWER_BYTES:,} bytes"
        raise RefusedAnswerError("the answer of the selection is too large", code="ROL103", why=why, fix=_FIX)
    loaded = documents.load("answer.json", content)
    if loaded.diagnostics or len(loaded.documents) != 1:
        why = "; ".join(f"{item.what}: {item.why}".rstrip(": ") for item in loaded.diagnostics[:3])
        raise RefusedAnswerError(
            "the answer of the selection is not JSON", code="ROL104", why=why or "it is empty", fix=_FIX
        )
    try:
        return msgspec.convert(loaded.documents[0].value, SelectionAnswer)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RefusedAnswerError(
            "the answer of the selection has an unusable field", code="ROL105", why=str(error), fix=_FIX
        ) from error


def _require_sound(question: SelectionQuestion, answer: SelectionAnswer) -> None:
    """Raises `RefusedAnswerError` for an answer that contradicts the question, or itself."""
    known = {unit.id for unit in question.units}
    unknown = [id for id in (*answer.update, *answer.others, *answer.overdue) if id not in known]
    if unknown:
        raise RefusedAnswerError(
            "the selection names units that it was not given",
            code="ROL106",
            why=listed(sorted(set(map(_text, unknown)))),
            fix=_FIX,
        )
    twice = [id for id, count in Counter(answer.update).items() if count > 1]
    if twice:
        raise RefusedAnswerError(
            "the selection names units more than once", code="ROL107", why=listed(twice), fix=_FIX
        )
    both = [id for id in answer.update if id in answer.others]
    if both or (answer.update and answer.hold):
        why = f"both in `update` and in `others`: {listed(both)}" if both else "it has `update` and `hold`"
        raise RefusedAnswerError("the selection contradicts itself", code="ROL108", why=why, fix=_FIX)
    fresh = {unit.id for unit in question.units if not unit.updated}
    if fresh.intersection(answer.overdue):
        why = f"in `overdue`, and not updated: {listed(sorted(fresh.intersection(answer.overdue)))}"
        raise RefusedAnswerError("the selection contradicts the question", code="ROL121", why=why, fix=_FIX)
    if answer.ask_again_at is not None and answer.ask_again_at <= question.now:
        raise RefusedAnswerError(
            "the selection asks to be asked again in the past",
            code="ROL109",
            why=f"`ask_again_at` is {answer.ask_again_at:g}, and `now` was {question.now:g}",
            fix=_FIX,
        )


def _require_allowed(question: SelectionQuestion, answer: SelectionAnswer) -> None:
    """Raises `RefusedAnswerError` for an answer that updates what must not be updated, or too much (I10)."""
    units = {unit.id: unit for unit in question.units}
    updated = [id for id in answer.update if units[id].updated]
    if updated:
        raise RefusedAnswerError(
            "the selection updates units that are updated already",
            code="ROL110",
            why=listed(updated),
            fix=_FIX,
        )
    held = [id for id in answer.update if units[id].held]
    if held:
        raise RefusedAnswerError(
            "the selection updates units that cannot be pushed",
            code="ROL111",
            why=listed([f"{id} ({units[id].held})" for id in held]),
            fix=_FIX,
        )
    allowed = {unit.id for unit in question.candidates}
    early = [id for id in answer.update if id not in allowed]
    if early:
        raise RefusedAnswerError(
            "the selection updates new units before another one is validated",
            code="ROL112",
            why=listed(early),
            fix=_FIX,
        )
    if len(answer.update) > question.room:
        raise RefusedAnswerError(
            "the selection updates more units than the limit allows",
            code="ROL113",
            why=f"it updates {len(answer.update)}, and `at_most` leaves room for {question.room}",
            fix=_FIX,
        )


def _reason(unit: Unit, otherwise: str) -> str:
    """Why a unit is not updated now. Lehr's own reasons come first."""
    if unit.updated:
        return "it is updated and validated" if unit.validated else "it is updated, and not validated yet"
    return unit.held or _text(otherwise) or _NO_REASON


def _text(given: str) -> str:
    """Text of a stranger, such that it can be shown in one line."""
    return writable(one_line(writable(given)), _MOST_CHARACTERS)

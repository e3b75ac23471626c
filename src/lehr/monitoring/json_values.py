"""Values in a JSON document, by JSON pointer or CEL expression. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.moments import seconds_of
from lehr.base.pointers import parts_of
from lehr.cel import NoAnswerError, compile_expression
from lehr.model.monitoring import Cause, MetricError, Question, Sample


def samples_in(content: bytes, question: Question) -> list[Sample]:
    """The values of `question` in a document: each of a list, or of an object, is one.

    Raises:
        MetricError: it is not JSON, or does not have them.
    """
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        raise MetricError(Cause.UNREADABLE, "the answer is not JSON") from None
    at = _time(_found(document, question.at), question.at) if question.at else None
    found = _found(document, question.value)
    if isinstance(found, list):
        return [Sample(value, str(place), at) for place, value in enumerate(found)]
    if isinstance(found, dict):
        return [Sample(value, name, at) for name, value in found.items()]
    return [Sample(found, "", at)]


def _found(document: Any, where: str) -> Any:
    return _followed(document, where) if not where or where.startswith("/") else _computed(document, where)


def _followed(document: Any, pointer: str) -> Any:
    found = document
    for part in parts_of(pointer) if pointer else ():
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise MetricError(Cause.NO_DATA, f"the answer has nothing at {pointer}")
    return found


def _computed(document: Any, expression: str) -> Any:
    try:
        return compile_expression(expression, ("answer",)).answer({"answer": document})
    except (NoAnswerError, ValueError) as error:
        raise MetricError(Cause.NO_DATA, f"the expression has no value for the answer: {error}") from error


def _time(value: Any, where: str) -> float:
    try:
        if isinstance(value, str):
            return seconds_of(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise MetricError(Cause.UNREADABLE, f"{where} is not a time: neither Unix seconds nor RFC 3339")

"""Parameters of a request: from text to typed values, with all that is wrong with them at once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from lehr.base.errors import LehrError
from lehr.http.problems import ProblemError, meaning
from lehr.model.incarnation import Incarnation
from lehr.query.reading import Reading
from lehr.sdk.wire import ParameterProblem

Parameters = TypeVar("Parameters", bound=msgspec.Struct)

_LONGEST_NUMBER = 15


def parameters_of(kind: type[Parameters], given: Iterable[tuple[str, str]]) -> Parameters:
    """The parameters that were given, path and query alike.

    Raises:
        ProblemError: with whatever is wrong with any of them.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {}
    wrong: list[ParameterProblem] = []
    for name, text in given:
        if name not in fields:
            known = ", ".join(sorted(fields))
            wrong.append(ParameterProblem(name[:80], "there is no such parameter", f"known are {known}"))
        elif fields[name].name in found:
            wrong.append(ParameterProblem(name, "it is given more than once", "give it once"))
        elif "\0" in text:
            found[fields[name].name] = None
            wrong.append(ParameterProblem(name, "it has a NUL character in it", "leave that out"))
        else:
            try:
                found[fields[name].name] = msgspec.convert(text, type=fields[name].type, strict=False)
            except msgspec.ValidationError as error:
                found[fields[name].name] = None
                wrong.append(ParameterProblem(name, str(error)))
    wrong.extend(
        ParameterProblem(name, "it is not given", "add it")
        for name, field in fields.items()
        if field.required and field.name not in found
    )
    if wrong:
        raise ProblemError(
            "BadRequest",
            "the parameters are not right",
            why="; ".join(f"{item.parameter}: {item.why}" for item in wrong),
            fix="see /openapi.json for what there is",
            errors=wrong,
        )
    return kind(**found)


def incarnation_at(reading: Reading, at: str) -> Incarnation:
    """The incarnation that `at` names: a number, latest, previous, or a time in ISO 8601.

    Raises:
        ProblemError: there is none, or the name cannot be understood.
        PrunedError: it cannot be read any more.
    """
    if at.isdecimal() and len(at) > _LONGEST_NUMBER:
        raise ProblemError("NotFound", f"there is no incarnation {at[:40]}", fix="ask for /incarnations")
    if not at.isdecimal() and at not in ("latest", "previous"):
        moment = _moment(at)
        if moment is not None:
            at = str(_as_of(reading, moment))
        elif "@" not in at:
            raise ProblemError(
                "BadRequest",
                f"{at[:80]!r} names no incarnation and no time",
                fix="write 3, latest, previous, or a time such as 2026-01-31T12:00:00Z",
            )
    with meaning("NotFound"):
        return reading.incarnation(at)


def _moment(text: str) -> float | None:
    try:
        moment = dt.datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _as_of(reading: Reading, moment: float) -> int:
    """Sequence of the newest incarnation that was there at a time (wall-clock seconds)."""
    newest = reading.newest()
    low, high = 0, 0 if newest is None else newest.sequence
    while low < high:
        middle = (low + high + 1) // 2
        header = reading.intent.incarnation(reading.partition, middle)
        if header is not None and header.created_at <= moment:
            low = middle
        else:
            high = middle - 1
    if not low:
        raise ProblemError(
            "NotFound", "there was no incarnation at that time yet", fix="ask for a later time"
        )
    return low


def understood(error: LehrError, parameter: str) -> ProblemError:
    """An error in what one parameter says."""
    problem = ParameterProblem(parameter, error.why or error.what, error.fix)
    return ProblemError("BadRequest", error.what, why=error.why, fix=error.fix, errors=(problem,))

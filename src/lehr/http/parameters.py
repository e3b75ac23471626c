"""Parameters of a request: from text to typed values, reporting all problems at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec

from lehr.base.errors import LehrError
from lehr.base.moments import seconds_of
from lehr.client.wire import ParameterProblem
from lehr.http.problems import ProblemError
from lehr.model.asset import Partition
from lehr.model.incarnation import Incarnation
from lehr.query.list_cursor import parse_list_cursor
from lehr.query.partition_view import NoIncarnationError, Reading

Parameters = TypeVar("Parameters", bound=msgspec.Struct)


def parameters_of(kind: type[Parameters], given: Iterable[tuple[str, str]]) -> Parameters:
    """The given parameters, from path and query.

    Raises:
        ProblemError: with all problems of the parameters.
    """
    fields = _fields_of(kind)
    texts: dict[str, list[str]] = {}
    for name, text in given:
        texts.setdefault(name, []).append(text)
    found: dict[str, Any] = {}
    wrong: list[ParameterProblem] = []
    for name, every in texts.items():
        if name not in fields:
            known = ", ".join(sorted(fields))
            wrong.append(ParameterProblem(name[:80], "unknown parameter", f"known parameters: {known}"))
            continue
        found[fields[name].name] = None
        try:
            found[fields[name].name] = _value(fields[name].type, every)
        except _WrongError as error:
            wrong.append(ParameterProblem(name, error.why, error.fix))
    wrong.extend(
        ParameterProblem(name, "it is missing", "add it")
        for name, field in fields.items()
        if field.required and field.name not in found
    )
    if wrong:
        raise _not_right(wrong)
    return kind(**found)


class _WrongError(Exception):
    """A value that a parameter does not accept."""

    def __init__(self, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.fix = fix


def _value(kind: Any, texts: Sequence[str]) -> Any:
    """The value of a parameter of type `kind`: a tuple can be given more than once."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    repeated = get_origin(bare) is tuple
    if len(texts) > 1 and not repeated:
        raise _WrongError("it is given more than once", "give it once")
    if any("\0" in text for text in texts):
        raise _WrongError("it contains a NUL character", "remove it")
    try:
        return msgspec.convert(texts if repeated else texts[0], type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise _WrongError(str(error)) from error


def _not_right(wrong: Sequence[ParameterProblem]) -> ProblemError:
    return ProblemError(
        "BadRequest",
        "invalid parameters",
        code="HTP103",
        why="; ".join(f"{item.parameter}: {item.why}" for item in wrong),
        fix="/openapi.json describes all parameters",
        errors=wrong,
    )


def each_of(*asked: Callable[[], Any]) -> list[Any]:
    """The results of these functions, each of which checks a different parameter.

    Raises:
        ProblemError: with all problems of the parameters.
    """
    found: list[Any] = []
    refused: list[ProblemError] = []
    for ask in asked:
        try:
            found.append(ask())
        except ProblemError as error:
            refused.append(error)
    wrong = [item for error in refused for item in error.errors]
    if len(wrong) > 1:
        raise _not_right(wrong)
    if refused:
        raise min(refused, key=lambda error: not error.errors)  # a missing one is reported later
    return found


@functools.cache
def _fields_of(kind: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Fields by the names of parameters; computing them takes as long as reading an asset."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def incarnation_at(reading: Reading, at: str, parameter: str = "at") -> Incarnation:
    """The incarnation that `at` names, as parsed by `Reading.incarnation`.

    Args:
        parameter: that held `at`.

    Raises:
        ProblemError: it does not exist, or the name cannot be parsed.
        PrunedError: it can no longer be read.
    """
    try:
        return reading.incarnation(at)
    except NoIncarnationError as error:
        raise ProblemError("NotFound", error.what, code=error.code, why=error.why, fix=error.fix) from error
    except LehrError as error:
        if type(error) is not LehrError:
            raise
        raise understood(error, parameter) from error


def continued(cursor: str, name: str, partition: Partition) -> tuple[int, str] | None:
    """Where the list `name` of a partition continues; None for its beginning.

    Raises:
        ProblemError: it is not a cursor of this list.
    """
    try:
        return parse_list_cursor(cursor, name, partition) if cursor else None
    except LehrError as error:
        raise understood(error, "cursor") from error


def moment_of(text: str, parameter: str) -> float:
    """The moment that a parameter names.

    Raises:
        ProblemError: it is not a time in RFC 3339.
    """
    try:
        return seconds_of(text)
    except (ValueError, OverflowError) as error:
        fix = "write it as 2026-01-31T12:00:00Z"
        raise understood(
            LehrError(f"{text!r} is not a valid time", code="HTP104", why=str(error), fix=fix), parameter
        ) from error


def understood(error: LehrError, parameter: str) -> ProblemError:
    """An error in one parameter."""
    problem = ParameterProblem(parameter, error.why or error.what, error.fix)
    return ProblemError(
        "BadRequest", error.what, code=error.code, why=error.why, fix=error.fix, errors=(problem,)
    )

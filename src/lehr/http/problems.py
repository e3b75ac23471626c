"""Errors as problem+json (RFC 9457)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec

from lehr.base.errors import LehrError, TransientError
from lehr.client.wire import LIST_AGAIN, PROBLEM_TYPE, ParameterProblem, Problem
from lehr.model.reason import Reason
from lehr.sdk.store import PrunedError
from lehr.sdk.watch import ListAgainError

MEDIA_TYPE = "application/problem+json"

STATUS = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "Timeout": 408,
    "TooSlow": 408,
    Reason.PRUNED: 410,
    LIST_AGAIN: 410,
    "ContentTooLarge": 413,
    "UriTooLong": 414,
    "UnsupportedMediaType": 415,
    "WrongHost": 421,
    "TooLong": 431,
    "Defect": 500,
    "StoreTrouble": 500,
    "Unavailable": 503,
    "Busy": 503,
}
"""All codes with their status."""

_HOW_TO_BE_ADMITTED = (
    "in a browser, use the link of `lehr open`; elsewhere, set LEHR_TOKEN to what `lehr state token` "
    "prints on the machine of the server"
)

_CLOSING = frozenset({400, 401, 408, 413, 414, 415, 431})
"""The rest of the request may still arrive, and is not read."""


class ProblemError(LehrError):
    """A request that is answered with a problem.

    Attributes:
        kind: one of `STATUS`.
        errors: the problem of each parameter.
    """

    def __init__(
        self,
        kind: str,
        what: str,
        *,
        code: str = "",
        why: str = "",
        fix: str = "",
        errors: Sequence[ParameterProblem] = (),
    ) -> None:
        super().__init__(what, code=code, why=why, fix=fix)
        self.kind = kind
        self.errors = tuple(errors)


@contextlib.contextmanager
def meaning(kind: str, fix: str = "") -> Iterator[None]:
    """Errors that only state what is wrong become this kind, with `fix` if they have none."""
    try:
        yield
    except LehrError as error:
        if type(error) is not LehrError:
            raise
        raise ProblemError(kind, error.what, code=error.code, why=error.why, fix=error.fix or fix) from error


def problem_of(error: LehrError) -> Problem:
    """The problem for an error."""
    match error:
        case ProblemError():
            return problem(error.kind, error.what, error.why, error.fix, error.errors, error.code)
        case ListAgainError():
            return problem(LIST_AGAIN, error.what, error.why, error.fix, error=error.code)
        case PrunedError():
            return problem(Reason.PRUNED, error.what, error.why, "request one that is kept", error=error.code)
        case TransientError():
            fix = error.fix or "try again"
            return problem("Unavailable", error.what, error.why, fix, error=error.code)
        case _:
            return problem("StoreTrouble", error.what, error.why, error.fix, error=error.code)


def problem(
    code: str,
    what: str,
    why: str = "",
    fix: str = "",
    errors: Sequence[ParameterProblem] = (),
    error: str = "",
) -> Problem:
    """The problem with this code; `error` is the code of the underlying error."""
    return Problem(f"{PROBLEM_TYPE}{code}", what, STATUS[code], code, why, fix, tuple(errors), error)


def too_long(most: int) -> Problem:
    """The problem for headers of more than `most` bytes."""
    why = f"request line and headers are longer than {most:,} bytes"
    return problem("TooLong", "the headers are too long", why, "send fewer")


def uri_too_long(most: int) -> Problem:
    """The problem for a request line of more than `most` bytes."""
    why = f"the request line is longer than {most:,} bytes"
    return problem("UriTooLong", "the request is too long", why, "request less at a time")


def unauthorized(*, sent: bool) -> Problem:
    """The problem of a request without the token, or, if one was `sent`, with another one."""
    why = "the token that was sent is not the one of its state" if sent else "no token was sent"
    return problem(
        "Unauthorized",
        "this server answers only to the token of its state",
        why,
        _HOW_TO_BE_ADMITTED,
        error="HTP138",
    )


def untrusted() -> ProblemError:
    """The problem of a dry run that a reader without the token asks for."""
    return ProblemError(
        "Unauthorized",
        "dry runs are answered only to the token of the state, also with --public-read",
        code="HTP146",
        why="they make plugins compare production",
        fix=_HOW_TO_BE_ADMITTED,
    )


def ticket_refused() -> Problem:
    """The problem of a link that does not open the page."""
    why = "it was used already, or is more than five minutes old, or is not complete"
    return problem("Unauthorized", "this link no longer works", why, "run `lehr open` again", error="HTP139")


def encoded(found: Problem) -> bytes:
    """The response body."""
    return msgspec.json.encode(found)


def headers_of(found: Problem) -> dict[str, str]:
    """The response headers."""
    headers = {"cache-control": "no-store", "content-type": MEDIA_TYPE}
    if found.status in _CLOSING:
        headers["connection"] = "close"
    if found.status == STATUS["Busy"]:
        headers["retry-after"] = "1"
    return headers

"""`POST /v1/select`: which units a rollout would update now.

The question and the answer are those of `lehr select -o json`. The answer depends on the question alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from starlette.requests import Request

from lehr.base import documents
from lehr.base.clock import Clock
from lehr.base.pointers import pointer
from lehr.client.wire import ParameterProblem
from lehr.generate.typing.problems import problems_of
from lehr.http.limits import Limits
from lehr.http.problems import ProblemError
from lehr.http.readers import Readers
from lehr.rollouts import Selection
from lehr.rollouts import select as selected
from lehr.rollouts.question import Question, problems_of_question

SELECT_PATH = "/v1/select"
SUMMARY = "Which units a rollout would update now, and why not the others. Nothing is changed."

_JSON = "application/json"
_MOST_PROBLEMS = 100
_LONGEST_LENGTH = 12


class Selecting:
    """Answers questions to target selection.

    Invariant: questions are bounded in number, size and time, and are answered one at a time.
    """

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limits = limits
        self._open = 0

    async def answer(self, request: Request, readers: Readers, client: str) -> bytes:
        """The encoded answer to a request; `readers` run the work, and clients take turns.

        Raises:
            ProblemError: the question cannot be read or used, or there are too many.
        """
        _require_json(request.headers)
        with self._one_more():
            content = await self._body(request)
            return await readers.run(lambda: self._selected(content), client)

    @contextlib.contextmanager
    def _one_more(self) -> Iterator[None]:
        if self._open >= self._limits.questions:
            raise ProblemError(
                "Busy",
                "too many questions to target selection",
                code="HTP129",
                why=f"{self._open} are being answered",
                fix="try again in a second",
            )
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def _body(self, request: Request) -> bytes:
        most = self._limits.question_bytes
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > _LONGEST_LENGTH or int(length) > most:
            raise _too_large(most)
        content = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    content += part
                    if len(content) > most:
                        raise _too_large(most)
        except TimeoutError as error:
            raise ProblemError(
                "Timeout", "the question did not arrive in time", code="HTP130", fix="send it without delay"
            ) from error
        return bytes(content)

    def _selected(self, content: bytes) -> bytes:
        """Runs in a thread."""
        deadline = self._clock.monotonic() + self._limits.select_seconds

        def check_time() -> None:
            if self._clock.monotonic() > deadline:
                raise ProblemError(
                    "TooSlow",
                    "the selection takes too long",
                    code="HTP131",
                    why=f"it is not finished after {self._limits.select_seconds:g} seconds",
                    fix="ask with fewer units or waves, or a simpler order, or run `lehr select`",
                )

        question = _question(content)
        _require_none(
            ParameterProblem(pointer(item.path), _sentence(item.what, item.why), item.fix)
            for item in problems_of_question(question, check_time)
        )
        now = self._clock.now() if question.now is None else question.now
        found: Selection = selected(question.selection, question.units, now, check_time)
        return msgspec.json.encode(found)


def _question(content: bytes) -> Question:
    loaded = documents.load("question.json", content)
    _require_none(
        ParameterProblem(
            "", _sentence(f"line {item.at.line}: {item.what}" if item.at else item.what, item.why)
        )
        for item in loaded.diagnostics
    )
    value: Any = loaded.documents[0].value if len(loaded.documents) == 1 else None
    if not isinstance(value, dict):
        _require_none([ParameterProblem("", "it is not an object", "send a JSON object with `units`")])
    _require_none(
        ParameterProblem(item.pointer, _sentence(item.what, item.why), item.fix)
        for item in problems_of(value, Question, "the question")
    )
    return msgspec.convert(value, Question)


def _require_none(found: Iterable[ParameterProblem]) -> None:
    """Raises `ProblemError` with all of these, or the first 100, by their JSON pointers into the body."""
    wrong = list(found)
    if not wrong:
        return
    shown, more = wrong[:_MOST_PROBLEMS], len(wrong) - _MOST_PROBLEMS
    raise ProblemError(
        "BadRequest",
        "the question cannot be used" + (f"; {more} more problems" if more > 0 else ""),
        code="HTP132",
        why="; ".join(f"{item.parameter or 'body'}: {item.why}" for item in shown),
        fix="/openapi.json describes questions",
        errors=shown,
    )


def _sentence(what: str, why: str) -> str:
    return f"{what}: {why}" if why else what


def _require_json(headers: Mapping[str, str]) -> None:
    """Raises `ProblemError` for other content. A web page cannot send JSON to another origin."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != _JSON:
        raise ProblemError(
            "UnsupportedMediaType",
            f"{media[:80] or 'a body without a Content-Type'} is not supported",
            code="HTP133",
            fix=f"send {_JSON}",
        )


def _too_large(most: int) -> ProblemError:
    return ProblemError(
        "ContentTooLarge", "the question is too large", code="HTP134", why=f"it has more than {most:,} bytes"
    )

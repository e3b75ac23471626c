"""The paths of the page, and its answers."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lehr.base.clock import Clock
from lehr.base.errors import DEFECT, LehrError
from lehr.base.log import Log
from lehr.client.wire import Problem
from lehr.http.application import Answers, Page
from lehr.http.problems import ProblemError, problem, problem_of
from lehr.http.request_headers import takes_gzip
from lehr.page.api import NONE, InPartition, Parameters
from lehr.page.rendering import path, render
from lehr.page.screens import NAVIGATION, SCREENS, Screen

log = Log()

_PARAMETER = re.compile(r"\{(\w+)\}")
_FILES = {"lehr.css": "text/css", "lehr.js": "text/javascript", "lehr.svg": "image/svg+xml"}
_DIGITS = 12
_WORTH_PACKING = 1400
"""Bytes that fit into one packet anyway."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
"""They keep a text in a page from doing anything there."""


class _Asking:
    """`Api` on behalf of a request."""

    def __init__(self, answers: Answers, request: Request) -> None:
        self._answers = answers
        self._request = request

    async def get(self, name: str, parameters: Parameters = NONE) -> Any:
        return await self._answers.value(self._request, name, parameters)

    async def compares(self, partition: str) -> bool:
        return await self._answers.compares(self._request, partition)


def pages(answers: Answers, clock: Clock) -> Page:
    """All paths of the page, which show what resources answer."""
    shown = _Pages(answers, clock)
    found = [Route("/", shown.start, methods=["GET"])]
    found += [
        Route(f"/p/{{partition}}{_with_slashes(item.path)}", shown.answer(item), methods=["GET"])
        for item in SCREENS
    ]
    found.append(Route("/p/{partition}/{rest:path}", shown.missing, methods=["GET"]))
    found += [Route(static_paths()[name], _file(name), methods=["GET"]) for name in _FILES]
    return Page(found, shown.refused)


def _with_slashes(path: str) -> str:
    """Ids have slashes."""
    return path.replace("{id}", "{id:path}")


# --- files --------------------------------------------------------------------------------


@cache
def _content(name: str) -> bytes:
    return (files("lehr.page") / "static" / name).read_bytes()


@cache
def static_paths() -> Mapping[str, str]:
    """The path of each file: another one when its content is another."""
    return {name: f"/static/{hashlib.sha256(_content(name)).hexdigest()[:_DIGITS]}/{name}" for name in _FILES}


def _file(name: str) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        headers = {**HEADERS, "cache-control": "public, max-age=31536000, immutable"}
        return _packed(request, _content(name), 200, headers, _FILES[name])

    return answer


def _packed(
    request: Request, content: bytes, status: int, headers: Mapping[str, str], media_type: str
) -> Response:
    """A response, compressed if the browser takes that."""
    given = {**headers, "vary": "accept-encoding"}
    if len(content) > _WORTH_PACKING and takes_gzip(request.headers.get("accept-encoding", "")):
        given["content-encoding"] = "gzip"
        content = gzip.compress(content, 1, mtime=0)
    return Response(content, status, given, media_type)


# --- pages --------------------------------------------------------------------------------


class _Pages:
    def __init__(self, answers: Answers, clock: Clock) -> None:
        self._answers = answers
        self._clock = clock

    async def start(self, request: Request) -> Response:
        """The partition, if there is only one; otherwise a list."""
        try:
            partitions = await _Asking(self._answers, request).get("partitions")
        except LehrError as error:
            return self.refused(request, problem_of(error))
        if len(partitions) == 1:
            return RedirectResponse(path("p", partitions[0]["name"]), 303, HEADERS)
        return self._page(request, "partitions.html", {"partitions": partitions})

    async def missing(self, request: Request) -> Response:
        """There is no such screen."""
        about = {"partition": request.path_params["partition"]}
        found = problem("NotFound", f"there is no page {request.url.path[:200]}")
        return self.refused(request, found, about)

    def answer(self, screen: Screen) -> Callable[[Request], Any]:
        """The endpoint of a screen."""

        async def answer(request: Request) -> Response:
            partition = request.path_params["partition"]
            about = {
                "partition": partition,
                "current": screen.under or screen.name,
                "still": screen.still,
            }
            try:
                asked = _asked(screen, request)
                shown = await screen.read(InPartition(_Asking(self._answers, request), partition), asked)
                return self._page(request, f"{screen.name}.html", {**about, **shown})
            except LehrError as error:
                return self.refused(request, problem_of(error), about)
            except Exception as error:
                log.error("a page failed with an internal error", exc_info=error)
                why = f"{type(error).__name__}: {error}"
                found = problem("Defect", "internal error", why, "please report it", error=DEFECT)
                return self.refused(request, found, about)

        return answer

    def refused(self, request: Request, found: Problem, about: Mapping[str, Any] = NONE) -> Response:
        """The page that shows a problem."""
        blank = {"detail": "", "fix": "", "errors": [], "error": ""}
        shown = {**blank, **msgspec.to_builtins(found)}
        shown["errors"] = [{"fix": "", **item} for item in shown["errors"]]
        return self._page(request, "error.html", {**about, "problem": shown}, found.status)

    def _page(
        self, request: Request, template: str, values: Mapping[str, Any], status: int = 200
    ) -> Response:
        now = self._clock.now()
        common = {
            "partition": "",
            "current": "",
            "title": "",
            "still": False,
            "navigation": NAVIGATION,
            "static": static_paths(),
        }
        text = render(template, now, {**common, **values})
        headers = {**HEADERS, "cache-control": "no-store"}
        return _packed(request, text.encode(), status, headers, "text/html; charset=utf-8")


def _asked(screen: Screen, request: Request) -> dict[str, str]:
    """The parameters of a request.

    Raises:
        ProblemError: one of them is unknown.
    """
    unknown = sorted({*request.query_params} - screen.query)
    if unknown:
        raise ProblemError("BadRequest", f"unknown parameter {unknown[0]}", fix="omit it", code="PAG101")
    given = {name: request.path_params[name] for name in _PARAMETER.findall(screen.path)}
    return {**request.query_params, **given}

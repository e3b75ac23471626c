"""From a request to an answer."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.http import problems
from lehr.http.asking import parameters_of
from lehr.http.describing import HEALTH_PATH, OPENAPI_PATH, WATCH_PATH, Health, openapi
from lehr.http.hooks import HOOK_PATH, Hook
from lehr.http.limits import Limits
from lehr.http.problems import ProblemError, problem, problem_of
from lehr.http.questions import Installation, Question, Resource
from lehr.http.readers import Readers
from lehr.http.records import RECORDS
from lehr.http.resources import RESOURCES
from lehr.http.watching import OfWatch, Watches
from lehr.sdk.wire import Problem
from lehr.store import Store

log = structlog.get_logger()

Abort = Callable[[Scope], None]
"""Breaks the connection that a request came by."""

_WORTH_PACKING = 1400
"""Bytes that go into one packet anyway."""

_JSON = "application/json"


class Application:
    """Answers requests to read.

    Attributes:
        watches: all that are going on.
    """

    def __init__(
        self,
        readers: Readers,
        watches: Watches,
        installation: Installation,
        clock: Clock,
        limits: Limits,
        abort: Abort,
        alive: Callable[[], bool],
        hook: Hook | None = None,
    ) -> None:
        """With a `hook`, a request to look at the source is taken."""
        self.watches = watches
        self._readers = readers
        self._installation = installation
        self._clock = clock
        self._limits = limits
        self._abort = abort
        self._alive = alive
        self._hook = hook

    def asgi(self, resources: Sequence[Resource] = (*RESOURCES, *RECORDS)) -> ASGIApp:
        """The application as an ASGI server runs it."""
        described = msgspec.json.encode(openapi(resources))
        routes = [Route(_route(item.path), self._endpoint(item), methods=["GET"]) for item in resources]
        routes += [
            Route(WATCH_PATH, _Watching(self), methods=["GET"]),
            Route(HEALTH_PATH, self._health, methods=["GET"]),
            Route(OPENAPI_PATH, lambda request: Response(described, media_type=_JSON), methods=["GET"]),
        ]
        if self._hook is not None:
            routes.append(Route(HOOK_PATH, self._take_hook, methods=["POST"]))
        handlers = {LehrError: _refused, HTTPException: _misdirected, Exception: _defect}
        starlette = Starlette(routes=routes, exception_handlers=handlers)

        async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
            too_long = _head_bytes(scope) > self._limits.head_bytes  # it may have come in one piece
            app = _response(problems.too_long(self._limits.head_bytes)) if too_long else starlette
            await app(scope, receive, send)

        return bounded

    def _endpoint(self, resource: Resource) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            asked = parameters_of(resource.parameters, given(request))
            tags = request.headers.get("if-none-match", "")
            packed = "gzip" in request.headers.get("accept-encoding", "")
            return await self._readers.ask(
                lambda store: self._answer(resource, asked, store, tags, packed=packed)
            )

        return answer

    def _answer(self, resource: Resource, asked: Any, store: Store, tags: str, *, packed: bool) -> Response:
        """In a thread: all that takes time, packing included."""
        question = Question(store, self._clock, self._limits, self._installation)
        answer = resource.answer(question, asked)
        headers = {"cache-control": "no-cache", "vary": "accept-encoding"}
        if answer.tag:
            headers["etag"] = f'W/"{answer.tag}"'
            if headers["etag"] in tags:
                return Response(status_code=304, headers=headers)
        content = msgspec.json.encode(answer.make())
        if packed and len(content) > _WORTH_PACKING:
            headers["content-encoding"] = "gzip"
            content = gzip.compress(content, 1, mtime=0)
        return Response(content, headers=headers, media_type=_JSON)

    async def _health(self, _request: Request) -> Response:
        found = await self._readers.ask(
            lambda store: Health("ok", len(store.intent.partitions()), self._alive())
        )
        return Response(msgspec.json.encode(found), media_type=_JSON)

    async def _take_hook(self, request: Request) -> Response:
        assert self._hook is not None
        await self._hook.take(request.headers, request.stream())
        # Of a body that was not read, more may come.
        return Response(status_code=202, headers={"connection": "close"})

    async def watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to watch."""
        asked = parameters_of(OfWatch, given(Request(scope)))
        await self.watches.serve(asked, receive, send, lambda: self._abort(scope))


class _Watching:
    """The endpoint of watches, which are streams."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application.watch(scope, receive, send)


def given(request: Request) -> list[tuple[str, str]]:
    """All parameters of a request; the body of one that has one is refused.

    Raises:
        ProblemError: it has a body.
    """
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise ProblemError("BadRequest", "there is a body, and nothing is written here", fix="leave it out")
    return [(str(name), str(value)) for name, value in request.path_params.items()] + list(
        request.query_params.multi_items()
    )


def _head_bytes(scope: Scope) -> int:
    """Bytes of request line and headers."""
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return len(scope["raw_path"]) + len(scope["query_string"]) + headers


def _route(path: str) -> str:
    return path.replace("{id}", "{id:path}")


def _response(found: Problem) -> Response:
    headers = {"cache-control": "no-store"}
    if found.status in (400, 401, 408, 431):
        headers["connection"] = "close"  # a body may be still to come, and nobody reads it
    if found.status == 503:
        headers["retry-after"] = "1"
    content = problems.encoded(found)
    return Response(content, found.status, headers, media_type=problems.MEDIA_TYPE)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, LehrError)
    found = problem_of(error)
    if found.status == 500:
        log.warning("a request could not be answered", error=str(error))
    return _response(found)


async def _misdirected(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "MethodNotAllowed" if error.status_code == 405 else "NotFound"
    what = f"{request.method} {request.url.path[:200]}: {error.detail}"
    found = _response(problem(code, what, fix=f"see {OPENAPI_PATH} for what there is"))
    for name, value in (error.headers or {}).items():
        found.headers[name] = value
    if request.method not in ("GET", "HEAD"):
        found.headers["connection"] = "close"
    return found


async def _defect(_request: Request, error: Exception) -> Response:
    why = f"{type(error).__name__}: {error}"
    log.error("a request has met a defect", exc_info=error)
    return _response(problem("Defect", "Lehr has a defect", why, "please report it"))

"""From a request to a response."""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lehr.base.clock import Clock
from lehr.base.errors import DEFECT, LehrError
from lehr.base.log import Log
from lehr.base.moments import encode
from lehr.client.wire import Problem
from lehr.http import event_streams, problems
from lehr.http.access import SIGN_IN_PATH, Access
from lehr.http.catalogue import CATALOGUE
from lehr.http.dry_run_queue import ask_dry
from lehr.http.hooks import HOOK_PATH, Hook
from lehr.http.kept import Kept
from lehr.http.limits import Limits
from lehr.http.openapi import EVENTS_PATH, OPENAPI_PATH, WATCH_PATH, of_server, openapi
from lehr.http.outgoing_responses import Abort, Outbound, Outgoing
from lehr.http.parameters import parameters_of
from lehr.http.probes import Probe, probe_routes
from lehr.http.problems import ProblemError, problem, problem_of
from lehr.http.questions import Installation, NoParameters, Question, Resource, RunStates
from lehr.http.readers import Pools, Readers
from lehr.http.request_headers import accepts, host_is_known, knows, takes_gzip
from lehr.http.streams import Streams
from lehr.http.target_selection import SELECT_PATH, Selecting
from lehr.http.watch_streams import MEDIA_TYPE, OfWatch, Watches
from lehr.model.asset import Partition
from lehr.query.filters import Filter
from lehr.sdk.store import Store

T = TypeVar("T")

log = Log()

_WORTH_PACKING = 1400
"""Bytes that fit into one packet anyway."""


class Answers(Protocol):
    """The part of `Application` that pages use."""

    async def value(self, request: Request, name: str, parameters: Mapping[str, str]) -> Any:
        """As `Application.value`."""
        ...

    async def compares(self, request: Request, partition: str) -> bool:
        """As `Application.compares`."""
        ...


class Page(NamedTuple):
    """Paths that are not resources, but show people what resources answer.

    Attributes:
        problem: shows why there is no answer.
    """

    routes: list[Route]
    problem: Callable[[Request, Problem], Response]


Pages = Callable[[Answers, Clock], Page]

_GO_ON = """\
<!doctype html>
<html lang="en">
<title>Lehr</title>
<meta http-equiv="refresh" content="0; url={place}">
<a href="{place}">Continue</a>
"""

_PATH_HERE = re.compile(r"/(?![/\\])[!-~]*")
"""A path of this server: two slashes would begin with a host."""

_JSON = "application/json"
_LOOPBACK = ("127.0.0.1", "::1")


class Watching(NamedTuple):
    """Responses without end.

    Attributes:
        streams: all of them.
    """

    watches: Watches
    events: event_streams.Events
    streams: Streams


class Application:
    """Answers read requests.

    Attributes:
        watching: all active streams.
    """

    def __init__(
        self,
        readers: Pools,
        watching: Watching,
        installation: Installation,
        clock: Clock,
        limits: Limits,
        abort: Abort,
        run_state: RunStates,
        hook: Hook | None = None,
        names: frozenset[str] | None = None,
        probes: Mapping[str, Probe] | None = None,
        pages: Pages | None = None,
        access: Access | None = None,
    ) -> None:
        """With a `hook`, webhooks are accepted; the other arguments are those of `serving`."""
        self.watching = watching
        self._readers = readers
        self._installation = installation
        self._clock = clock
        self._limits = limits
        self._abort = abort
        self._outgoing = Outgoing(limits, abort)
        self._run_state = run_state
        self._hook = hook
        self._names = names
        self._probes = probes or {}
        self._page = None if pages is None else pages(self, clock)
        self._access = access
        self._named: dict[str, Resource] = {}
        self._selecting = Selecting(clock, limits)
        self._kept = Kept()

    def routes(self) -> list[Route]:
        """All resources."""
        described = msgspec.Raw(msgspec.json.encode(openapi(CATALOGUE)))
        everything = (*CATALOGUE, *of_server(self._run_state, described))
        self._named = {item.name: item for item in everything}
        found = probe_routes(self._probes)  # before the resource at the same path
        found += [
            Route(item.path.replace("{id}", "{id:path}"), self._endpoint(item), methods=["GET"])
            for item in everything
        ]
        found.append(Route(WATCH_PATH, _Streaming(self.watch), methods=["GET"]))
        found.append(Route(EVENTS_PATH, _Streaming(self.follow), methods=["GET"]))
        found.append(Route(SELECT_PATH, self._select, methods=["POST"]))
        if self._hook is not None:
            found.append(Route(HOOK_PATH, self._take_hook, methods=["POST"]))
        if self._page is not None:
            found.append(Route(SIGN_IN_PATH, self._sign_in, methods=["GET"]))
            found += self._page.routes
        return found

    def asgi(self) -> ASGIApp:
        """The application as called by an ASGI server."""
        handlers = {
            LehrError: _refused,
            HTTPException: _misdirected,
            ClientDisconnect: _gone,
            Exception: _defect,
        }
        starlette = Starlette(routes=self.routes(), exception_handlers=handlers)
        starlette.router.redirect_slashes = False  # for any `Host`; the path does not exist

        async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
            refused = self._refused(scope)
            app = starlette if refused is None else self._refusal(Request(scope), refused)
            await app(scope, receive, send)

        return bounded

    def _refused(self, scope: Scope) -> Problem | None:
        """Why a request is rejected before it is processed."""
        line = len(scope["raw_path"]) + len(scope["query_string"])
        if line > self._limits.head_bytes:  # it may have arrived in one piece
            return problems.uri_too_long(self._limits.head_bytes)
        if line + sum(len(name) + len(value) for name, value in scope["headers"]) > self._limits.head_bytes:
            return problems.too_long(self._limits.head_bytes)
        headers = Headers(scope=scope)
        host = headers.get("host")
        signed = scope["path"] == HOOK_PATH  # which no web page can do
        if self._names is None or host is None or signed or host_is_known(host, self._names):
            return self._unauthorized(scope["path"], headers)
        return problem(
            "WrongHost",
            f"{host[:80]} is not a name of this server",
            "a foreign web page may have pointed its name at this machine to read its data",
            "use an address or localhost, or start the server with --server-name",
        )

    def _unauthorized(self, path: str, headers: Headers) -> Problem | None:
        given = headers.get("authorization", "")
        if self._access is None or self._access.admits(path, given, headers.get("cookie", "")):
            return None
        return problems.unauthorized(sent=bool(given))

    def _refusal(self, request: Request, found: Problem) -> Response:
        """The response for a problem: a page, if a person may be reading it."""
        if self._page is not None and "text/html" in request.headers.get("accept", ""):
            return self._page.problem(request, found)
        return _response(found)

    async def _sign_in(self, request: Request) -> Response:
        """Exchange a ticket for the cookie, and go on to where the browser wants to be.

        The response is a page: on a redirect, a browser that came from elsewhere would not send the cookie.
        """
        headers = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
        if self._access is not None:
            cookie = self._access.set_cookie(request.query_params.get("ticket", ""), self._clock.now())
            if cookie is not None:
                headers["set-cookie"] = cookie
            elif not self._access.public_read:
                return self._refusal(request, problems.ticket_refused())
        to = request.query_params.get("to", "")
        place = html.escape(to if _PATH_HERE.fullmatch(to) else "/")
        return HTMLResponse(_GO_ON.format(place=place), headers=headers)

    def _endpoint(self, resource: Resource) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            _require_acceptable(request, (_JSON,))
            asked = parameters_of(resource.parameters, given(request))
            tags = request.headers.get("if-none-match", "")
            packed = takes_gzip(request.headers.get("accept-encoding", ""))
            self._outgoing.require_room()
            response = await self._ask(
                request,
                resource,
                asked,
                lambda store: self._answer(resource, asked, store, tags, packed=packed),
            )
            self._outgoing.require_room()  # for requests that waited together
            return response

        return answer

    async def _ask(
        self, request: Request, resource: Resource, asked: Any, question: Callable[[Store], T]
    ) -> T:
        """The answer of `question`, which is about a resource, to a store."""
        client = _client(request)
        if resource.dry:
            if not self._trusts(request):
                raise problems.untrusted()
            return await ask_dry(self._readers.dry, self._limits, question, client)
        readers = await self._pool(resource, asked, client)
        return await readers.ask(question, client)

    def _trusts(self, request: Request) -> bool:
        headers = request.headers
        given = headers.get("authorization", ""), headers.get("cookie", "")
        return self._access is None or self._access.trusts(*given)

    async def _pool(self, resource: Resource, asked: Any, client: str) -> Readers:
        """The readers for a question, so that it does not delay cheaper ones."""
        if resource.apart:
            return self._readers.apart
        if resource.whole and not getattr(asked, "asset", ""):
            return self._readers.whole
        text = getattr(asked, "filter", "")
        if text and await self._readers.plain.ask(lambda _store: is_heavy(text), client):
            return self._readers.filtering
        return self._readers.plain

    def _answer(self, resource: Resource, asked: Any, store: Store, tags: str, *, packed: bool) -> Response:
        """Runs in a thread: all slow work, including encoding."""
        answer = resource.answer(self._question(store), asked)
        headers = {"content-type": _JSON, "cache-control": "no-cache", "vary": "accept-encoding"}
        if answer.tag:
            headers["etag"] = f'W/"{answer.tag}"'
            if knows(tags, answer.tag):
                return Response(status_code=304, headers=headers)
        content = encode(answer.make(), resource.answers)
        if tags.strip() == "*":
            return Response(status_code=304, headers=headers)
        if packed and len(content) > _WORTH_PACKING:
            headers["content-encoding"] = "gzip"
            content = gzip.compress(content, 1, mtime=0)
        return Outbound(self._outgoing, content, headers)

    async def value(self, request: Request, name: str, parameters: Mapping[str, str]) -> Any:
        """The answer of the resource of this name, decoded, on behalf of a request.

        Raises:
            ProblemError: the resource refuses to answer.
            LehrError: it cannot be read.
        """
        resource = self._named[name]
        asked = parameters_of(resource.parameters, list(parameters.items()))
        encoded = await self._ask(
            request, resource, asked, lambda store: self._encoded(resource, asked, store)
        )
        return msgspec.json.decode(encoded)

    async def compares(self, request: Request, partition: str) -> bool:
        """Whether dry runs of a partition are answered to a request."""
        here = self._installation.dry_runs
        if here is None or not self._trusts(request):
            return False
        try:
            await self._readers.plain.run(lambda: here.require(Partition(partition)), _client(request))
        except LehrError:
            return False
        return True

    def _encoded(self, resource: Resource, asked: Any, store: Store) -> bytes:
        return encode(resource.answer(self._question(store), asked).make(), resource.answers)

    def _question(self, store: Store) -> Question:
        sift = self._readers.sieves.sift
        return Question(
            store, self._clock, self._limits, self._installation, self._kept, sift, self._run_state
        )

    async def _take_hook(self, request: Request) -> Response:
        assert self._hook is not None
        await self._hook.take(request.headers, request.stream())
        # More of an unread body may arrive.
        return Response(status_code=202, headers={"connection": "close"})

    async def _select(self, request: Request) -> Response:
        _require_acceptable(request, (_JSON,))
        parameters_of(NoParameters, request.query_params.multi_items())
        self._outgoing.require_room()
        content = await self._selecting.answer(request, self._readers.selecting, _client(request))
        self._outgoing.require_room()
        return Outbound(self._outgoing, content, {"content-type": _JSON, "cache-control": "no-store"})

    async def watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to watch."""
        request = Request(scope)
        _require_acceptable(request, (MEDIA_TYPE, _JSON))
        asked = parameters_of(OfWatch, given(request))
        if request.method == "HEAD":
            await Response(media_type=MEDIA_TYPE)(scope, receive, send)
            return
        await self.watching.watches.serve(asked, receive, send, lambda last: self._abort(scope, last))

    async def follow(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for the events of a feed."""
        request = Request(scope)
        _require_acceptable(request, (event_streams.MEDIA_TYPE,))
        asked = parameters_of(event_streams.OfEvents, given(request))
        if request.method == "HEAD":
            await Response(media_type=event_streams.MEDIA_TYPE)(scope, receive, send)
            return
        last = request.headers.get("last-event-id", "")
        await self.watching.events.serve(asked, last, receive, send, lambda end: self._abort(scope, end))


def is_heavy(text: str) -> bool:
    """Whether a filter runs in a process of its own. One that cannot be parsed does not."""
    try:
        return Filter(text).heavy
    except LehrError:
        return False


def _client(request: Request) -> str:
    """The unit that takes turns: an address; on this machine, a connection."""
    if request.client is None:
        return ""
    host, port = request.client
    return f"{host}:{port}" if host in _LOOPBACK else host


class _Streaming:
    """The endpoint of a stream. A function would be called with a request."""

    def __init__(self, serve: ASGIApp) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)


def given(request: Request) -> list[tuple[str, str]]:
    """All parameters of a request; the body of one that has one is refused.

    Raises:
        ProblemError: it has a body.
    """
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise ProblemError(
            "ContentTooLarge",
            "a request body is not allowed",
            code="HTP101",
            fix="omit it",
        )
    return [(str(name), str(value)) for name, value in request.path_params.items()] + list(
        request.query_params.multi_items()
    )


def _require_acceptable(request: Request, offered: tuple[str, ...]) -> None:
    """Raises `ProblemError` if the client accepts none of the offered media types."""
    if not accepts(request.headers.get("accept", ""), offered):
        raise ProblemError(
            "NotAcceptable",
            f"the response is {offered[0]}, which Accept excludes",
            code="HTP102",
            fix="omit Accept",
        )


def _response(found: Problem) -> Response:
    return Response(problems.encoded(found), found.status, problems.headers_of(found))


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, LehrError)
    found = problem_of(error)
    if found.status == 500:
        log.warning("request failed", error=str(error))
    return _response(found)


async def _misdirected(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "MethodNotAllowed" if error.status_code == 405 else "NotFound"
    what = f"{request.method} {request.url.path[:200]}: {error.detail}"
    found = _response(problem(code, what, fix=f"{OPENAPI_PATH} lists all resources"))
    for name, value in (error.headers or {}).items():
        found.headers[name] = value
    if request.method not in ("GET", "HEAD"):
        found.headers["connection"] = "close"
    return found


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # which no client receives


async def _defect(_request: Request, error: Exception) -> Response:
    why = f"{type(error).__name__}: {error}"
    log.error("request failed with an internal error", exc_info=error)
    return _response(problem("Defect", "internal error", why, "please report it", error=DEFECT))

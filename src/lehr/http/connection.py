"""Requests to a server, over one persistent connection."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from lehr.base.errors import LehrError, StalledError, TransientError, raised_as
from lehr.base.moments import decode
from lehr.client.wire import LIST_AGAIN, OTHER, Problem, decode_problem
from lehr.model.attempt import Attempt
from lehr.model.reason import Reason
from lehr.query.run_state import RunState
from lehr.sdk.store import SEE_KEPT, PrunedError
from lehr.sdk.watch import FeedGoneError

T = TypeVar("T")

_SECONDS = 60.0


class NotThereError(LehrError):
    """The server does not have the resource."""


class _GoneError(PrunedError):
    """The error reported by the server."""

    def __init__(self, problem: Problem) -> None:
        StalledError.__init__(self, problem.title, code=problem.error, why=problem.detail, fix=SEE_KEPT)


class _FeedGoneError(FeedGoneError):
    """The error reported by the server."""

    def __init__(self, problem: Problem) -> None:
        TransientError.__init__(self, problem.title, code=problem.error, why=problem.detail, fix=problem.fix)


class Server:
    """The server that receives requests."""

    def __init__(self, url: str, token: Callable[[], str] = str) -> None:
        """A client of the server at `url` (`http://127.0.0.1:8470`).

        Args:
            token: asked before each request, since the server may only start later; empty for none.

        Raises:
            LehrError: it is not the URL of a server.
        """
        place = urlsplit(url)
        if place.username is not None or place.password is not None:
            raise LehrError(
                "the URL of the server contains a user name or a password",
                code="HTP105",
                why="the server does not use them, and they would appear in output",
                fix="use a URL such as http://127.0.0.1:8470",
            )
        kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(place.scheme)
        if kind is None or not place.hostname:
            raise LehrError(
                f"{url!r} is not the URL of a server",
                code="HTP106",
                fix="use a URL such as http://127.0.0.1:8470",
            )
        self.url = url
        self._token = token
        self._root = place.path.rstrip("/")
        self._connection = kind(place.netloc, timeout=_SECONDS)

    def ask(self, path: str, asked: Mapping[str, Any] | None = None) -> bytes:
        """The content of a response.

        Raises:
            TransientError: it cannot be reached, or cannot answer now.
            LehrError: it cannot answer this request.
        """
        given = {name: value for name, value in (asked or {}).items() if value not in ("", (), None)}
        target = f"{self._root}{path}" + (f"?{urlencode(given, doseq=True)}" if given else "")
        try:
            try:
                return self._once(target)
            except (ConnectionError, http.client.HTTPException):
                self._connection.close()  # the server may have closed the persistent connection
                return self._once(target)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise TransientError(
                f"{self.url} cannot be reached",
                code="HTP107",
                why=str(error) or type(error).__name__,
                fix="check that `lehr serve` is running there, and that --server or LEHR_SERVER is correct",
            ) from error

    def asked(self, path: str, kind: type[T], asked: Mapping[str, Any] | None = None) -> T:
        """A parsed response. Raises as `ask` does."""
        what = f"the response of {self.url} cannot be parsed"
        fix = "check that it is `lehr serve` of the same version"
        with raised_as(StalledError, what, code="HTP108", fix=fix, on=msgspec.DecodeError):
            return decode(self.ask(path, asked), kind)

    def run_state(self) -> RunState:
        """The state of the server's `lehr run`."""
        return self.asked("/v1/run", RunState)

    def attempt(self, partition: str) -> Attempt | None:
        """The result of its last check of the source; None before the first."""
        found = self.asked(f"/v1/partitions/{quote(partition, safe='')}/attempt", list[Attempt])
        return found[0] if found else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _once(self, target: str) -> bytes:
        headers = {"Accept-Encoding": "gzip"}
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        self._connection.request("GET", target, headers=headers)
        answer = self._connection.getresponse()
        content: bytes = answer.read()
        if answer.getheader("content-encoding") == "gzip":
            content = gzip.decompress(content)
        if answer.status == http.client.OK:
            return content
        if answer.status == http.client.UNAUTHORIZED and self._token() != token:
            return self._once(target)  # the server has just started
        raise self._error(decode_problem(answer.status, content))

    def _error(self, problem: Problem) -> LehrError:
        if problem.code != OTHER:
            return _error(problem)
        kind = TransientError if problem.status >= http.client.INTERNAL_SERVER_ERROR else LehrError
        return kind(
            f"{self.url} is not a `lehr serve`",
            code="HTP109",
            why=problem.title,
            fix="check --server or LEHR_SERVER, and proxies in between",
        )


def _error(problem: Problem) -> LehrError:
    """The client-side error for a problem."""
    if problem.code == Reason.PRUNED:
        return _GoneError(problem)
    if problem.code == LIST_AGAIN:
        return _FeedGoneError(problem)
    kind = TransientError if problem.status >= http.client.INTERNAL_SERVER_ERROR else LehrError
    kind = {"NotFound": NotThereError, "StoreTrouble": StalledError}.get(problem.code, kind)
    return kind(problem.title, code=problem.error, why=problem.detail, fix=problem.fix)

"""Requests to a server, over one persistent connection."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.moments import decode
from lehr.client.wire import OTHER, Problem, decode_problem
from lehr.model.attempt import Attempt
from lehr.model.reason import Reason
from lehr.query.run_state import RunState
from lehr.sdk.store import PrunedError

T = TypeVar("T")

_SECONDS = 60.0


class NotThereError(LehrError):
    """The server does not have the resource."""


class _GoneError(PrunedError):
    """As reported by the server."""

    def __init__(self, problem: Problem) -> None:
        StalledError.__init__(
            self,
            problem.title,
            code=problem.error,
            why=problem.detail,
            fix="see `lehr get incarnations` for those that can be read",
        )


class Server:
    """The server that receives requests."""

    def __init__(self, url: str) -> None:
        """`url` is the address of `lehr serve` (`http://127.0.0.1:8470`).

        Raises:
            LehrError: it is not the URL of a server.
        """
        place = urlsplit(url)
        if place.username is not None or place.password is not None:
            raise LehrError(
                "the URL of the server has a name or a password in it",
                code="HTP105",
                why="nobody asks for them there, and they would be shown",
                fix="write http://127.0.0.1:8470",
            )
        kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(place.scheme)
        if kind is None or not place.hostname:
            raise LehrError(
                f"{url!r} is no URL of a server", code="HTP106", fix="write http://127.0.0.1:8470"
            )
        self.url = url
        self._root = place.path.rstrip("/")
        self._connection = kind(place.netloc, timeout=_SECONDS)

    def ask(self, path: str, asked: Mapping[str, Any] | None = None) -> bytes:
        """The content of a response.

        Raises:
            TransientError: it cannot be reached, or cannot answer now.
            LehrError: it cannot answer this request.
        """
        given = {name: value for name, value in (asked or {}).items() if value not in ("", None)}
        target = f"{self._root}{path}" + (f"?{urlencode(given)}" if given else "")
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
                fix="see that `lehr serve` runs there, and that --server or LEHR_SERVER is right",
            ) from error

    def asked(self, path: str, kind: type[T], asked: Mapping[str, Any] | None = None) -> T:
        """A response as a value. Raises as `ask`."""
        try:
            return decode(self.ask(path, asked), kind)
        except msgspec.DecodeError as error:
            raise StalledError(
                f"what {self.url} answers cannot be understood",
                code="HTP108",
                why=str(error),
                fix="see that it is `lehr serve` of the same version",
            ) from error

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
        self._connection.request("GET", target, headers={"Accept-Encoding": "gzip"})
        answer = self._connection.getresponse()
        content: bytes = answer.read()
        if answer.getheader("content-encoding") == "gzip":
            content = gzip.decompress(content)
        if answer.status == http.client.OK:
            return content
        raise self._error(decode_problem(answer.status, content))

    def _error(self, problem: Problem) -> LehrError:
        if problem.code != OTHER:
            return _error(problem)
        kind = TransientError if problem.status >= http.client.INTERNAL_SERVER_ERROR else LehrError
        return kind(
            f"{self.url} does not answer as `lehr serve` does",
            code="HTP109",
            why=problem.title,
            fix="see that --server or LEHR_SERVER is right, and what is between",
        )


def _error(problem: Problem) -> LehrError:
    """The client-side error for a problem."""
    match problem.code, problem.status:
        case Reason.PRUNED, _:
            return _GoneError(problem)
        case "NotFound", _:
            return NotThereError(problem.title, code=problem.error, why=problem.detail, fix=problem.fix)
        case "StoreTrouble", _:
            return StalledError(problem.title, code=problem.error, why=problem.detail, fix=problem.fix)
        case _, status if status >= 500:
            return TransientError(problem.title, code=problem.error, why=problem.detail, fix=problem.fix)
    return LehrError(problem.title, code=problem.error, why=problem.detail, fix=problem.fix)

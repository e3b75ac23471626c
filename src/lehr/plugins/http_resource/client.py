"""Sends requests to one API, with its headers and credentials. Bounded in time and memory."""

from __future__ import annotations

import ssl

from lehr import __version__
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.base.http_answer import Answer
from lehr.base.http_exchange import ExchangeError, Failure, exchange
from lehr.plugins.http_resource.answers import UnansweredError, read_error, write_error
from lehr.plugins.http_resource.compare import Intended
from lehr.plugins.http_resource.requests import Write

_MOST_BYTES = 1 << 20


class Client:
    """Requests of this machine.

    Args:
        seconds: for one request.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._trust: ssl.SSLContext | None = None

    async def read(self, url: str, intended: Intended) -> Answer | None:
        """The answer to GET if it is a success; None if its status means that there is nothing.

        Raises:
            LehrError: it is neither, or there is none.
        """
        try:
            answer = await self._exchange("GET", url, _headers(intended), None)
        except ExchangeError as error:
            raise _unread(url, error) from None
        if 200 <= answer.status < 300:
            return answer
        if answer.status in intended.resource.absent_on:
            return None
        raise read_error(answer, url, intended.hidden, self._clock.now())

    async def write(self, write: Write, intended: Intended) -> Answer | None:
        """The answer to a write if it is a success; None if there was nothing to delete.

        Raises:
            UnansweredError: it may be carried out, now or a little later.
            UnknownOutcomeError: it may have been carried out.
            LehrError: it was not.
        """
        try:
            headers = {**_headers(intended), **write.headers}
            answer = await self._exchange(write.method, write.url, headers, write.body)
        except ExchangeError as error:
            if error.sent:
                raise UnansweredError(
                    f"it is not known whether {write.url} was {write.what}", code="RES112", why=str(error)
                ) from None
            raise _unread(write.url, error) from None
        if 200 <= answer.status < 300:
            return answer
        if write.method == "DELETE" and answer.status in intended.resource.absent_on:
            return None
        raise write_error(
            answer, write.url, write.what, intended.hidden, self._clock.now(), again=write.again
        )

    async def _exchange(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Answer:
        if self._trust is None and url.startswith("https:"):
            self._trust = ssl.create_default_context()
        return await exchange(
            method, url, headers, self._trust, _MOST_BYTES, body=body, seconds=self._seconds
        )


def _headers(intended: Intended) -> dict[str, str]:
    own = {"user-agent": f"lehr/{__version__}", "accept-encoding": "identity"}
    own |= {name.lower(): value for name, value in intended.resource.headers.items()}
    if intended.credentials is not None:
        own["authorization"] = f"Bearer {intended.credentials.text()}"
    return own


def _unread(url: str, error: ExchangeError) -> TransientError | StalledError:
    if error.failure is Failure.UNSENDABLE:
        return StalledError(
            f"no request can be sent to {url}",
            code="RES113",
            why=str(error),
            fix="correct `headers` and `credentials`",
        )
    if error.failure is Failure.TOO_LARGE:
        return StalledError(
            f"{url} cannot be read",
            code="RES114",
            why=str(error),
            fix="declare the URL of a smaller resource, or of a page of the collection",
        )
    return TransientError(f"{url} does not answer", code="RES115", why=str(error))

"""Target selection by a program at some address, over HTTP. `lehr.rollouts` checks the answers.

Invariant: a question ends within its time, whatever the other side does, in bounded memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import urlsplit

import h11

from lehr import __version__
from lehr.base.errors import LehrError
from lehr.base.hosts import is_loopback
from lehr.base.text import one_line
from lehr.rollouts.services import MOST_ANSWER_BYTES, RefusedAnswerError

SECONDS = 10.0
_READ = 65_536
_HEAD_BYTES = 16_384
_PLAIN = re.compile("[!-~]+")
_FIX = "check the address, and the program that answers there"


class HttpSelectionService:
    """A `lehr.sdk.target_selection.SelectionService` at a URL. Each question has a connection of its own.

    Redirects are not followed: the address is a decision of the person who configured it.
    """

    def __init__(self, url: str, seconds: float = SECONDS, token: Callable[[], str] | None = None) -> None:
        """`url` receives questions (`http://127.0.0.1:9000/select`); each has `seconds` for its answer.

        Args:
            token: reads what is sent as `Authorization: Bearer` with each question; None for nothing. May
                raise `LehrError`.

        Raises:
            LehrError: it is not such a URL, or the token would leave this machine without encryption.
        """
        try:
            place = urlsplit(url)
            port = place.port
        except ValueError:
            place, port = urlsplit(""), None
        secret = place.username is not None or place.password is not None
        plain = _PLAIN.fullmatch(url) and not place.fragment
        if place.scheme not in ("http", "https") or not place.hostname or secret or not plain:
            raise LehrError(
                f"{url!r} is not the URL of a selection service",
                code="HTP135",
                fix="use a URL such as http://127.0.0.1:9000/select, without a user name or password",
            )
        if token is not None and place.scheme == "http" and not is_loopback(place.hostname):
            raise LehrError(
                f"the token for {url} would be sent without encryption",
                code="HTP140",
                why="its address is not on this machine, and is not https",
                fix="use the https address of the service",
            )
        self.name = url
        self._token = token
        self._host = place.hostname
        self._netloc = place.netloc
        self._port = port or (443 if place.scheme == "https" else 80)
        self._ssl = ssl.create_default_context() if place.scheme == "https" else None
        self._target = (place.path or "/") + (f"?{place.query}" if place.query else "")
        self._seconds = seconds

    async def ask(self, question: bytes) -> bytes:
        headers = {} if self._token is None else {"authorization": f"Bearer {self._token()}"}
        try:
            async with asyncio.timeout(self._seconds), self._connected() as (reader, writer):
                return await self._asked(reader, writer, question, headers)
        except TimeoutError as error:
            raise RefusedAnswerError(
                "the selection service did not answer in time",
                code="ROL114",
                why=f"there was no complete answer within {self._seconds:g} seconds",
                fix=_FIX,
            ) from error
        except OSError as error:
            raise RefusedAnswerError(
                "the selection service cannot be reached",
                code="ROL115",
                why=error.strerror or str(error) or type(error).__name__,
                fix=_FIX,
            ) from error
        except (h11.RemoteProtocolError, UnicodeError) as error:
            raise RefusedAnswerError(
                "the selection service does not answer with valid HTTP",
                code="ROL116",
                why=str(error),
                fix=_FIX,
            ) from error

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._ssl)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()  # a normal close waits for the other side

    async def _asked(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        question: bytes,
        more: Mapping[str, str],
    ) -> bytes:
        state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        headers = {
            "host": self._netloc,
            "connection": "close",
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": str(len(question)),
            "user-agent": f"lehr/{__version__}",
            **more,
        }
        request = h11.Request(method="POST", target=self._target, headers=list(headers.items()))
        for event in (request, h11.Data(data=question), h11.EndOfMessage()):
            writer.write(state.send(event) or b"")
        sending = asyncio.ensure_future(writer.drain())
        try:
            return await _received(state, reader)  # which may come before everything is sent
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _received(state: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    content = bytearray()
    while True:
        event = state.next_event()
        if event is h11.NEED_DATA:
            state.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            _require_plain(event)
        elif isinstance(event, h11.Data):
            content += event.data
            if len(content) > MOST_ANSWER_BYTES:
                raise RefusedAnswerError(
                    "the answer of the selection service is too large",
                    code="ROL117",
                    why=f"it has more than {MOST_ANSWER_BYTES:,} bytes",
                    fix=_FIX,
                )
        elif isinstance(event, h11.EndOfMessage):
            return bytes(content)
        elif not isinstance(event, h11.InformationalResponse):
            raise h11.RemoteProtocolError("it closed the connection without an answer")


def _require_plain(response: h11.Response) -> None:
    """Raises `RefusedAnswerError` for a response that is not JSON as it is."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
    if 300 <= response.status_code < 400:
        raise RefusedAnswerError(
            "the selection service redirects, which is not followed",
            code="ROL118",
            why=one_line(f"to {headers.get('location', 'nowhere')[:200]}"),
            fix="configure the address that answers",
        )
    if response.status_code != 200:
        raise RefusedAnswerError(
            "the selection service refuses the question",
            code="ROL119",
            why=f"status {response.status_code}",
            fix=_FIX,
        )
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if media != "application/json" or encoding != "identity":
        raise RefusedAnswerError(
            "the selection service does not answer with plain JSON",
            code="ROL120",
            why=one_line(f"its content is {media[:80] or 'of no type'}, with the encoding {encoding[:80]}"),
            fix="answer with `Content-Type: application/json`, not compressed",
        )

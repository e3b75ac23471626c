"""One HTTP request on a connection of its own: a bounded answer, and no credential in any message."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import h11

from lehr.base.http_answer import Answer

_READ = 65_536
_LOST = (OSError, EOFError, h11.RemoteProtocolError)


class Failure(enum.Enum):
    """Why there is no answer."""

    UNREACHABLE = enum.auto()
    LOST = enum.auto()
    TIMEOUT = enum.auto()
    TOO_LARGE = enum.auto()
    UNREADABLE = enum.auto()
    UNSENDABLE = enum.auto()


class ExchangeError(Exception):
    """There is no answer.

    Attributes:
        failure: why.
        sent: whether the server may have received the request, and may carry it out.
    """

    def __init__(self, failure: Failure, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.failure = failure
        self.sent = sent


async def exchange(
    method: str,
    address: str,
    headers: Mapping[str, str],
    trust: ssl.SSLContext | None,
    most: int,
    *,
    body: bytes | None = None,
    seconds: float | None = None,
) -> Answer:
    """The answer to a request to the URL `address`; a redirect is an answer.

    Args:
        trust: for `https`.
        most: bytes of the body of the answer.
        body: of the request.
        seconds: after which it is given up; None if the caller sets a limit.

    Raises:
        ExchangeError: there is no answer, or it is too large.
    """
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    connection, request = _request(method, target, host, port, headers, body)
    sent = False
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await _connected(host, port, trust if secure else None)
            sent = True
            try:
                return await _asked(reader, writer, connection, request, most)
            finally:
                writer.close()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    writer.transport.abort()
    except TimeoutError as error:
        raise ExchangeError(Failure.TIMEOUT, f"{host}:{port} did not answer in time", sent=sent) from error
    except _LOST as error:
        raise ExchangeError(Failure.LOST, f"{host}:{port} broke off its answer", sent=True) from error


async def _connected(
    host: str, port: int, trust: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(host, port, ssl=trust)
    except TimeoutError as error:  # of the system
        raise ExchangeError(Failure.UNREACHABLE, f"no connection to {host}:{port}", sent=False) from error
    except ssl.SSLError as error:
        why = error.reason or "failed"
        raise ExchangeError(Failure.UNREACHABLE, f"no TLS connection: {why}", sent=False) from error
    except OSError as error:
        why = error.strerror or "connection failed"
        message = f"no connection to {host}:{port}: {why}"
        raise ExchangeError(Failure.UNREACHABLE, message, sent=False) from error
    except UnicodeError as error:
        raise ExchangeError(Failure.UNREACHABLE, "the host has no valid name", sent=False) from error


def _request(
    method: str, target: str, host: str, port: int, headers: Mapping[str, str], body: bytes | None
) -> tuple[h11.Connection, bytes]:
    """A connection that has sent the request, and the request as bytes."""
    named = f"[{host}]" if ":" in host else host
    given = {"host": f"{named}:{port}", "accept": "application/json", "connection": "close"}
    if body is not None or method in ("POST", "PUT", "PATCH"):
        given["content-length"] = str(len(body or b""))
    given |= {name.lower(): value for name, value in headers.items()}
    connection = h11.Connection(h11.CLIENT)
    try:
        events: list[h11.Event] = [h11.Request(method=method, target=target, headers=list(given.items()))]
        events += [h11.Data(data=body)] if body else []
        return connection, b"".join(connection.send(event) or b"" for event in (*events, h11.EndOfMessage()))
    except (h11.LocalProtocolError, UnicodeError):
        # Not chained: the message may have a credential.
        message = "a header or the query cannot be sent over HTTP"
        raise ExchangeError(Failure.UNSENDABLE, message, sent=False) from None


async def _asked(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connection: h11.Connection,
    request: bytes,
    most: int,
) -> Answer:
    writer.write(request)
    sending = asyncio.ensure_future(writer.drain())
    try:
        return await _answer(reader, connection, most)  # which may come before everything is sent
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _answer(reader: asyncio.StreamReader, connection: h11.Connection, most: int) -> Answer:
    status, headers, body = 0, dict[str, str](), bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
            if headers.get("content-encoding", "identity").lower() != "identity":
                raise ExchangeError(Failure.UNREADABLE, "the answer is compressed", sent=True)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most:
                message = f"the answer is larger than {most:,} bytes"
                raise ExchangeError(Failure.TOO_LARGE, message, sent=True)
        elif isinstance(event, h11.EndOfMessage):
            return Answer(status, bytes(body), headers)
        elif isinstance(event, h11.ConnectionClosed | type(h11.PAUSED)):
            raise EOFError

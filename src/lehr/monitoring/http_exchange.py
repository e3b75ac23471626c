"""One request: no redirects, a bounded answer, and no credential in any message."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import h11

from lehr.model.monitoring import Cause, MetricError

_MOST_BYTES = 8 << 20
_READ = 65_536
_LOST = (OSError, EOFError, h11.RemoteProtocolError)


class Answer:
    """Status and body of an answer."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body


async def exchange(
    method: str,
    address: str,
    headers: Mapping[str, str],
    trust: ssl.SSLContext | None,
    most: int = _MOST_BYTES,
) -> Answer:
    """The answer to a request to the URL `address`. Takes as long as the server: the caller sets a limit.

    Args:
        method: GET, or POST, which is sent without a body.
        trust: for `https`.
        most: bytes of the body.

    Raises:
        MetricError: there is no answer, or it is a redirect or too large.
    """
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    request = _request(method, target, host, port, headers)
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=trust if secure else None)
    except ssl.SSLError as error:
        raise MetricError(Cause.UNREACHABLE, f"no TLS connection: {error.reason or 'failed'}") from error
    except OSError as error:
        why = error.strerror or "connection failed"
        raise MetricError(Cause.UNREACHABLE, f"no connection to {host}:{port}: {why}") from error
    try:
        connection = h11.Connection(h11.CLIENT)
        writer.write(b"".join(connection.send(event) or b"" for event in request))
        await writer.drain()
        return await _answer(reader, connection, most)
    except _LOST as error:
        raise MetricError(Cause.UNREACHABLE, f"{host}:{port} broke off its answer") from error
    finally:
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            writer.transport.abort()


def _request(method: str, target: str, host: str, port: int, headers: Mapping[str, str]) -> list[h11.Event]:
    named = f"[{host}]" if ":" in host else host
    given = {"host": f"{named}:{port}", "accept": "application/json", "connection": "close"}
    if method == "POST":
        given["content-length"] = "0"
    given |= {name.lower(): value for name, value in headers.items()}
    try:
        return [h11.Request(method=method, target=target, headers=list(given.items())), h11.EndOfMessage()]
    except (h11.LocalProtocolError, UnicodeError):
        # Not chained: the message may have a credential.
        raise MetricError(Cause.FAILED, "a header or the query cannot be sent over HTTP") from None


async def _answer(reader: asyncio.StreamReader, connection: h11.Connection, most: int) -> Answer:
    status, body = 0, bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Response):
            status = event.status_code
            _require_readable(event)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most:
                raise MetricError(Cause.TOO_LARGE, f"the answer is larger than {most:,} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return Answer(status, bytes(body))
        elif isinstance(event, h11.ConnectionClosed | type(h11.PAUSED)):
            raise EOFError


def _require_readable(response: h11.Response) -> None:
    if 300 <= response.status_code < 400:
        # The credentials are for the configured server.
        raise MetricError(
            Cause.REDIRECTED, f"it answered with a redirect ({response.status_code}), which is not followed"
        )
    for name, value in response.headers:
        if name == b"content-encoding" and value.lower() != b"identity":
            raise MetricError(Cause.UNREADABLE, "the answer is compressed")

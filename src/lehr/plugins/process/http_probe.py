"""One GET, and whether its answer is as expected. No answer is ever quoted, as it may hold a secret."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from lehr.plugins.process.probe import Probe, finder

_STATUS_LINE = re.compile(r"HTTP/[0-9.]+ +([0-9]{3})(?![^ \r\n])")
_MOST_BODY = 65_536  # bytes
_MOST_HEADERS = 200

CUT_OFF = (asyncio.IncompleteReadError, asyncio.LimitOverrunError)
"""Errors of an answer that ends early, or is too long."""


async def get(probe: Probe) -> str | None:
    """None if GET of the probe's URL has the expected answer; otherwise what happened instead.

    Raises:
        OSError, ValueError: it has no answer, or one that is not HTTP; so do the errors in `CUT_OFF`.
    """
    parts = urlsplit(probe.url)
    host, port = parts.hostname or "", parts.port or 80
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    reader, writer = await asyncio.open_connection(host, port)
    try:
        bracketed = f"[{host}]" if ":" in host else host
        names = {name.lower() for name in probe.headers}
        headers = {} if "host" in names else {"Host": f"{bracketed}:{port}"}
        headers |= {**probe.headers, "Connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        line = (await reader.readuntil(b"\n")).decode("latin-1")
        found = _STATUS_LINE.match(line)
        if found is None:
            return f"{probe.url} does not speak HTTP"
        if not _expected(int(found[1]), probe):
            with contextlib.suppress(*CUT_OFF):
                await reader.readuntil(b"\r\n\r\n")  # so that the server is not cut off in mid-answer
            return f"{probe.url} answered {found[1]}"
        return await _rest(reader, probe)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _expected(status: int, probe: Probe) -> bool:
    return status in probe.expect_status or f"{status // 100}xx" in probe.expect_status


async def _rest(reader: asyncio.StreamReader, probe: Probe) -> str | None:
    """The same for headers and body."""
    if not (probe.expect_headers or probe.expect_body or probe.expect_body_pattern):
        with contextlib.suppress(*CUT_OFF):
            await reader.readuntil(b"\r\n\r\n")
        return None
    headers = await _headers(reader)
    for name, value in probe.expect_headers.items():
        if headers.get(name.lower()) != value:
            return f"{probe.url} answered without the header {name}: {value}"
    if not (probe.expect_body or probe.expect_body_pattern):
        return None
    try:
        body = (await _body(reader, headers)).decode(errors="replace")
    except ValueError:  # whose text has a part of the answer
        return f"{probe.url} answered with a body that is not valid HTTP"
    if probe.expect_body not in body:
        return f"{probe.url} answered without the text of expect_body"
    if probe.expect_body_pattern and not finder(probe.expect_body_pattern)(body):
        return f"{probe.url} answered without a match of expect_body_pattern"
    return None


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = (await reader.readuntil(b"\n")).decode("latin-1").strip()
        if not line:
            return found
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    raise ValueError(f"it answered with more than {_MOST_HEADERS} headers")


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """The first part of the body."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        found = b""
        while len(found) < _MOST_BODY:
            size = int((await reader.readuntil(b"\n")).partition(b";")[0], 16)
            if size == 0:
                break
            found += await _at_most(reader, size)
            await reader.readuntil(b"\n")
        return found[:_MOST_BODY]
    return await _at_most(reader, int(headers.get("content-length", _MOST_BODY)))


async def _at_most(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        return await reader.readexactly(min(size, _MOST_BODY))
    except asyncio.IncompleteReadError as error:
        return error.partial

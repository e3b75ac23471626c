"""The sources against real servers and programs: whatever they do, it is a value or a named cause."""

import asyncio
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.monitoring import Cause, Question, Reading
from lehr.monitoring.command import CommandSource
from lehr.monitoring.configuration import (
    CommandDefinition,
    HttpDefinition,
    MetricSources,
    PrometheusDefinition,
)
from lehr.monitoring.json_address import JsonAddress
from lehr.monitoring.looks import Looks
from lehr.monitoring.prometheus import PrometheusSource
from lehr.monitoring.web import Web
from lehr.sdk.metrics import MetricSource
from lehr.secrets import SecretReader

GOOD = b'{"status": "success", "data": {"resultType": "scalar", "result": [1, "0.01"]}}'
ERRORS = Question("it", "errors", at_most=0.05, fresh=10**10)
RATE = Question("it", "/health", value="/rate", at_most=0.05)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def page(status: int = 200, body: bytes = GOOD, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Any", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Server:
    """A server on the loopback that answers each request with the same bytes, and keeps what it was asked."""

    def __init__(self, answer: bytes = b"", *, then: str = "close") -> None:
        self.requests: list[bytes] = []
        self.port = 0
        self._answer = answer
        self._then = then

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            if self._then == "drip":
                for byte in self._answer * 1000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.05)
            writer.write(self._answer)
            while self._then == "flood":
                writer.write(b"x" * 65_536)
                await writer.drain()
            if self._then == "hang":
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def secrets(folder: Path, **environment: str) -> SecretReader:
    return SecretReader(folder, folder, lambda path, digest: None, environment, Inline())


def asked(
    folder: Path, server: Server, question: Question = ERRORS, timeout: float = 5.0, **fields: Any
) -> Reading:
    """What one look at a source, which asks `server`, finds."""

    async def main() -> Reading:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{server.port}{fields.pop('path', '')}"
        kind = HttpDefinition if question.value else PrometheusDefinition
        definition = kind(address=address, **fields)
        web = Web(definition, secrets(folder, TOKEN="hush"), folder)
        async with listening:
            known = PrometheusSource(web, timeout, SystemClock())
            source = JsonAddress(web, timeout) if question.value else known
            return await look(source, question)

    return asyncio.run(main())


async def look(source: MetricSource, question: Question) -> Reading:
    looks = Looks({"it": source}, SystemClock(), None)
    try:
        history = await looks.history(question)
    finally:
        await looks.close()
    assert history is not None
    return history.last


def test_prometheus_is_asked_for_an_instant_value(tmp_path: Path) -> None:
    server = Server(page())
    reading = asked(tmp_path, server, msgspec.structs.replace(ERRORS, query='rate(x{a="b"}[5m]) > 0'))
    assert (reading.cause, reading.value) == (Cause.GOOD, 0.01)
    assert server.requests[0].startswith(
        b"GET /api/v1/query?query=rate%28x%7Ba%3D%22b%22%7D%5B5m%5D%29%20%3E%200&timeout=5s HTTP/1.1\r\n"
    )


def test_prometheus_is_asked_for_alerts(tmp_path: Path) -> None:
    body = b"""{"status": "success", "data": {"alerts": [{"labels": {"alertname": "HighErrors"},
    "state": "firing", "activeAt": "2026-11-25T12:03:00Z"}]}}"""
    server = Server(page(200, body))
    reading = asked(tmp_path, server, Question("it", alerts=(("alertname", "HighErrors"),)), path="/prom/")
    assert reading.cause is Cause.FIRING
    assert reading.message == "alert HighErrors fires since 2026-11-25T12:03:00Z"
    assert server.requests[0].startswith(b"GET /prom/api/v1/alerts HTTP/1.1\r\n")


def test_a_server_that_starts_something_is_sent_a_post_without_a_body(tmp_path: Path) -> None:
    server = Server(page(200, b'{"rate": 0.5}'))
    reading = asked(tmp_path, server, RATE, path="/v1", method="POST")
    assert (reading.cause, reading.value) == (Cause.OUT_OF_BOUNDS, 0.5)
    head = server.requests[0]
    assert head.startswith(b"POST /v1/health HTTP/1.1\r\n")
    assert b"content-length: 0\r\n" in head.lower()


def test_no_other_method_can_be_configured() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"address": "http://127.0.0.1", "method": "DELETE"}, HttpDefinition)


def test_any_address_with_json_is_asked(tmp_path: Path) -> None:
    server = Server(page(200, b'{"rate": 0.5}'))
    reading = asked(tmp_path, server, RATE, path="/v1")
    assert (reading.cause, reading.value) == (Cause.OUT_OF_BOUNDS, 0.5)
    assert server.requests[0].startswith(b"GET /v1/health HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        ({"bearer_token": {"secret": "env:TOKEN"}}, b"authorization: Bearer hush"),
        ({"username": "lehr", "password": {"secret": "env:TOKEN"}}, b"authorization: Basic bGVocjpodXNo"),
        ({"headers": {"X-Key": {"secret": "env:TOKEN"}, "X-Org": "1"}}, b"x-key: hush\r\nx-org: 1"),
    ],
)
def test_credentials_are_sent(tmp_path: Path, fields: dict[str, Any], header: bytes) -> None:
    server = Server(page())
    document = {"sources": {"it": {"type": "prometheus", "address": "http://x", **fields}}}
    definition = msgspec.convert(document, MetricSources).sources["it"]
    given = {name: getattr(definition, name) for name in fields}
    assert asked(tmp_path, server, **given).cause is Cause.GOOD
    assert header in server.requests[0]


def test_a_credential_that_cannot_be_sent_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush\n\nhush\n")
    document = {"type": "prometheus", "address": "http://x", "bearer_token": {"secret": "file:token"}}
    definition = msgspec.convert(document, PrometheusDefinition)
    reading = asked(tmp_path, Server(page()), bearer_token=definition.bearer_token)
    assert reading.cause is Cause.FAILED
    assert "hush" not in reading.message


def test_a_missing_credential_is_a_cause(tmp_path: Path) -> None:
    document = {"type": "prometheus", "address": "http://x", "bearer_token": {"secret": "env:NONE"}}
    definition = msgspec.convert(document, PrometheusDefinition)
    server = Server(page())
    assert asked(tmp_path, server, bearer_token=definition.bearer_token).cause is Cause.FAILED
    assert not server.requests


@pytest.mark.parametrize(
    ("answer", "then", "cause"),
    [
        (page(503, b"down"), "close", Cause.REFUSED),
        (page(400, b'{"status": "error", "error": "parse error"}'), "close", Cause.REFUSED),
        (page(401, b""), "close", Cause.REFUSED),
        (page(204, b""), "close", Cause.REFUSED),
        (page(302, b"", "Location: http://127.0.0.1:1/"), "close", Cause.REDIRECTED),
        (page(200, b"<html>"), "close", Cause.UNREADABLE),
        (page(200, b"x", "Content-Encoding: gzip"), "close", Cause.UNREADABLE),
        (page(200, GOOD)[:-5], "close", Cause.UNREACHABLE),
        (b"", "close", Cause.UNREACHABLE),
        (b"SSH-2.0-OpenSSH\r\n", "close", Cause.UNREACHABLE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "close", Cause.UNREACHABLE),
        (b"HTTP/1.1 200 OK\r\n\r\n", "flood", Cause.TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\nX: ", "flood", Cause.UNREACHABLE),
        (b"", "hang", Cause.TIMEOUT),
        (b"HTTP/1.1 200 OK\r\n", "hang", Cause.TIMEOUT),
        (page(200, GOOD)[:-5], "hang", Cause.TIMEOUT),
        (b"HTTP/1.1 200 OK\r\nX: ", "drip", Cause.TIMEOUT),
    ],
)
def test_a_server_in_trouble_is_a_cause(tmp_path: Path, answer: bytes, then: str, cause: Cause) -> None:
    timeout = 0.3 if cause is Cause.TIMEOUT else 20.0
    reading = asked(tmp_path, Server(answer, then=then), timeout=timeout)
    assert reading.cause is cause
    assert reading.value is None


def test_a_chunked_answer_is_read(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (GOOD[:7], GOOD[7:]))
    assert asked(tmp_path, Server(head + chunked + b"0\r\n\r\n")).cause is Cause.GOOD


def test_nobody_listens(tmp_path: Path) -> None:
    async def main() -> Reading:
        listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        listening.close()
        await listening.wait_closed()
        web = Web(PrometheusDefinition(address=f"http://127.0.0.1:{port}"), secrets(tmp_path), tmp_path)
        return await look(PrometheusSource(web, 5.0, SystemClock()), ERRORS)

    assert asyncio.run(main()).cause is Cause.UNREACHABLE


def test_a_server_without_tls_is_no_tls_server(tmp_path: Path) -> None:
    async def main() -> Reading:
        listening = await asyncio.start_server(Server(page()).serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        web = Web(PrometheusDefinition(address=f"https://127.0.0.1:{port}"), secrets(tmp_path), tmp_path)
        async with listening:
            return await look(PrometheusSource(web, 1.0, SystemClock()), ERRORS)

    assert asyncio.run(main()).cause in (Cause.UNREACHABLE, Cause.TIMEOUT)


@pytest.mark.parametrize("query", ["/a b", "/a\r\nX: y", "/a\x00"])
def test_a_query_cannot_add_a_header(tmp_path: Path, query: str) -> None:
    server = Server(page(200, b'{"rate": 0}'))
    assert asked(tmp_path, server, msgspec.structs.replace(RATE, query=query)).cause is Cause.FAILED
    assert not server.requests


# --- commands ------------------------------------------------------------------------


def printed(folder: Path, program: str, question: Question = RATE, timeout: float = 10.0) -> Reading:
    definition = CommandDefinition(command=(sys.executable, "-c", program), timeout=timeout)
    source = CommandSource(definition, secrets(folder), folder, {"PATH": "/usr/bin:/bin"})
    return asyncio.run(look(source, question))


def test_a_program_prints_the_value_and_gets_the_query(tmp_path: Path) -> None:
    program = "import sys; print('{\"rate\": %s}' % (0.01 if sys.argv[1] == '/health' else 9))"
    reading = printed(tmp_path, program)
    assert (reading.cause, reading.value) == (Cause.GOOD, 0.01)


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        ("print('{\"rate\": 0}'); raise SystemExit(3)", Cause.FAILED),
        ("print('rate 0')", Cause.UNREADABLE),
        ("pass", Cause.UNREADABLE),
        ("while True: print('x' * 65536)", Cause.TOO_LARGE),
        ("print('{\"rate\": 0}', flush=True); import time; time.sleep(60)", Cause.TIMEOUT),
        ("import subprocess; subprocess.Popen(['sleep', '60']); print('{\"rate\": 0}')", Cause.TIMEOUT),
    ],
)
def test_a_program_in_trouble_is_a_cause(tmp_path: Path, program: str, cause: Cause) -> None:
    timeout = 1.0 if cause is Cause.TIMEOUT else 10.0
    assert printed(tmp_path, program, timeout=timeout).cause is cause


def test_a_program_that_does_not_exist_is_a_cause(tmp_path: Path) -> None:
    source = CommandSource(CommandDefinition(command=("no-such-program",)), secrets(tmp_path), tmp_path, {})
    assert asyncio.run(look(source, RATE)).cause is Cause.FAILED


def test_a_program_that_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    script = tmp_path / "slow"
    script.write_text(f"#!/bin/sh\n(sleep 1; echo late > {tmp_path}/late) & sleep 60\n")
    script.chmod(stat.S_IRWXU)
    source = CommandSource(
        CommandDefinition(command=(str(script),), timeout=0.2),
        secrets(tmp_path),
        tmp_path,
        {"PATH": "/usr/bin:/bin"},
    )

    async def main() -> Reading:
        reading = await look(source, RATE)
        await asyncio.sleep(1.5)
        return reading

    assert asyncio.run(main()).cause is Cause.TIMEOUT
    assert not (tmp_path / "late").exists()

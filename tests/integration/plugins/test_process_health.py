"""A probe succeeds only with the expected answer in time."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from lehr.plugins.process.health import asked
from lehr.plugins.process.probe import Probe


def probed(
    answer: bytes, *, path: str = "/healthz", timeout: float = 5.0, **fields: Any
) -> tuple[str | None, bytes]:
    """What a probe says of a server that answers so, and what it asked."""
    received, served = b"", asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not answer:
            await reader.read()  # until the probe gives up
        writer.close()
        served.set()

    async def run() -> str | None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            said = await asked(Probe(url=f"http://127.0.0.1:{port}{path}", **fields), timeout)
            await served.wait()
            return said
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(run()), received


def test_200_is_healthy() -> None:
    said, received = probed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", path="/a?b=c")
    assert said is None
    assert received.startswith(b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", "answered 204"),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "answered 302"),
        (b"HTTP/1.1 503 Unavailable\r\n\r\n", "answered 503"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (b"200 OK\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 hunter2 OK\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 503\x1b[2J\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 503\r\n\r\n", "answered 503"),
        (b"HTTP/1.1 200", "bytes read"),
        (b"x" * 200_000, "limit"),
    ],
)
def test_anything_else_is_not(answer: bytes, complaint: str) -> None:
    said, _ = probed(answer)
    assert said is not None
    assert complaint in said


ANSWER = b"HTTP/1.1 200 OK\r\nX-Role: primary\r\nContent-Length: 11\r\n\r\nlag: 3; ok\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlag: \r\n2;x=y\r\n3;\r\n0\r\n\r\n"
ENDLESS = b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 70_000 + b"ok"


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", {"expect_status": (200, 204)}),
        (b"HTTP/1.1 301 Moved\r\n\r\n", {"expect_status": ("2xx", "3xx")}),
        (ANSWER, {"expect_headers": {"x-role": "primary"}}),
        (ANSWER, {"expect_body": "ok"}),
        (ANSWER, {"expect_body_pattern": r"lag: [0-5]\b"}),
        (CHUNKED, {"expect_body": "lag: 3"}),
        (b"HTTP/1.0 200 OK\r\n\r\nfine", {"expect_body": "fine"}),
    ],
)
def test_status_headers_and_body_may_be_expected(answer: bytes, fields: dict[str, Any]) -> None:
    assert probed(answer, **fields)[0] is None


@pytest.mark.parametrize(
    ("answer", "fields", "complaint"),
    [
        (ANSWER, {"expect_status": (204,)}, "answered 200"),
        (ANSWER, {"expect_headers": {"X-Role": "replica"}}, "without the header X-Role: replica"),
        (ANSWER, {"expect_body": "hunter2"}, "without the text of expect_body"),
        (ANSWER, {"expect_body_pattern": "lag: [4-9]"}, "without a match of expect_body_pattern"),
        (ENDLESS, {"expect_body": "ok"}, "without the text of expect_body"),
        (CHUNKED.replace(b"2;x=y", b"hunter2"), {"expect_body": "ok"}, "not valid HTTP"),
        (ANSWER.replace(b"11", b"x"), {"expect_body": "ok"}, "not valid HTTP"),
    ],
)
def test_an_unexpected_answer_is_named_and_not_quoted(
    answer: bytes, fields: dict[str, Any], complaint: str
) -> None:
    said, _ = probed(answer, **fields)
    assert said is not None
    assert complaint in said
    assert "hunter2" not in said


def test_headers_are_sent_and_may_replace_the_host() -> None:
    _, received = probed(ANSWER, headers={"host": "shop.example", "X-Probe": "1"})
    lines = received.decode().splitlines()
    assert [line for line in lines if line.lower().startswith("host")] == ["host: shop.example"]
    assert "X-Probe: 1" in lines


def test_a_body_pattern_costs_no_more_than_the_body_is_long() -> None:
    body = b"a" * 60_000 + b"!"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    said, _ = probed(answer, expect_body_pattern="^(a+)+$", timeout=20)
    assert said is not None
    assert "without a match" in said


def test_tcp_is_healthy_once_a_connection_is_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert asyncio.run(asked(Probe(tcp=address), 5.0)) is None
    said = asyncio.run(asked(Probe(tcp=address), 5.0))
    assert said is not None
    assert said.startswith(f"{address}: ")


def test_silence_is_given_up() -> None:
    said, _ = probed(b"", timeout=0.05)
    assert said is not None
    assert "did not answer in 0.05 s" in said


def test_nobody_listening_is_said_plainly() -> None:
    said = asyncio.run(asked(Probe(url="http://127.0.0.1:1/"), 5.0))
    assert said is not None
    assert "Connect call failed" in said or "refused" in said

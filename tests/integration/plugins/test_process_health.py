"""A health probe believes nothing but a 200 in time."""

from __future__ import annotations

import asyncio

import pytest

from lehr.plugins.process.health import probe


def probed(answer: bytes, *, path: str = "/healthz", timeout: float = 5.0) -> tuple[str | None, bytes]:
    """What a probe says of a server that answers so, and what it asked."""
    asked, served = b"", asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if not answer:
            await reader.read()  # until the probe gives up
        writer.close()
        served.set()

    async def run() -> str | None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            said = await probe(f"http://127.0.0.1:{port}{path}", timeout)
            await served.wait()
            return said
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(run()), asked


def test_200_is_healthy() -> None:
    said, asked = probed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", path="/a?b=c")
    assert said is None
    assert asked.startswith(b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")


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


def test_silence_is_given_up() -> None:
    said, _ = probed(b"", timeout=0.05)
    assert said is not None
    assert "did not answer in 0.05 s" in said


def test_nobody_listening_is_said_plainly() -> None:
    said = asyncio.run(probe("http://127.0.0.1:1/", 5.0))
    assert said is not None
    assert "Connect call failed" in said or "refused" in said

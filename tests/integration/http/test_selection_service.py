"""A selection service over HTTP that hangs, lies, redirects, sends too much or something else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lehr.base.errors import LehrError
from lehr.http.selection_service import HttpSelectionService
from lehr.rollouts.services import Asked, ask, question_of
from lehr.rollouts.units import Unit
from lehr.wiring.selection_services import selection_service

QUESTION = question_of([Unit(id=id) for id in "abc"], 1000.0, at_most=1)
HOUR = 3600.0
OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(body: str, head: str = OK) -> bytes:
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@contextlib.asynccontextmanager
async def service_of(handler: Handler) -> AsyncIterator[str]:
    tasks: list[asyncio.Task[None]] = []

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await handler(reader, writer)
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.create_task(handled(reader, writer)))

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}/select?team=web"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def question_in(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(line for line in head.lower().splitlines() if line.startswith("content-length:"))
    return head, await reader.readexactly(int(length.partition(":")[2]))


def asked_of(handler: Handler, seconds: float = HOUR) -> Asked:
    async def main() -> Asked:
        async with service_of(handler) as url:
            return await ask(HttpSelectionService(url, seconds), QUESTION)

    return asyncio.run(main())


def answers(response: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await question_in(reader)
        writer.write(response)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return handler


def test_a_question_is_posted_and_its_answer_followed() -> None:
    heads: list[tuple[str, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await question_in(reader))
        writer.write(answering('{"update": ["b"]}'))
        await writer.drain()

    asked = asked_of(handler)
    assert (asked.refused, asked.selection.update) == (None, ("b",))
    [(head, question)] = heads
    assert head.startswith("POST /select?team=web HTTP/1.1\r\n")
    assert "content-type: application/json" in head.lower()
    assert json.loads(question)["units"] == [{"id": "a"}, {"id": "b"}, {"id": "c"}]


def test_an_answer_may_come_in_chunks_after_an_interim_one() -> None:
    chunks = b'd\r\n{"update": ["\r\n4\r\nc"]}\r\n0\r\n\r\n'
    head = f"HTTP/1.1 103 Early Hints\r\n\r\n{OK}Transfer-Encoding: chunked\r\n\r\n"
    assert asked_of(answers(head.encode() + chunks)).selection.update == ("c",)


@pytest.mark.parametrize(
    ("code", "response"),
    [
        ("ROL118", b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"),
        ("ROL118", b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n\r\n"),
        ("ROL119", b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        ("ROL119", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("ROL120", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}"),
        ("ROL120", f"{OK}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}".encode()),
        ("ROL116", b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        ("ROL116", b""),
        ("ROL116", f"{OK}Content-Length: 100\r\n\r\n{{".encode()),
        ("ROL116", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000),
        ("ROL116", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        ("ROL117", f"{OK}Content-Length: 99999999\r\n\r\n".encode() + b" " * 9_000_000),
        ("ROL104", answering("nothing")),
        ("ROL105", answering('{"update": "all"}')),
        ("ROL106", answering('{"update": ["z"]}')),
        ("ROL113", answering('{"update": ["a", "b"]}')),
    ],
)
def test_any_other_answer_updates_nothing_and_has_a_cause(code: str, response: bytes) -> None:
    asked = asked_of(answers(response))
    assert asked.refused is not None
    assert (asked.refused.code, asked.selection.update) == (code, ())
    assert asked.selection.hold


@pytest.mark.parametrize("begun", [b"", OK.encode(), f"{OK}Content-Length: 9\r\n\r\n{{".encode()])
def test_a_service_that_hangs_is_left(begun: bytes) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        await writer.drain()
        await reader.read()
        await asyncio.Event().wait()

    asked = asked_of(handler, seconds=0.1)
    assert asked.refused is not None
    assert (asked.refused.code, asked.selection.update) == ("ROL114", ())


def test_a_service_that_drips_is_left() -> None:
    """The time is for the whole answer: a byte now and then does not prolong it."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await question_in(reader)
        writer.write(f"{OK}Content-Length: 9999999\r\n\r\n".encode())
        for _ in range(2000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.001)

    asked = asked_of(handler, seconds=0.1)
    assert asked.refused is not None
    assert asked.refused.code == "ROL114"


def test_a_service_that_is_not_there_has_a_cause() -> None:
    async def main() -> Asked:
        async with service_of(answers(b"")) as url:
            pass
        return await ask(HttpSelectionService(url, HOUR), QUESTION)

    asked = asyncio.run(main())
    assert asked.refused is not None
    assert (asked.refused.code, asked.selection.update) == ("ROL115", ())


def test_a_large_question_reaches_a_service_that_answers_early() -> None:
    large = question_of([Unit(id=f"u{number}") for number in range(20_000)], 1000.0)

    async def main() -> Asked:
        async with service_of(answers_at_once) as url:
            return await ask(HttpSelectionService(url, HOUR), large)

    async def answers_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    asked = asyncio.run(main())
    assert asked.refused is not None
    assert asked.refused.code == "ROL119"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "http://",
        "http://user:word@host/",
        "http://host/#part",
        "http://host:port/",
        "http://host/a b",
        "http://host/\r\nX: y",
        "http://h\u00f6st/",
    ],
)
def test_what_is_not_the_url_of_a_service_is_refused(url: str) -> None:
    with pytest.raises(LehrError) as caught:
        HttpSelectionService(url)
    assert caught.value.code == "HTP135"


# --- its token -----------------------------------------------------------------------------


def test_the_token_is_read_for_each_question_and_sent(tmp_path: Path) -> None:
    heads: list[str] = []
    file = tmp_path / "token"

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await question_in(reader))[0])
        writer.write(answering('{"update": ["b"]}'))
        await writer.drain()

    async def main() -> None:
        async with service_of(handler) as url:
            service = selection_service(url, token=file)
            for token in ("one", "two"):
                file.write_text(f"{token}\n")
                assert (await ask(service, QUESTION)).refused is None

    asyncio.run(main())
    sent = [line for head in heads for line in head.splitlines() if line.lower().startswith("authorization")]
    assert [line.partition(": ")[2] for line in sent] == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize(("content", "code"), [(None, "WIR108"), ("", "WIR109"), ("a\nb", "WIR109")])
def test_a_token_that_is_not_there_asks_nothing(tmp_path: Path, content: str | None, code: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)

    async def handler(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        raise AssertionError

    async def main() -> Asked:
        async with service_of(handler) as url:
            return await ask(selection_service(url, token=file), QUESTION)

    refused = asyncio.run(main()).refused
    assert refused is not None
    assert refused.code == code


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://127.0.0.1:9/", False),
        ("http://[::1]:9/", False),
        ("http://localhost:9/", False),
        ("https://select.example.org/", False),
        ("http://select.example.org/", True),
        ("http://192.0.2.1/", True),
    ],
)
def test_a_token_leaves_this_machine_only_encrypted(tmp_path: Path, url: str, refused: bool) -> None:
    if refused:
        with pytest.raises(LehrError, match="without encryption"):
            selection_service(url, token=tmp_path / "token")
    else:
        selection_service(url, token=tmp_path / "token")

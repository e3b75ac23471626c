"""Whoever asks for too much, or never ends, takes a bounded share; others are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from lehr.cel.closures import MOST_STEPS
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import asset, publication
from tests.integration.http.served import ROOT
from tests.integration.http.server_process import SECRET, Process, more_files, server_process

HEAD = "Host: localhost\r\n"
MIB = 2**20

Story = Callable[[Process], Awaitable[None]]


def play(folder: Path, story: Story, assets: int = 300, size: int = 200, **limits: object) -> None:
    """A server with some assets, in a process of its own."""
    path = folder / "state.sqlite"
    store = SqliteStore(path)
    store.commit([publication(0, *(asset(f"a{number:05}", "a" * size) for number in range(assets)))])
    store.close()

    async def main() -> None:
        async with server_process(path, **limits) as server:
            assert (await server.get("/healthz")).status == 200
            await story(server)
            assert (await server.get("/healthz")).status == 200

    asyncio.run(main())


# --- slow ----------------------------------------------------------------------------


def test_a_head_that_comes_drop_by_drop_is_not_waited_for(tmp_path: Path) -> None:
    async def story(server: Process) -> None:
        async def drip() -> bytes:
            reader, writer = await server.connect()
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            reading = asyncio.create_task(reader.read())
            with contextlib.suppress(ConnectionError):
                while not reading.done():
                    writer.write(b"X: y\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.02)
            try:
                return await reading
            except ConnectionError:
                return b" 408 "
            finally:
                writer.transport.abort()

        drops = [asyncio.create_task(drip()) for _ in range(50)]
        while not all(drop.done() for drop in drops):
            assert (await server.get(f"{ROOT}/assets")).status == 200
        assert all(b" 408 " in drop.result() for drop in drops)

    play(tmp_path, story, head_seconds=0.5)


def test_a_body_that_comes_drop_by_drop_is_not_waited_for(
    tmp_path: Path,
) -> None:
    async def story(server: Process) -> None:
        signature = hmac.new(SECRET.encode(), b"", hashlib.sha256).hexdigest()
        head = (
            f"POST /hooks/git HTTP/1.1\r\n{HEAD}X-Gitea-Signature: {signature}\r\nContent-Length: 99\r\n\r\n"
        )
        slow = [await server.connect() for _ in range(50)]
        for _reader, writer in slow:
            writer.write(head.encode() + b"x")
        assert (await server.get(f"{ROOT}/assets")).status == 200
        refused = await server.say(
            f"POST {ROOT}/assets HTTP/1.1\r\n{HEAD}Content-Length: 99\r\n\r\nx".encode()
        )
        assert refused.status == 405
        for _reader, writer in slow:
            writer.transport.abort()

    play(tmp_path, story)


def test_connections_on_which_nothing_comes_are_turned_away_beyond_a_number_and_let_go_of(
    tmp_path: Path,
) -> None:
    async def story(server: Process) -> None:
        silent = [await server.connect() for _ in range(300)]
        answers = [await server.get("/healthz")]
        while answers[-1].status != 200:
            assert (answers[-1].status, answers[-1].json["code"]) == (503, "Busy")
            assert answers[-1].headers["retry-after"] == "1"
            answers.append(await server.get("/healthz"))
        assert len(answers) > 1
        for _reader, writer in silent:
            writer.transport.abort()

    play(tmp_path, story, connections=200, head_seconds=1.0)


# --- much ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "status"),
    [
        (f"GET {ROOT}/assets?filter=", 414),
        (f"GET /healthz HTTP/1.1\r\n{HEAD}X: ", 431),
        (f"GET /healthz HTTP/1.1\r\n{HEAD}Content-Length: {100 * MIB}\r\n\r\n", 413),
        (f"GET /healthz HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n{100 * MIB:x}\r\n", 413),
        (f"POST {ROOT}/assets HTTP/1.1\r\n{HEAD}Content-Length: {100 * MIB}\r\n\r\n", 405),
        (
            f"POST /hooks/git HTTP/1.1\r\n{HEAD}X-Gitea-Signature: x\r\nContent-Length: {100 * MIB}\r\n\r\n",
            413,
        ),
    ],
    ids=["filter", "header", "body", "chunk", "post", "hook"],
)
def test_a_hundred_megabytes_are_neither_kept_nor_read(begin: str, status: int, tmp_path: Path) -> None:
    async def story(server: Process) -> None:
        before = server.most_memory
        with contextlib.suppress(IndexError):  # what was answered may be lost with the connection
            answer = await server.say(begin.encode() + b"x" * (100 * MIB))
            assert answer.status == status
        assert server.most_memory - before < 20 * MIB

    play(tmp_path, story)


def test_answers_that_nobody_reads_are_bounded_and_cut_off(tmp_path: Path) -> None:
    async def story(server: Process) -> None:
        before = server.most_memory
        page = len((await server.get(f"{ROOT}/assets?limit=10000")).content)
        assert page > 4 * MIB
        silent = []
        for _ in range(60):
            reader, writer = await server.connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(f"GET {ROOT}/assets?limit=10000 HTTP/1.1\r\n{HEAD}\r\n".encode())
            silent.append((reader, writer))
        busy = await server.get(f"{ROOT}/assets?limit=1")
        while busy.status == 200:
            busy = await server.get(f"{ROOT}/assets?limit=1")
        assert (busy.status, busy.json["code"]) == (503, "Busy")
        assert server.most_memory - before < 160 * MIB
        while busy.status == 503:  # until they are cut off
            busy = await server.get(f"{ROOT}/assets?limit=1")
        for _reader, writer in silent:
            writer.transport.abort()

    # Time enough for a busy machine to make all these responses before the first one is cut off.
    play(tmp_path, story, assets=2500, size=1700, stall_seconds=8.0, answer_bytes=20 * MIB)


# --- hard ----------------------------------------------------------------------------

TEN = "0,1,2,3,4,5,6,7,8,9"
EXPLODING = {
    "a regular expression that goes back": "payload.value.matches('(a*)*b')",
    "one that goes back in many ways": "payload.value.matches('(a|a|aa)+$') && id.matches('(.*)*x')",
    "one that counts": "payload.value.matches('(a{1,900}){1,9}b')",
    "one that counts beyond all bounds": "payload.value.matches('((a{1,1000}){1,1000}){1,1000}')",
    "macros inside each other": "".join(f"[0,1,2,3,4,5,6,7,8,9].all(i{n}, " for n in range(12))
    + "true"
    + ")" * 12,
    "macros around regular expressions": "[1,2].all(x, [1,2].all(y, payload.value.matches('a')))",
    "text that grows": "+".join(["payload.value"] * 200) + " == 'x'",
    "parentheses": "(" * 2000 + "true" + ")" * 2000,
    "negations": "!" * 4000 + "true",
    "signs": "-" * 4000 + "1 == 1",
    "lists in lists": "[" * 1900 + "1" + "]" * 1900 + " == []",
    "fields of fields": "payload" + ".a" * 2000 + " == 1",
    "indexes of indexes": "payload" + "[0]" * 1300 + " == 1",
    "alternatives": "||".join(["id == 'x'"] * 370),
    "alternatives in alternatives": "true ? " * 500 + "true" + " : true" * 500,
    "maps in maps": "{'a':" * 700 + "1" + "}" * 700 + " == {}",
    "an integer of many digits": "1" * 4000 + " == 1",
    "escapes": "'" + "\\\\u0041" * 600 + "' == 'x'",
}


def test_no_filter_takes_the_server_with_it(tmp_path: Path) -> None:
    async def story(server: Process) -> None:
        for name, expression in EXPLODING.items():
            asked = f"filter={quote(expression, safe='')}"
            before = server.processor
            for target in (f"{ROOT}/assets?{asked}", f"{ROOT}/watch?after=1&{asked}"):
                watched = "watch" in target
                reader, writer = await server.connect()
                writer.write(f"GET {target} HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n".encode())
                assert (await server.get(f"{ROOT}/assets/a00001")).status == 200  # meanwhile
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                status = int(head.split()[1])
                assert status in (200, 400), (name, head)
                if status == 400:
                    assert "application/problem+json" in head, name
                elif not watched:
                    assert await reader.read(), name
                writer.transport.abort()
            assert server.processor - before < 5.0, name

    play(tmp_path, story, page_seconds=0.5, line_seconds=0.5)


def test_a_filter_that_looks_at_too_much_has_no_answer_and_says_so(tmp_path: Path) -> None:
    async def story(server: Process) -> None:
        asked = quote(EXPLODING["macros inside each other"], safe="")
        plan = (await server.get(f"{ROOT}/assets?limit=1&filter={asked}")).json["plan"]
        assert plan["unanswered"] == plan["looked_at"] > 0
        assert f"{MOST_STEPS:,}" in plan["why"]

    play(tmp_path, story, assets=3, filter_seconds=60.0)


def test_a_watch_whose_filter_takes_too_long_is_told_to_list(tmp_path: Path) -> None:
    async def story(server: Process) -> None:
        asked = quote(EXPLODING["macros inside each other"], safe="")
        answer = await server.get(f"{ROOT}/watch?after=0&filter={asked}")
        assert (answer.status, answer.json["code"]) == (410, "ListAgain")
        assert "too long" in answer.json["detail"]

    play(tmp_path, story, line_seconds=0.2)


# --- many ----------------------------------------------------------------------------

WATCHERS = 2000


@pytest.mark.timeout(120)
def test_thousands_of_idle_watchers_cost_little_and_others_are_answered(tmp_path: Path) -> None:
    many = min(WATCHERS, more_files(WATCHERS + 500) - 500)

    async def story(server: Process) -> None:
        before = server.most_memory
        watchers = []
        for number in range(many):
            reader, writer = await server.connect()
            own = f"&filter={quote(f'id == {str(number)!r}')}" if number % 20 == 0 else ""
            writer.write(f"GET {ROOT}/watch?after=1{own} HTTP/1.1\r\n{HEAD}\r\n".encode())
            watchers.append((reader, writer))
        for reader, _writer in watchers:
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        assert (server.most_memory - before) / many < 100_000  # bytes each
        began = server.processor
        for _ in range(2):  # signs of life, which each of them gets
            for reader, _writer in watchers:
                assert b'"sequence":1' in (await _line(reader))
            assert (await server.get(f"{ROOT}/assets?limit=100")).status == 200
        assert (server.processor - began) / (2 * many) < 0.002  # seconds for each sign
        for _reader, writer in watchers:
            writer.transport.abort()

    play(tmp_path, story, heartbeat_seconds=2.0)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line of a watch, in a chunk."""
    size = int(await reader.readline(), 16)
    return (await reader.readexactly(size + 2))[:-2]

"""Whoever asks for too much, takes too long, or does not read, is told so or cut off; others go on."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from lehr.http.limits import Limits
from lehr.http.protocol import BoundedProtocol
from lehr.testing.conformance.store.subject import asset
from tests.integration.http.served import HOUR, ROOT, LeapingLoop, Served, parsed, run_leaping, served


async def watching(server: Served, after: int = 0) -> asyncio.StreamReader:
    reader, writer = await server.connect()
    writer.write(f"GET {ROOT}/watch?after={after} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader


def test_a_request_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def main(loop: LeapingLoop) -> None:
        async with served(tmp_path, Limits(head_seconds=HOUR, idle_seconds=100 * HOUR)) as server:
            server.publish([asset("a")])
            slow, writer = await server.connect()
            writer.write(f"GET {ROOT}/assets HTTP/1.1\r\nHost: localhost\r\n".encode())
            assert (await server.get(f"{ROOT}/assets")).status == 200
            answer = parsed(await loop.leap_until_done(slow.read()))
            assert (answer.status, answer.json["code"]) == (408, "Timeout")
            silent, _writer = await server.connect()
            assert parsed(await loop.leap_until_done(silent.read())).status == 408

    run_leaping(main)


def test_a_request_that_is_too_long_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            server.publish([asset("a")])
            answer = await server.get(f"{ROOT}/assets?filter={'x' * 100_000}")
            assert (answer.status, answer.json["code"]) == (414, "UriTooLong")
            answer = await server.get(f"{ROOT}/assets", [("X-Long", "x" * 100_000)])
            assert (answer.status, answer.json["code"]) == (431, "TooLong")
            answer = await server.say(b"what is this?\r\n\r\n")
            assert (answer.status, answer.json["code"]) == (400, "BadRequest")
            answer = await server.get(f"{ROOT}/assets", [("Content-Length", "100000000")])
            assert (answer.status, answer.json["code"]) == (413, "ContentTooLarge")

    asyncio.run(main())


def test_an_expression_that_explodes_is_bounded(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(page_seconds=0.0)) as server:
            server.publish([asset(f"a{number}", "a" * 200) for number in range(600)])
            answer = await server.get(f"{ROOT}/assets?filter=payload.value.matches('(a*)*b')")
            assert (answer.status, answer.json["assets"]) == (200, [])
            assert answer.json["plan"]["looked_at"] == 16
            assert answer.json["cursor"]

    asyncio.run(main())


def test_more_connections_than_there_may_be_are_turned_away(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(connections=3)) as server:
            server.publish([asset("a")])
            for _ in range(3):
                await watching(server)
            answer = await server.get("/healthz")
            assert (answer.status, answer.json["code"]) == (503, "Busy")
            assert answer.headers["retry-after"] == "1"

    asyncio.run(main())


def test_more_watchers_than_there_may_be_are_turned_away(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(watchers=1)) as server:
            server.publish([asset("a")])
            await watching(server)
            answer = await server.get(f"{ROOT}/watch")
            assert (answer.status, answer.json["code"]) == (503, "Busy")
            assert answer.headers["retry-after"] == "1"
            assert (await server.get("/healthz")).status == 200

    asyncio.run(main())


def test_who_does_not_read_is_cut_off_and_nothing_is_kept_for_it(tmp_path: Path) -> None:
    async def main(loop: LeapingLoop) -> None:
        async with served(tmp_path, Limits(stall_seconds=HOUR, heartbeat_seconds=0.1)) as server:
            for number in range(40):
                server.publish([asset(f"a{number}-{other}", "x" * 50_000) for other in range(10)])
            slow, writer = await server.connect()
            slow._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(f"GET {ROOT}/watch HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            quick = await watching(server)
            lines = [await _line(quick) for _ in range(40)]
            assert all(b'"changed"' in line for line in lines)
            assert b'"sequence":40' in await _line(quick)
            assert server.running.watchers == 2
            while server.running.watchers > 1:
                loop.leapt += HOUR
                assert b'"sequence":40' in await _line(quick)  # a sign of life: this one goes on
            slow._transport.resume_reading()  # type: ignore[attr-defined]
            rest = await slow.read()  # what was on its way, and why there is no more
            assert rest.endswith(b"\r\n0\r\n\r\n")
            last = rest.splitlines()[-4]
            assert b'"code":"TooSlow"' in last

    run_leaping(main)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line of a watch; parts of a chunked answer are put together."""
    found = b""
    while not found.endswith(b"\n"):
        size = int(await reader.readline(), 16)
        found += (await reader.readexactly(size + 2))[:-2]
    return found


def test_nothing_is_kept_of_connections_that_are_closed(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            server.publish([asset("a")])
            for target in (f"{ROOT}/assets", "/nowhere", "/healthz?x=1") * 10:
                await server.get(target)
            while server.running.connections:
                await server.get("/healthz")
            gc.collect()
            assert sum(isinstance(item, BoundedProtocol) for item in gc.get_objects()) <= 1

    asyncio.run(main())


def test_two_hundred_watchers_all_have_everything_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(heartbeat_seconds=60.0)) as server:
            server.publish([asset("a", "0")])
            readers = [await watching(server, 1) for _ in range(200)]
            for number in range(2, 12):
                server.publish([asset("a", str(number))])

            async def follow(reader: asyncio.StreamReader) -> list[int]:
                found: list[int] = []
                while len(found) < 10:
                    lines = (await _line(reader)).splitlines()
                    found += [int(line.partition(b":")[2].partition(b",")[0]) for line in lines]
                return found

            heard = await asyncio.gather(*map(follow, readers))
            assert all(item == list(range(2, 12)) for item in heard)

    asyncio.run(main())

"""The feed as server-sent events: none is missed, and a stream ends with its reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lehr.http.event_streams import event
from lehr.http.limits import Limits
from lehr.testing.conformance.store.subject import asset
from tests.integration.http.served import ROOT, Served, served


class Event(NamedTuple):
    id: int
    name: str
    data: Any


class Stream:
    """A client that reads events."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.alive = asyncio.Event()

    async def next(self) -> Event | None:
        """The next event; None at the end."""
        id, name, data = 0, "", []
        while line := await self._reader.readline():
            text = line.decode().rstrip("\r\n")
            field, _, value = text.partition(": ")
            if text.startswith(":"):
                self.alive.set()
            elif field == "id":
                id = int(value)
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not text and data:
                return Event(id, name, json.loads("".join(data)))
        return None

    async def take(self, count: int) -> list[Event]:
        found = [await self.next() for _ in range(count)]
        return [item for item in found if item is not None]


async def follow(server: Served, query: str = "", headers: Sequence[str] = ()) -> Stream:
    reader, writer = await server.connect()
    lines = [f"GET {ROOT}/events{query} HTTP/1.0", "Host: 127.0.0.1", *headers]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert " 200 " in head.splitlines()[0], head
    assert "content-type: text/event-stream" in head
    assert "no-store" in head
    return Stream(reader)


def publish(server: Served, count: int) -> None:
    for number in range(count):
        server.publish([asset("a", str(number))])


# --- framing -------------------------------------------------------------------------------


def test_an_event_is_framed_as_the_standard_has_it() -> None:
    assert event(b"{}", id=7) == b"id: 7\ndata: {}\n\n"
    assert event(b"{}", name="problem") == b"event: problem\ndata: {}\n\n"


# --- what is sent --------------------------------------------------------------------------


def test_each_commit_is_an_event_that_names_what_it_changed(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            publish(server, 1)
            stream = await follow(server)
            publish(server, 1)
            [found] = await stream.take(1)
            assert found.id == found.data["position"]
            assert found.data["changes"] == [["incarnation", "", "2"]]

    asyncio.run(main())


@pytest.mark.parametrize("how", ["after", "header"])
def test_a_client_that_comes_back_misses_nothing(how: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            publish(server, 1)
            first = await (await follow(server, "?after=0")).take(1)
            publish(server, 5)
            last = first[0].id
            if how == "after":
                stream = await follow(server, f"?after={last}")
            else:
                stream = await follow(server, "?after=0", [f"Last-Event-ID: {last}"])
            publish(server, 3)
            found = await stream.take(8)
            assert [item.id for item in found] == list(range(last + 1, last + 9))

    asyncio.run(main())


def test_many_clients_that_come_at_any_time_see_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            streams: list[Stream] = []
            expected: dict[int, Event] = {}
            for _ in range(6):
                publish(server, 2)
                streams.append(await follow(server, "?after=0"))
            for stream in streams:
                found = await stream.take(12)
                assert [item.id for item in found] == list(range(1, 13))
                for item in found:
                    assert expected.setdefault(item.id, item) == item

    asyncio.run(main())


def test_while_nothing_happens_comments_show_that_it_is_alive(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(heartbeat_seconds=0.05)) as server:
            publish(server, 1)
            stream = await follow(server)
            waiting = asyncio.create_task(stream.next())
            await stream.alive.wait()
            assert not waiting.done()
            publish(server, 1)
            assert (await waiting) is not None

    asyncio.run(main())


def test_at_the_end_of_the_server_streams_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            publish(server, 1)
            stream = await follow(server)
            waiting = asyncio.create_task(stream.next())
            await asyncio.sleep(0)
        assert await waiting is None

    asyncio.run(main())


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "headers", "status", "code"),
    [
        (f"{ROOT}/events?after=99", (), 410, "ListAgain"),
        (f"{ROOT}/events", (("Last-Event-ID", "99"),), 410, "ListAgain"),
        (f"{ROOT}/events?after=soon", (), 400, "BadRequest"),
        (f"{ROOT}/events?color=red", (), 400, "BadRequest"),
        ("/v1/partitions/none/events", (), 404, "NotFound"),
        (f"{ROOT}/events", (("Accept", "application/json"),), 406, "NotAcceptable"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(
    target: str, headers: Sequence[tuple[str, str]], status: int, code: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            publish(server, 1)
            answer = await server.get(target, headers)
            assert (answer.status, answer.json["code"]) == (status, code)

    asyncio.run(main())


def test_there_is_room_for_so_many_clients(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(watchers=2)) as server:
            publish(server, 1)
            for _ in range(2):
                await follow(server)
            answer = await server.get(f"{ROOT}/events")
            assert (answer.status, answer.json["code"]) == (503, "Busy")

    asyncio.run(main())

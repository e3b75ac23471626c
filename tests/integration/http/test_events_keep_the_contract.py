"""The server-sent events of a feed keep the contract of watches of feeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lehr.base.errors import TransientError
from lehr.base.moments import decode
from lehr.client.wire import LIST_AGAIN
from lehr.model.feed import FeedEntry
from lehr.model.writes import Prune, RecordDecision
from lehr.sdk.watch import FeedGoneError
from lehr.testing.conformance.store.subject import PARTITION, asset, decision
from tests.feed_watch_rules import FEED_RULES, FeedRule, FeedSubject
from tests.integration.http.served import ROOT, Served, served

FIRST = 1
"""The position of the first incarnation."""


class Events:
    """Follows a feed as a browser does: it resumes by `Last-Event-ID`.

    A partition exists over HTTP from its first incarnation on: positions are counted from there.
    """

    def __init__(self, server: Served) -> None:
        self._server = server

    async def position(self) -> int:
        try:
            position = int((await self._server.get(f"{ROOT}/feed")).json["position"])
        except (IndexError, ValueError, ConnectionError) as error:  # it was broken before its end
            raise TransientError("the connection is lost") from error
        return position - FIRST

    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        try:
            reader, writer = await self._server.connect()
        except ConnectionError as error:
            raise TransientError("the connection is lost") from error
        lines = [f"GET {ROOT}/events HTTP/1.0", "Host: 127.0.0.1", f"Last-Event-ID: {after + FIRST}"]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            if " 200 " not in head.splitlines()[0]:
                raise problem((await reader.read()).decode(), after)
            async for name, data in events(reader):
                if name == "problem":
                    raise problem(data, after)
                entry = decode(data.encode(), FeedEntry)
                yield replace(entry, position=entry.position - FIRST)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise TransientError("the connection is lost") from error
        finally:
            writer.transport.abort()
        raise TransientError("the stream has ended")


async def events(reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, str]]:
    """The name and the data of each event."""
    name, data = "", ""
    while line := (await reader.readline()).decode():
        field, _, value = line.rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data = value
        elif not field and data:
            yield name, data
            name, data = "", ""


def problem(text: str, after: int) -> Exception:
    return FeedGoneError(after, text) if f'"{LIST_AGAIN}"' in text else TransientError(text)


def subject(server: Served) -> FeedSubject:
    store = server.store

    def decide(reasons: dict[str, str]) -> None:
        store.commit([RecordDecision(decision(id, reason)) for id, reason in reasons.items()])

    def reasons() -> dict[str, str]:
        return {item.asset: item.condition.reason for item in store.records.standings(PARTITION)}

    def prune() -> None:
        rest: Prune | None = Prune(PARTITION, keep=1, before=float("inf"))
        while rest is not None:
            [pruned] = store.commit([rest])
            rest = pruned.rest

    connections = server.running.break_connections
    return FeedSubject(lambda: Events(server), decide, reasons, prune, connections, patience=30.0)


@pytest.mark.parametrize("rule", FEED_RULES, ids=lambda rule: str(rule.__name__))
def test_events_keep_the_contract_of_watches(rule: FeedRule, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            server.publish([asset("a", "1")])
            await rule(subject(server))

    asyncio.run(main())

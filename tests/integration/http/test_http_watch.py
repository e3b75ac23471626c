"""A partition is watched over HTTP as it is watched in the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from lehr.base.errors import TransientError
from lehr.client.http import HttpWatch
from lehr.http.limits import Limits
from lehr.model.asset import Asset, AssetId
from lehr.model.writes import Prune, TakeLease
from lehr.sdk.watch import Batch
from lehr.testing.conformance.store.subject import PARTITION, asset
from tests.integration.http.served import Served, served
from tests.watch_rules import RULES, Rule, Subject

LIMITS = Limits(heartbeat_seconds=0.2)


def subject(server: Served) -> Subject:
    def publish(changed: Sequence[Asset], gone: Sequence[AssetId]) -> None:
        server.publish(changed, gone)

    def prune() -> None:
        rest: Prune | None = Prune(PARTITION, keep=1, before=float("inf"))
        while rest is not None:
            [pruned] = server.store.commit([rest])
            rest = pruned.rest

    return Subject(
        lambda: HttpWatch(server.running.url, PARTITION, page=7),
        publish,
        prune,
        server.running.break_connections,
        patience=20.0,
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_partition_over_http_keeps_the_contract_of_watches(rule: Rule, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, LIMITS) as server:
            server.store.commit([TakeLease(PARTITION, "one", 1.0)])  # so that the partition is known
            await rule(subject(server))

    asyncio.run(main())


def test_who_watches_a_server_that_is_started_again_misses_nothing_and_hears_nothing_twice(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        heard: list[int] = []
        at = 0
        port = 0
        for life in range(4):
            async with served(tmp_path, LIMITS, port=port) as server:
                port = server.running.address.port
                server.publish([asset("a", str(life))])
                watch = HttpWatch(server.running.url, PARTITION)
                newest = 3 * life + 1
                async with contextlib.aclosing(watch.watch(at)) as batches:  # type: ignore[type-var]
                    async for batch in batches:
                        at = batch.sequence
                        heard += [batch.sequence] if batch.changed else []
                        if at == newest:
                            break
                server.publish([asset("b", str(life))])  # while nobody watches
                server.publish([asset("c", str(life))])
        assert heard == list(range(1, 11))

    asyncio.run(main())


def test_a_watch_ends_with_the_server_and_is_told_to_come_again(tmp_path: Path) -> None:
    async def main() -> None:
        heard: list[Batch] = []
        began = asyncio.Event()

        async def follow(url: str) -> None:
            async for batch in HttpWatch(url, PARTITION).watch(0):
                heard.append(batch)
                began.set()

        async with served(tmp_path, LIMITS) as server:
            server.publish([asset("a")])
            watching = asyncio.create_task(follow(server.running.url))
            await began.wait()
        with pytest.raises(TransientError, match=r"ended|reached"):
            await watching
        assert [batch.sequence for batch in heard if batch.changed] == [1]

    asyncio.run(main())

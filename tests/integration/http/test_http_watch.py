"""A partition is watched over HTTP as it is watched in the process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from lehr.client.http import HttpWatch
from lehr.http.limits import Limits
from lehr.model.asset import Asset, AssetId
from lehr.store.writes import Prune, TakeLease
from lehr.testing.conformance.store.subject import PARTITION
from lehr.testing.conformance.watch import RULES, Rule, Subject
from tests.integration.http.served import Served, served

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
            server.store.commit([TakeLease(PARTITION)])  # so that the partition is known
            await rule(subject(server))

    asyncio.run(main())

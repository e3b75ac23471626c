"""Controllers: every asset that changed is reconciled, again after a failure, once at a time."""

from __future__ import annotations

import asyncio
from collections import Counter

from lehr.base.chance import Chance
from lehr.base.errors import WaitingError
from lehr.client import Controller, SharedInformer
from lehr.model.asset import AssetId
from lehr.testing.virtual import VirtualClock, run
from tests.unit.client.test_informer import Intent, asset, value_of


def test_what_changes_is_made_so_whatever_fails_on_the_way() -> None:
    async def main() -> None:
        intent, clock = Intent(), VirtualClock()
        informer = SharedInformer(intent, clock, Chance(1))
        made: dict[str, int | None] = {}
        calls: Counter[str] = Counter()
        busy: set[str] = set()

        async def reconcile(id: AssetId) -> float | None:
            assert id not in busy
            busy.add(id)
            calls[id] += 1
            await clock.sleep(3.0)
            busy.discard(id)
            if id == "fails" and calls[id] < 3:
                raise ValueError("not yet")
            if id == "waits" and calls[id] < 2:
                raise WaitingError("not now", until=clock.now() + 100.0)
            found = informer.get(id)
            if found is None:
                made.pop(id, None)
            else:
                made[id] = value_of(found)
            return 60.0 if id == "again" else None

        controller = Controller(informer, reconcile, clock, Chance(1), workers=2)
        running = asyncio.create_task(controller.run())
        intent.publish([asset(id) for id in ("fails", "waits", "goes", "again")])
        await clock.sleep(1.0)
        for value in range(1, 20):
            intent.publish([asset("goes", value)])
        intent.publish([], ["goes"])
        await clock.sleep(1000.0)
        assert made == {"fails": 0, "waits": 0, "again": 0}
        assert calls["fails"] == 3
        assert calls["waits"] == 2
        assert calls["goes"] < 5
        assert calls["again"] > 10
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(main, seed=1)

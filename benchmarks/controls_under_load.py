"""Admissions that are refused because a person has pinned other assets, while pushes go on.

The real Enforcer, group commit and store; production is a plugin that does nothing. SIZE assets
(10,000) are pushed for the first time, and meanwhile one asset in a hundred is pinned, each by a
control of its own, in ten groups. The peer is a few pins that select every asset: each push that is
being admitted has to look again.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import figures
from benchmarks.enforce_push import PARTITION, Nothing, Wrapped, at_rest, enforcer, ids, publish
from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.enforce.committer import Committer
from lehr.model.asset import AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.selector import Selector, parse_selector
from lehr.model.writes import Admit, Refused, SetControl, Write
from lehr.sdk.store import Store
from lehr.store.sqlite import SqliteStore

_GROUPS = 10
_PINS_OF_ALL = 5


class Counting(Wrapped):
    """A store that counts refused admissions."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.admitted = 0
        self.refused: Counter[AssetId] = Counter()

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        answers = super().commit(writes)
        for write, answer in zip(writes, answers, strict=True):
            if isinstance(write, Admit) and isinstance(answer, Refused):
                self.refused[write.operation.asset] += 1
            elif isinstance(write, Admit):
                self.admitted += 1
        return answers


class Found(NamedTuple):
    """Refusals of one run, and how fast it pushed meanwhile.

    Attributes:
        pins: how many were set, and had woken their assets, before the last push was admitted.
        own, others: refused admissions of assets that a pin selects by its id, and of others.
    """

    pins: int
    own: int
    others: int
    pushes_a_second: float


def _pin(selector: Selector, now: float) -> Control:
    return Control(
        id=uuid.uuid4().hex,
        kind=ControlKind.PIN,
        partition=PARTITION,
        selector=selector,
        reason="bench",
        actor="bench",
        at=now,
        incarnation=1,
    )


async def converge(store: Counting, selectors: Sequence[Selector], size: int) -> Found:
    """Push all assets, and set the pins meanwhile."""
    committing, clock = Threads("commit", 1), SystemClock()
    committer = Committer(store, committing, clock)
    commits = asyncio.create_task(committer.run())
    running = enforcer(store, Nothing(), committer)
    began = time.perf_counter()
    await running.start("bench")
    pins = 0
    step = math.ceil(len(selectors) / _GROUPS)
    for number, first in enumerate(range(0, len(selectors), step)):
        group = selectors[first : first + step]
        while store.admitted < size * 0.8 * number / _GROUPS:
            await running.changed()
        await committer.ask(*(SetControl(_pin(selector, clock.now())) for selector in group))
        await asyncio.gather(*(running.controls_changed(selector, "pin by bench") for selector in group))
        pins += len(group) if store.admitted < size else 0
    await at_rest(running)
    await committer.flush()
    seconds = time.perf_counter() - began
    await running.stop()
    commits.cancel()
    committing.close()
    pinned = {id for selector in selectors for id in selector.ids}
    own = sum(number for id, number in store.refused.items() if id in pinned)
    return Found(pins, own, store.refused.total() - own, size / seconds)


def measure(selectors: Sequence[Selector], size: int) -> Found:
    """One run on a fresh store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Counting(SqliteStore(Path(folder) / "state.sqlite"))
        publish(store, size)
        found = asyncio.run(converge(store, selectors, size))
        store.close()
    return found


def main() -> None:
    """Print the figure."""
    size = figures.size(10_000)
    each = [parse_selector(id) for id in ids(size)[::100]]
    found = measure(each, size)
    peer = measure([parse_selector("all")] * _PINS_OF_ALL, size)
    figures.report(
        "refused_for_others_pins",
        found.others / max(found.pins, 1),
        "admissions per pin",
        size,
        peer=figures.Peer("pins that select all assets", peer.others / max(peer.pins, 1)),
        pins=found.pins,
        refused_of_the_pinned=found.own,
        pushes_a_second=round(found.pushes_a_second),
    )


if __name__ == "__main__":
    main()

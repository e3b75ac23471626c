"""A newer revision overtakes a generation that is under way, and what was made so far is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lehr.base.blocking import Inline
from lehr.generate.engine.client import GenerationWorker
from lehr.sdk.generation import Generated, Overtakable, OvertakenError
from tests.codes import raises
from tests.snapshots import MemorySnapshot

SLOW = """
from lehr.sdk.generator import *

@for_each_file("services/*.yaml")
def slow(file):
    while file.text() == "slow":
        pass
    yield asset(file.text(), "sample.Service", {})

@for_all_assets("sample.Service", makes="sample.Policy")
def count(services):
    yield asset("count", "sample.Policy", {"text": str(len(services))})
"""
COUNT = 50
LAST = "services/s59.yaml"


class Reading(MemorySnapshot):
    """Knows what was read of it, and when the last of it was."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        super().__init__(files)
        self.read_paths: list[str] = []
        self.at_last = asyncio.Event()

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        if path == LAST:
            self.at_last.set()
        return super().read(path)


def snapshot(**changed: str) -> Reading:
    services = {f"s{number}": f"s{number}" for number in range(10, 10 + COUNT)} | changed
    files: dict[str, str | bytes] = {"lehr.yaml": "partition: test\n", "generators/g.py": SLOW}
    return Reading({**files, **{f"services/{name}.yaml": text for name, text in services.items()}})


async def overtaken(worker: GenerationWorker, under_way: Reading) -> None:
    """Have a generation stop while it is at its last call."""
    task = asyncio.create_task(worker.generate(under_way))
    await under_way.at_last.wait()
    await asyncio.sleep(1.0)
    worker.overtake()
    with raises("SDK101", OvertakenError):
        await task


def test_what_was_made_before_it_was_overtaken_is_not_made_again() -> None:
    async def main() -> tuple[Generated, Generated, Reading]:
        worker, other = (GenerationWorker("lehr.testing.samples:registry", Inline()) for _ in range(2))
        assert isinstance(worker, Overtakable)
        await overtaken(worker, snapshot(s59="slow"))
        newer = snapshot(s59="another")
        incremental, clean = await worker.generate(newer), await other.generate(snapshot(s59="another"))
        await worker.close()
        await other.close()
        return incremental, clean, newer

    incremental, clean, newer = asyncio.run(main())
    assert incremental.diagnostics == clean.diagnostics == ()
    assert dict(incremental.assets) == dict(clean.assets)
    assert incremental.touched is None
    assert LAST in newer.read_paths
    assert len(newer.read_paths) < COUNT


def test_a_worker_that_has_nothing_to_do_is_not_overtaken() -> None:
    async def main() -> None:
        worker = GenerationWorker("lehr.testing.samples:registry", Inline())
        worker.overtake()
        small = {"lehr.yaml": "partition: test\n", "assets/a.yaml": "{id: a, type: sample.Service}\n"}
        first = await worker.generate(MemorySnapshot({**small}))
        worker.overtake()
        second = await worker.generate(MemorySnapshot({**small, "other": "x"}))
        assert (len(first.assets), second.touched) == (1, frozenset())
        await worker.close()

    asyncio.run(main())

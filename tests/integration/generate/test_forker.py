"""Calls are forked off a process that knows nothing, and that lives and dies with the worker."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from lehr.base.blocking import Inline
from lehr.base.errors import TransientError
from lehr.generate.engine.client import GenerationWorker
from lehr.sdk.generation import Generated
from tests.codes import raises
from tests.snapshots import MemorySnapshot

REGISTRY = "lehr.testing.samples:registry"
CURIOUS = """
import gc
from lehr.sdk.generator import *

@for_each_file("services/*.yaml")
def curious(file):
    gc.unfreeze()
    known = sum(type(item).__name__ in ("Asset", "Output", "Build") for item in gc.get_objects())
    yield asset(file.path, "sample.Policy", {"text": f"{file.text()}: {known}"})
"""


def snapshot(**services: str) -> MemorySnapshot:
    files: dict[str, str | bytes] = {
        "lehr.yaml": "partition: test\n",
        "assets/plain.yaml": "{id: plain, type: sample.Service}\n",
        "generators/curious.py": CURIOUS,
    }
    files |= {f"services/{name}.yaml": text for name, text in services.items()}
    return MemorySnapshot(files)


def forker_of(worker: GenerationWorker) -> int:
    [child] = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    return int(child)


def text_of(generated: Generated) -> dict[str, str]:
    documents = [item.document() for item in generated.assets.values() if item.type == "sample.Policy"]
    return {item["id"]: item["payload"]["text"] for item in documents}


def test_a_generator_finds_nothing_of_what_the_worker_remembers() -> None:
    async def main() -> dict[str, str]:
        worker = GenerationWorker(REGISTRY, Inline())
        await worker.generate(snapshot(a="first"))
        second = await worker.generate(snapshot(a="first", b="second"))
        await worker.close()
        return text_of(second)

    assert asyncio.run(main()) == {"services/a.yaml": "first: 0", "services/b.yaml": "second: 0"}


def test_when_the_forker_dies_everything_is_made_anew() -> None:
    async def main() -> dict[str, str]:
        worker = GenerationWorker(REGISTRY, Inline())
        await worker.generate(snapshot(a="first"))
        os.kill(forker_of(worker), signal.SIGKILL)
        with raises("GEN102", TransientError):
            await worker.generate(snapshot(a="second"))
        again = await worker.generate(snapshot(a="second"))
        await worker.close()
        return text_of(again)

    assert asyncio.run(main()) == {"services/a.yaml": "second: 0"}


def test_the_forker_ends_with_its_worker() -> None:
    async def main() -> int:
        worker = GenerationWorker(REGISTRY, Inline())
        await worker.generate(snapshot(a="first"))
        forker = forker_of(worker)
        await worker.close()
        return forker

    assert not Path(f"/proc/{asyncio.run(main())}").exists()

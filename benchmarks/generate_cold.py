"""From manifests in git to a published incarnation, with nothing known before.

The real git source, generation worker, validators, publisher and store (WAL, synchronous=FULL). SIZE is
the number of assets (100,000), of about 600 bytes each, a hundred to a manifest of about 2 KB.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import figures, manifests
from lehr import wiring
from lehr.base.blocking import Inline, Threads
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.enforce.committer import Committer
from lehr.generate.engine.client import GenerationWorker
from lehr.model.asset import Partition
from lehr.model.attempt import Attempt, Publication
from lehr.model.writes import Write
from lehr.publish.publisher import Publisher
from lehr.sdk.runtime import Runtime
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("bench")


def git(folder: Path, *arguments: str) -> None:
    """Run git in `folder`."""
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def committed(folder: Path, size: int) -> None:
    """A repository with a workspace of `size` assets."""
    manifests.write(folder, size)
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "all")


class Publishing:
    """A publisher over a repository, with a state of its own.

    Attributes:
        state: its folder.
    """

    def __init__(self, repository: Path, state: Path) -> None:
        state.mkdir(exist_ok=True)
        self.state = state
        deployment = wiring.Deployment(location=str(repository), state=state, base=state, kind="git")
        self.store = SqliteStore(state / wiring.STATE_FILE, background=True)
        self.committer = Committer(self.store, Threads("store", 1), SystemClock())
        generation = wiring.generation(state=state)
        assert isinstance(generation, GenerationWorker)
        self.generation = generation
        self._publisher = Publisher(
            Runtime(PARTITION, self.store, wiring.registry(), SystemClock(), Chance(), Inline()),
            wiring.source(deployment),
            self.generation,
            wiring.generation,
            self._ask,
            Threads("source", 1),
        )
        self._commits = asyncio.create_task(self.committer.run())

    async def _ask(self, write: Write) -> Any:
        [answer] = await self.committer.ask(write)
        return answer

    async def refresh(self) -> Attempt:
        """One pass."""
        return await self._publisher.refresh()

    def cpu_seconds(self) -> float:
        """Processor time used so far by all that takes part."""
        return figures.cpu_seconds(self.generation.pid)

    async def close(self) -> None:
        """End the worker and the commits."""
        self._commits.cancel()
        await self.generation.close()
        self.store.close()


async def cold(repository: Path, state: Path, size: int) -> tuple[float, float, Attempt]:
    """Seconds for the first pass: as time passes, and of the processors."""
    publishing = Publishing(repository, state)
    began, used = time.perf_counter(), publishing.cpu_seconds()
    attempt = await publishing.refresh()
    seconds, cpu = time.perf_counter() - began, publishing.cpu_seconds() - used
    assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics[:3]
    assert len(attempt.changed) == size, f"{len(attempt.changed)} of {size} assets"
    await written(state / wiring.MEMO_FILE)
    await publishing.close()
    return seconds, cpu, attempt


async def written(memo: Path) -> None:
    """Return once the worker, which has answered, writes no more."""
    before, now = -1, 0
    while now != before:
        await asyncio.sleep(0.5)
        before, now = now, sum(path.stat().st_size for path in memo.parent.glob(f"{memo.name}*"))


async def started_again(repository: Path, state: Path, size: int) -> tuple[float, float, dict[str, float]]:
    """Seconds until a publisher with the state of another knows that nothing has changed; and its steps.

    A file that nothing is made of has changed, so that there is a revision to look at.
    """
    (repository / "README").write_text("another\n")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "another")
    publishing = Publishing(repository, state)
    began, used = time.perf_counter(), publishing.cpu_seconds()
    attempt = await publishing.refresh()
    seconds, cpu = time.perf_counter() - began, publishing.cpu_seconds() - used
    assert attempt.publication is Publication.UNCHANGED, attempt.diagnostics[:3]
    await publishing.close()
    return seconds, cpu, attempt.seconds


def main() -> None:
    """Print the figures."""
    size = figures.size(100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        committed(folder / "intent", size)
        seconds, cpu, attempt = asyncio.run(cold(folder / "intent", folder / "state", size))
        memory = figures.peak_memory()  # before another control plane starts in the same process
        gc.collect()
        again, again_cpu, again_steps = asyncio.run(started_again(folder / "intent", folder / "state", size))
        memo = (folder / "state" / wiring.MEMO_FILE).stat().st_size
        stored = (folder / "state" / wiring.STATE_FILE).stat().st_size
    steps = {step: round(taken, 2) for step, taken in attempt.seconds.items()}
    per_second = round(size / seconds)
    figures.report("generate_cold", seconds, "s", size, assets_per_second=per_second, steps=steps)
    figures.report("cpu", cpu, "s", size)
    steps = {step: round(taken, 2) for step, taken in again_steps.items()}
    figures.report("started again", again, "s", size, cold_seconds=round(seconds, 2), steps=steps)
    figures.report("started again, cpu", again_cpu, "s", size)
    figures.report("memo", memo / size, "bytes per asset", size)
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    figures.report("memory", memory, "MiB", size, worker_mib=round(worker))
    figures.report("stored", stored / size, "bytes per asset", size)


if __name__ == "__main__":
    main()

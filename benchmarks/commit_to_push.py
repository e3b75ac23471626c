"""From a commit to the start of its push, while endless pushes are under way.

A real git repository with one file per asset, the real worker, publisher, store and Enforcer; only
production is a plugin that does nothing. SIZE is the number of assets (10,000).
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks import figures
from lehr import wiring
from lehr.base.digest import Digest
from lehr.control.named_partition import partition_of
from lehr.control.plane import ControlPlane
from lehr.model.asset import AssetId
from lehr.model.diff import Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.plugins.file.payload import FILE
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits

ENDLESS = 50
COMMITS = 100


class Nothing(AssetPlugin):
    """Production in memory, with assets whose push never ends.

    Attributes:
        started: when the push of an asset last began, monotonic seconds.
    """

    types = (FILE,)
    traits = Traits(turns=256, pushes=256, resync=600.0, push_timeout=1e6)

    def __init__(self) -> None:
        self.applied: dict[AssetId, Digest] = {}
        self.started: asyncio.Queue[tuple[AssetId, float]] = asyncio.Queue()

    async def diff(self, target: Target, read: Reader) -> Diff:
        asset = read.asset(target.id)
        assert asset is not None
        if self.applied.get(target.id) == asset.digest:
            return Diff()
        return Diff((Change("content", asset.digest, self.applied.get(target.id)),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.started.put_nowait((target.id, time.monotonic()))
        if target.id.startswith("endless"):
            await asyncio.Event().wait()
        asset = read.asset(target.id)
        assert asset is not None
        self.applied[target.id] = asset.digest
        return DONE


def declare(folder: Path, id: str, content: str) -> None:
    """Write the file that declares one asset."""
    text = f"id: {id}\ntype: lehr.File\npayload:\n  path: out/{id}\n  content: {content}{'x' * 500}\n"
    (folder / "assets" / f"{id}.yaml").write_text(text)


def git(folder: Path, *arguments: str) -> None:
    """Run git quietly in `folder`."""
    command = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def prepare(folder: Path, size: int) -> None:
    """A repository with `size` assets in one commit."""
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: bench\n")
    for number in range(size):
        declare(folder, f"endless-{number}" if number < ENDLESS else f"asset-{number}", "first ")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")


async def measure(folder: Path, size: int) -> list[float]:
    """Seconds from the end of each commit to the start of its push."""
    deployment = wiring.Deployment(location=str(folder), state=folder.parent / "state", base=folder)
    deployment.state.mkdir()
    plugin = Nothing()
    made_of = wiring.parts(deployment, None, wiring.generation(state=deployment.state))
    parts = msgspec.structs.replace(made_of, plugins=[plugin])
    plane = ControlPlane(parts, await partition_of(parts))
    await plane.start()
    while len(plane.enforcer.unsettled) > ENDLESS or plugin.started.qsize() < size:  # noqa: ASYNC110
        await asyncio.sleep(0.05)  # an endless push starts after the last turn has ended
    while not plugin.started.empty():
        plugin.started.get_nowait()
    seconds = []
    for number in range(COMMITS):
        id = f"asset-{ENDLESS + number * (size - ENDLESS) // COMMITS}"
        declare(folder, id, f"{number} ")
        await asyncio.to_thread(git, folder, "commit", "-q", "-a", "-m", f"change {number}")
        committed = time.monotonic()
        notified = asyncio.create_task(plane.refresh())
        pushed, at = await asyncio.wait_for(plugin.started.get(), 60)
        assert pushed == id, f"{pushed} was pushed, not {id}"
        seconds.append(at - committed)
        await notified
    await plane.stop(grace=0.0)
    return seconds


def main() -> None:
    """Print the figures."""
    size = max(figures.size(10_000), 2 * ENDLESS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        folder.mkdir()
        prepare(folder, size)
        seconds = asyncio.run(measure(folder, size))
    for percent in (50, 99):
        value = figures.percentile(seconds, percent) * 1000
        figures.report(
            f"p{percent}", value, "ms", size, endless_pushes=ENDLESS, commits=len(seconds), notified=True
        )


if __name__ == "__main__":
    main()

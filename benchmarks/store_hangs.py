"""A server of the store that hangs: what the event loop and production notice of it.

    python -m benchmarks.store_hangs [seconds]

A control plane keeps a file as intended, with its store in PostgreSQL. All processes of the server are
stopped; somebody changes the file; the server continues. There is no peer to compare with: a program that
reads its store on its event loop stands still for as long as the server does.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures
from lehr import wiring
from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.control.plane import ControlPlane
from lehr.model.asset import Partition
from tests.postgres import PostgresServer

_TICK = 0.005

WORKSPACE = "partition: shop\n"


class Hang(NamedTuple):
    """Seconds, but for `ticks`.

    Attributes:
        gap: longest time in which nothing else ran on the event loop, until production was healed.
        ticks: how often something else ran meanwhile.
        seen: from the change of production until it was noticed.
        healed: from the end of the hang until production was as intended.
    """

    gap: float
    ticks: int
    seen: float
    healed: float


def main() -> None:
    """Print the figures."""
    seconds = figures.size(60)
    server = PostgresServer()
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            hang = asyncio.run(hung(server, Path(folder), float(seconds)))
    finally:
        server.close()
    print(f"server stopped for {seconds} s")
    print(f"longest gap of the event loop: {hang.gap * 1000:.0f} ms")
    print(f"drift noticed after {hang.seen:.2f} s, while the server was stopped")
    print(f"production healed {hang.healed:.2f} s after the server continued")


async def hung(server: PostgresServer, folder: Path, seconds: float) -> Hang:
    """What a hang of so many seconds does to a control plane with its state in `folder`."""
    target = folder / "production.txt"
    store = f"{server.url('postgres')}&schema=hangs_{int(SystemClock().now() * 1000)}"
    deployment = _deployment(folder, target)
    parts = wiring.parts(deployment, store, wiring.generation(state=deployment.state))
    plane = ControlPlane(parts, Partition("shop"))
    try:
        await plane.start()
        async with asyncio.timeout(30):
            await plane.converge()
        assert await Inline().run(target.read_text) == "hello\n"
        return await _hung(server, plane, target, seconds)
    finally:
        await plane.stop()
        parts.store.close()


async def _hung(server: PostgresServer, plane: ControlPlane, target: Path, seconds: float) -> Hang:
    longest = ticks = 0.0
    files = Inline()

    async def tick() -> None:
        nonlocal longest, ticks
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_TICK)
            longest = max(longest, time.perf_counter() - before - _TICK)
            ticks += 1

    ticking = asyncio.create_task(tick())
    try:
        with server.held():
            began = time.perf_counter()
            await asyncio.sleep(seconds / 4)
            await files.run(target.write_text, "by hand\n")
            changed = time.perf_counter()
            while not plane.enforcer.unsettled:  # noqa: ASYNC110
                await asyncio.sleep(_TICK)
            seen = time.perf_counter() - changed
            assert await files.run(target.read_text) == "by hand\n", "nothing is pushed unadmitted"
            await asyncio.sleep(max(0.0, began + seconds - time.perf_counter()))
        over = time.perf_counter()
        while await files.run(target.read_text) != "hello\n":  # noqa: ASYNC110
            await asyncio.sleep(_TICK)
        return Hang(longest, int(ticks), seen, time.perf_counter() - over)
    finally:
        ticking.cancel()


def _deployment(folder: Path, target: Path) -> wiring.Deployment:
    """A workspace in `folder` that declares the file `target`."""
    workspace = folder / "shop"
    (workspace / "assets").mkdir(parents=True)
    (workspace / "lehr.yaml").write_text(WORKSPACE)
    asset = f"id: page\ntype: lehr.File\npayload:\n  path: {target}\n  content: |\n    hello\n"
    (workspace / "assets" / "page.yaml").write_text(asset)
    (folder / "state").mkdir(mode=0o700)
    return wiring.Deployment(
        location=str(workspace), state=folder / "state", base=workspace, kind="directory"
    )


if __name__ == "__main__":
    main()

"""A defect in a loop or a source is contained, or ends the process; healing never stops silently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from lehr.control.plane import ControlPlane
from lehr.model.attempt import Publication
from lehr.testing.sim.process import Process
from lehr.testing.sim.scene import Scene
from lehr.testing.virtual import run

Break = Callable[[ControlPlane, Scene], None]


def play(folder: Path, scenario: Callable[[ControlPlane, Scene], Awaitable[None]]) -> None:
    """Run `scenario` with a control plane that is not started yet."""

    async def main() -> None:
        scene = Scene(3, folder)
        await scene.open()
        await scene.process.kill()
        process = Process(scene.site, "tested", 7)
        async with asyncio.timeout(3600):
            await scenario(process.plane, scene)
        await process.kill()

    run(main, seed=3)


def fail(*_: Any, **__: Any) -> Any:
    raise LookupError("a defect \udcff")


def agenda(plane: ControlPlane, scene: Scene) -> None:
    plane.enforcer._agenda.wait = fail  # type: ignore[method-assign]


def intent(plane: ControlPlane, scene: Scene) -> None:
    plane.enforcer._following.run = _failing  # type: ignore[method-assign]


def look(plane: ControlPlane, scene: Scene) -> None:
    plane.enforcer._look_at_controls = fail  # type: ignore[method-assign]


async def _failing() -> None:
    fail()


@pytest.mark.parametrize("broken", [agenda, intent, look])
def test_a_loop_that_breaks_ends_the_process_with_its_error(broken: Break, tmp_path: Path) -> None:
    async def scenario(plane: ControlPlane, scene: Scene) -> None:
        broken(plane, scene)
        await plane.start()
        with pytest.raises(LookupError):
            await plane.serve()
        await plane.stop()

    play(tmp_path, scenario)


def test_a_source_that_fails_in_any_way_ends_nothing_and_is_asked_again(tmp_path: Path) -> None:
    async def scenario(plane: ControlPlane, scene: Scene) -> None:
        source = plane._parts.source
        newest, changes = source.newest, source.changes
        source.newest = source.changes = fail  # type: ignore[method-assign]
        attempt = await plane.start()
        assert attempt.publication is Publication.UNREADABLE
        [problem] = attempt.diagnostics
        assert problem.code == "PUB006"
        assert r"a defect \xff" in problem.what
        assert plane._parts.store.records.attempt(plane.partition) == attempt
        heard = plane.heard = Heard()
        await asyncio.sleep(1.0)
        source.newest, source.changes = newest, changes  # type: ignore[method-assign]
        await asyncio.wait_for(heard.event.wait(), 60.0)
        assert heard.last is not Publication.UNREADABLE
        serving = asyncio.create_task(plane.serve())
        await asyncio.sleep(60.0)
        assert not serving.done()
        serving.cancel()
        await plane.stop()

    play(tmp_path, scenario)


class Heard:
    """Remembers the last attempt."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.last: Publication | None = None

    def __call__(self, attempt: Any) -> None:
        self.last = attempt.publication
        self.event.set()

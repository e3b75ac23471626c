"""The scenes in their order, and playing them."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

from lehr.base.clock import SystemClock
from lehr.cli.demo import ending, guarding, serving
from lehr.cli.demo.narrator import Narrator
from lehr.cli.demo.stage import SITE, SceneError, Stage

Scene = Callable[[Stage], Coroutine[None, None, None]]

SCENES: tuple[Scene, ...] = (
    serving.from_nothing,
    serving.change,
    serving.damage,
    guarding.mistakes,
    guarding.freeze,
    guarding.why,
    ending.turndown,
    ending.crash,
)
"""In order. Each but the first rests on the first alone; its title is the first line of its docstring."""


def title(scene: Scene) -> str:
    """What the scene is about."""
    return (scene.__doc__ or "").partition("\n")[0].rstrip(".")


async def play(folder: Path, narrator: Narrator, *, only: int | None, stay: bool, keep: bool) -> None:
    """Play every scene, or `only` one, below `folder`; and leave nothing running.

    Args:
        stay: after the last scene, go on running until SIGINT or SIGTERM.
        keep: leave the folder.

    Raises:
        LehrError: a scene did not come out as it should.
        asyncio.CancelledError: SIGINT or SIGTERM came before the end.
    """
    stage = Stage(folder, narrator, SystemClock())
    with _ended_by_signals():
        try:
            if only not in (None, 1):
                stage.narrator = Narrator(pretty=False, silent=True)
                await SCENES[0](stage)
                stage.narrator = narrator
            for number, scene in enumerate(SCENES, start=1):
                if only in (None, number):
                    await play_scene(stage, number, scene)
            if stay:
                await _stay(stage)
        finally:
            await stage.close(keep=keep)


async def play_scene(stage: Stage, number: int, scene: Scene) -> None:
    """Play one scene.

    Raises:
        SceneError: it did not come out as it should.
    """
    stage.narrator.scene(number, title(scene))
    try:
        await scene(stage)
    except (OSError, AssertionError, ValueError) as error:
        raise SceneError(f"scene {number} broke off", why=f"{type(error).__name__}: {error}") from error


async def _stay(stage: Stage) -> None:
    narrator, lehr = stage.narrator, _program()
    narrator.say("It goes on running; Ctrl-C ends everything that the demo has started. In another terminal:")
    narrator.shell(("cd", str(stage.workspace)))
    narrator.shell(("curl", f"http://127.0.0.1:{stage.port}/"))
    narrator.shell(("sed", "-i", "s/greeting: .*/greeting: Hello, you/", SITE))
    narrator.shell(("git", "commit", "--all", "--message", "Greet you"))
    narrator.shell((lehr, "status"))
    narrator.shell((lehr, "why", "hello/web"))
    with contextlib.suppress(asyncio.CancelledError):
        await stage.plane.ended()
        stage.plane.check_running()
    narrator.say("Ending it.")


def _program() -> str:
    """What to type for `lehr`: its whole path, where it is not on the PATH."""
    beside = Path(sys.executable).with_name("lehr")
    return "lehr" if shutil.which("lehr") or not beside.exists() else str(beside)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """The first SIGINT or SIGTERM cancels the task that is running now, and no other disturbs its end."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    signals = (signal.SIGINT, signal.SIGTERM)

    def cancel() -> None:
        if not task.cancelling():
            task.cancel()

    for number in signals:
        loop.add_signal_handler(number, cancel)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)

"""Playing the scenes of an example in their order."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from lehr.base.clock import SystemClock
from lehr.demo.example import AnyStage, Example, Suggestion, play_scene
from lehr.demo.narrator import Narrator
from lehr.demo.stage import Stage
from lehr.demo.view import live_view


async def play(
    example: Example[AnyStage], folder: Path, narrator: Narrator, *, only: int | None, stay: bool, keep: bool
) -> None:
    """Play every scene, or `only` one, below `folder`; and leave nothing running.

    Args:
        stay: after the last scene, go on running until SIGINT, SIGTERM or SIGHUP.
        keep: leave the folder.

    Raises:
        LehrError: a scene did not come out as it should.
        asyncio.CancelledError: SIGINT, SIGTERM or SIGHUP came before the end.
    """
    stage = example.stage(folder, narrator, SystemClock())
    with _ended_by_signals():
        try:
            async with live_view(stage, narrator.console):
                await _play(stage, example, only)
            if stay:
                await _stay(stage, narrator, example.things_to_try(stage))
        finally:
            await stage.close(keep=keep)


async def _play(stage: AnyStage, example: Example[AnyStage], only: int | None) -> None:
    narrator = stage.narrator
    if only not in (None, 1):
        stage.narrator = Narrator(pretty=False, silent=True)
        await example.scenes[0](stage)
        stage.narrator = narrator
    for number, scene in enumerate(example.scenes, start=1):
        if only in (None, number):
            await play_scene(stage, number, scene)


async def _stay(stage: Stage, narrator: Narrator, suggestions: list[Suggestion]) -> None:
    lehr = _program()
    narrator.heading("It goes on running")
    narrator.say("Ctrl-C ends everything that the demo has started, and nothing else. In another terminal:")
    narrator.shell(("cd", str(stage.workspace)))
    narrator.shell((lehr, "status"))
    for suggestion in suggestions:
        narrator.say(suggestion.text)
        for command in suggestion.commands:
            narrator.shell((lehr, *command[1:]) if command[0] == "lehr" else command)
    with contextlib.suppress(asyncio.CancelledError):
        async with live_view(stage, narrator.console):
            await stage.plane.ended()
        stage.plane.check_running()
    narrator.say("Ending it.")


def _program() -> str:
    """The command line for `lehr`: its whole path, where it is not on the PATH."""
    beside = Path(sys.executable).with_name("lehr")
    return "lehr" if shutil.which("lehr") or not beside.exists() else str(beside)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """The first of these signals cancels the task that is running now, and no other disturbs its end."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    # SIGHUP: the terminal was closed. Where it is ignored, nohup wants that.
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)

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

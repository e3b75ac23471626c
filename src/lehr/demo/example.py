"""An example that can be played."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from lehr.base.clock import Clock
from lehr.demo.narrator import Narrator
from lehr.demo.stage import SceneError, Stage

AnyStage = TypeVar("AnyStage", bound=Stage)

Scene = Callable[[AnyStage], Coroutine[None, None, None]]


class Suggestion(NamedTuple):
    """A suggestion for users: what to observe, and the commands."""

    text: str
    commands: tuple[tuple[str, ...], ...]


class Example(NamedTuple, Generic[AnyStage]):
    """The scenes of an example and their stage.

    Attributes:
        stage: creates the stage of the scenes.
        scenes: in order. Each but the first only depends on the first; its title is the first line of its
            docstring.
        things_to_try: shown after the last scene.
    """

    stage: Callable[[Path, Narrator, Clock], AnyStage]
    scenes: Sequence[Scene[AnyStage]]
    things_to_try: Callable[[AnyStage], list[Suggestion]]


def title(scene: Scene[AnyStage]) -> str:
    """The title of the scene."""
    return (scene.__doc__ or "").partition("\n")[0].rstrip(".")


async def play_scene(stage: AnyStage, number: int, scene: Scene[AnyStage]) -> None:
    """Play one scene.

    Raises:
        SceneError: it failed.
    """
    stage.narrator.scene(number, title(scene))
    try:
        await scene(stage)
    except (OSError, AssertionError, LookupError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        details = traceback.format_exc()
        raise SceneError(f"scene {number} failed", code="DEM108", why=why, details=details) from error

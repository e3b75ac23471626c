"""Given the example, when `lehr demo` plays its scenes, then each holds and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.control.state_folder import default_state
from lehr.demo.example import Scene, play_scene, title
from lehr.demo.hello import SCENES
from lehr.demo.hello.scenes import HELLO
from lehr.demo.hello.stage import HelloStage
from lehr.demo.narrator import Narrator
from lehr.demo.stage import SceneError

LEHR = [sys.executable, "-c", "import sys; from lehr.cli.main import main; sys.exit(main())"]
PATIENCE = 30.0


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def stage(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HelloStage]:
    """A stage on which the first scene has been played."""
    stage = HelloStage(tmp_path_factory.mktemp("demo"), Narrator(pretty=False), SystemClock())
    try:
        runner.run(play_scene(stage, 1, SCENES[0]))
        yield stage
    finally:
        runner.run(stage.close(keep=True))
    assert not processes_in(stage.folder)


def processes_in(folder: Path) -> list[int]:
    """Pids of all processes that work below `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.readlink(entry / "cwd").startswith(str(folder)):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


def test_from_nothing_to_serving(runner: asyncio.Runner, stage: HelloStage) -> None:
    assert all(HELLO in answer.body for answer in runner.run(stage.answers()))


@pytest.mark.parametrize(
    ("number", "scene"),
    [pytest.param(number, scene, id=scene.__name__) for number, scene in enumerate(SCENES, start=1)][1:],
)
def test_scene(runner: asyncio.Runner, stage: HelloStage, number: int, scene: Scene[HelloStage]) -> None:
    assert title(scene)
    runner.run(play_scene(stage, number, scene))


def test_a_scene_that_does_not_hold_says_what(tmp_path: Path) -> None:
    stage = HelloStage(tmp_path, Narrator(pretty=False, silent=True), SystemClock())

    async def scene(stage: HelloStage) -> None:
        stage.check(1 + 1 == 3, "one and one is three")

    with pytest.raises(SceneError, match="one and one is three"):
        asyncio.run(play_scene(stage, 9, scene))


def test_from_the_command_line_it_speaks_in_plain_lines_and_cleans_up(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [*LEHR, "demo", "--example", "hello", "--scene", "6"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--- 6. Why does production look like this?" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert not processes_in(tmp_path)


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "terminal closed"])
def test_an_interruption_ends_everything_that_was_started(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [*LEHR, "demo", "--example", "hello", "--dir", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + PATIENCE
    while not list(default_state(folder / "hello").glob("supervisor/*/supervisord.pid")):
        assert demo.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    demo.send_signal(number)
    output, _ = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 130, output
    assert f"The files are in {folder}." in output.replace("\n", " ")
    assert not processes_in(tmp_path)


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    done = subprocess.run(
        [*LEHR, "demo", "--dir", str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 1
    assert "error[DEM105]" in done.stderr
    assert os.listdir(tmp_path) == ["mine"]


def test_a_scene_that_the_example_does_not_have_is_refused() -> None:
    command = [*LEHR, "demo", "--example", "hello", "--scene", "9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "8 scenes" in done.stderr

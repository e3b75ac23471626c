"""What the tutorial of the Shakespeare example tells people to do works, block by block."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.chance import Chance
from lehr.demo.client import PortRange
from tests.docs.test_tutorials import script, stop

TUTORIAL = (Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "shakespeare.md").read_text()

PATIENCE = 30.0

_PROGRAMS = {
    "lehr": "import sys; from lehr.cli.main import main; sys.exit(main())",
    # Not every machine has curl, but Python can get a page, too.
    "curl": """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[2])
except urllib.error.HTTPError as error:
    answer = error
print(answer.read().decode())
""",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not tmp_path: PostgreSQL, which does not run as root, would not be let in there.
    found = Path(tempfile.mkdtemp(prefix="lehr-tutorial-"))
    found.chmod(0o711)
    yield found
    deadline = time.monotonic() + PATIENCE
    while left := working_in(found):  # what the last commands have told to end
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    shutil.rmtree(found)


def working_in(folder: Path) -> list[int]:
    """Pids of the processes whose working directory is below `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.readlink(entry / "cwd").startswith(str(folder)):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


@pytest.fixture
def base() -> Iterator[int]:
    ports = PortRange(100, Chance())
    yield ports.first
    ports.release()


@pytest.mark.timeout(180)
def test_the_tutorial_leads_through_the_life_of_a_service(folder: Path, base: int) -> None:
    moved = 'sed -i "s/\\b84/84/" frontend.yaml schema.yaml\ngit commit --quiet --all -m "Ports"\n'
    text = script(TUTORIAL).replace("cd plays\n", f"cd plays\n{moved}", 1)
    text = re.sub(r"\b84(\d\d)\b", lambda match: str(base + int(match.group(1))), text)
    text = text.replace("s/\\b84/84/", f"s/\\b84/{base // 100}/g")
    programs = folder / "programs"
    programs.mkdir()
    for name, program in _PROGRAMS.items():
        (programs / name).write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(program)} "$@"\n'
        )
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEHR_"))}
    who = {
        f"GIT_{role}_{key}": "you@localhost" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**kept, **who, "HOME": str(folder), "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = folder / "output"
    with output.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-c", text],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=170)
        finally:
            stop(shell, folder)
    said = output.read_text()
    assert code == 0, said
    assert "CapacityOrder" in said
    assert "v3 forgets its lines" in said
    assert "frontend/asia/balancer" in said
    assert "columns/speaker" in said


def test_every_command_of_the_tutorial_is_run() -> None:
    assert len(re.findall(r"^```\w", TUTORIAL, re.MULTILINE)) == len(
        re.findall(r"^```sh$", TUTORIAL, re.MULTILINE)
    )

"""`lehr run --once` as a whole process: creating SIZE real files of 600 B, and nothing to do.

The floor is a bare Python process that writes the same files as durably (temporary file, fsync,
rename, fsync of the directory), one after the other; for nothing to do, one that reads them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures

LEHR = [sys.executable, "-m", "lehr"]
PER_FOLDER = 100
ROUNDS = 3

WRITE = """
import os, sys
folder, size = sys.argv[1], int(sys.argv[2])
for number in range(size):
    parent = os.path.join(folder, str(number // 100))
    os.makedirs(parent, exist_ok=True)
    name = os.path.join(parent, str(number))
    with open(name + ".tmp", "w") as file:
        file.write("x" * 600)
        file.flush()
        os.fsync(file.fileno())
    os.rename(name + ".tmp", name)
    handle = os.open(parent, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
"""

READ = """
import os, sys
for parent, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(parent, name)) as file:
            file.read()
"""


class Spent(NamedTuple):
    """Seconds that a command took, in all and of the processors."""

    wall: float
    processor: float


def timed(*command: str, cwd: Path) -> float:
    """Seconds that a command takes, from start to end.

    It may keep its compiled modules, as an installed one does: else each run from a checkout compiles Lehr.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, env=environment)
    return time.perf_counter() - began


def spent(*command: str, cwd: Path) -> Spent:
    """The time that a command takes, from start to end."""
    before = figures.cpu_seconds()
    wall = timed(*command, cwd=cwd)
    return Spent(wall, figures.cpu_seconds() - before)


def prepare(folder: Path, size: int) -> None:
    """A workspace, in git, with a file for each asset."""
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: bench\n")
    for number in range(size):
        path = folder.parent / "out" / str(number // PER_FOLDER) / str(number)
        text = f"id: file-{number}\ntype: lehr.File\npayload:\n  path: {path}\n  content: {'x' * 600}\n"
        (folder / "assets" / f"{number}.yaml").write_text(text)
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*git, *command], cwd=folder, check=True, capture_output=True)


def measure(root: Path, size: int) -> dict[str, Spent]:
    """One round, in a folder of its own."""
    workspace, bare = root / "workspace", root / "bare"
    prepare(workspace, size)
    bare.mkdir()
    once = (*LEHR, "run", "--once", "--state", str(root / "state"))
    found = {
        "create": spent(*once, cwd=workspace),
        "noop": spent(*once, cwd=workspace),
        "create floor": spent(sys.executable, "-c", WRITE, str(bare), str(size), cwd=root),
        "noop floor": spent(sys.executable, "-c", READ, str(bare), cwd=root),
    }
    made = sum(path.is_file() for path in (root / "out").rglob("*"))
    assert made == size, f"{made} of {size} files are there"
    return found


def main() -> None:
    """Print the figures, the best of some rounds each."""
    size = figures.size(1000)
    # Nothing is deleted between rounds: ext4 takes a fifth longer to create files while it avoids the inodes
    # of files that have just been deleted.
    with tempfile.TemporaryDirectory() as folder:
        rounds = [measure(Path(folder, str(number)), size) for number in range(ROUNDS)]
    for name in ("create", "noop"):
        floor = figures.Peer(f"bare Python, {name}", min(found[f"{name} floor"].wall for found in rounds))
        took = [found[name] for found in rounds]
        figures.report(
            name,
            min(took).wall,
            "s",
            size,
            peer=floor,
            rounds=ROUNDS,
            worst=round(max(took).wall, 3),
            processor_seconds=round(min(item.processor for item in took), 3),
        )


if __name__ == "__main__":
    main()

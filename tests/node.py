"""Node, and the packages that plugins in Node need; without them, the tests that ask are skipped."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "plugin-node"

_OLDEST = 20
_OURS = ROOT / "build" / "node" / "bin"
_HOW = "get it with scripts/node.sh"


@functools.cache
def node_path() -> str:
    """A `PATH` in which `node` and `npm` are found."""
    for path in (os.environ.get("PATH", ""), f"{_OURS}:{os.environ.get('PATH', '')}"):
        node = shutil.which("node", path=path)
        if node and shutil.which("npm", path=path) and _version(node) >= _OLDEST:
            return path
    pytest.skip(f"NO NODE: nothing in Node was tested here; {_HOW}")


def node_program() -> str:
    """Path of Node."""
    found = shutil.which("node", path=node_path())
    assert found is not None
    return found


def node_modules(lock: Path = EXAMPLE / "package-lock.json") -> Path:
    """The packages of a `package-lock.json`, installed once for all tests."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    folder = ROOT / "build" / "node-modules" / digest
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as only_one:
        fcntl.flock(only_one, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _install(lock, folder)
            (folder / "done").touch()
    return folder / "node_modules"


def with_modules(plugin: Path) -> Path:
    """A plugin in a folder of its own, with the packages of its `package-lock.json`."""
    (plugin / "node_modules").symlink_to(node_modules(plugin / "package-lock.json"))
    return plugin


def example_in(folder: Path) -> Path:
    """A copy of the example in `folder`, with its packages."""
    copied = folder / "plugin-node"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("node_modules"))
    return with_modules(copied)


def _install(lock: Path, folder: Path) -> None:
    for file in (lock, lock.with_name("package.json")):
        shutil.copy(file, folder)
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    path = node_path()
    done = subprocess.run(
        ["npm", "ci", *options], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"NO PACKAGES OF NODE: nothing in Node was tested here; npm: {done.stderr.strip()}")


def _version(node: str) -> int:
    shown = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    return int(shown.removeprefix("v").partition(".")[0] or 0)

"""Go, and the Debian packages that plugins in Go need; without them, the tests that ask are skipped."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "plugin-go"
PACKAGES = Path("/usr/share/gocode/src/google.golang.org/grpc")

_BUILD_SECONDS = 280
"""The first build compiles gRPC, which takes half a minute of a core."""


def require_go() -> None:
    """Skip the test that asks where there is no Go."""
    if shutil.which("go") is None or not PACKAGES.is_dir():
        pytest.skip("NO GO: nothing in Go was tested here; as root, get it with scripts/go.sh")


def go(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `go` in a plugin's folder, with Debian's packages."""
    require_go()
    command = [str(folder / "go.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS)


def built(folder: Path) -> Path:
    """The program of the plugin in `folder`, built once for all tests."""
    require_go()
    made = ROOT / "build" / "go" / _digest(folder)
    made.mkdir(parents=True, exist_ok=True)
    program = made / "plugin"
    with (made / "lock").open("w") as only_one:
        fcntl.flock(only_one, fcntl.LOCK_EX)
        if not program.exists():
            done = go(folder, "build", "-o", str(program), ".")
            assert done.returncode == 0, done.stderr
    return program


def _digest(folder: Path) -> str:
    """Of everything that a program is built from."""
    files = [*folder.rglob("*.go"), *folder.rglob("*.json"), folder / "go.sh"]
    contents = b"\0".join(str(file).encode() + b"\0" + file.read_bytes() for file in sorted(files))
    return hashlib.sha256(contents).hexdigest()[:16]

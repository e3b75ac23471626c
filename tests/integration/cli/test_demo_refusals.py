"""Where `lehr demo` cannot play, it says so before it starts anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.base.errors import LehrError
from lehr.cli.demo import demo

LEHR = [sys.executable, "-c", "import sys; from lehr.cli.main import main; sys.exit(main())"]
NAMELESS = ["unshare", "--user", "--map-user=54321"]


def refusal(folder: Path) -> LehrError:
    error = CliRunner().invoke(demo, ["--once", "--example", "hello", "--dir", str(folder)]).exception
    assert isinstance(error, LehrError)
    return error


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = refusal(tmp_path / "file" / "folder")
    assert (error.code, error.why) == ("DEM103", "Not a directory")
    assert f"{tmp_path / 'file' / 'folder'}" in error.what


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    assert refusal(tmp_path).code == "DEM105"
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_left_alone_even_by_root(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 54321, 54321)
    assert refusal(folder).code == "DEM104"
    assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])


def can_be_nameless() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMELESS, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_be_nameless(), reason="this machine lets nobody be a user without a name")
def test_a_user_without_a_name_is_told_that_postgresql_needs_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [*NAMELESS, *LEHR, "demo", "--once"],
        env={**os.environ, "TMPDIR": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 1
    assert "error[DEM102]: uid 54321 " in done.stderr
    assert list(tmp_path.iterdir()) == []

"""A folder that is made for its owner alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.base.private_folders import make_private


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_all_that_are_missing_are_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path / "state" / "plugins")
    assert mode(tmp_path / "state") == mode(tmp_path / "state" / "plugins") == 0o700
    assert mode(tmp_path) == 0o755


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make_private(tmp_path)
    assert mode(tmp_path) == 0o750


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        make_private(tmp_path / "file" / "plugins")

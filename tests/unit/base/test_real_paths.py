"""Where a path really leads, and who can change that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lehr.base.real_paths import is_inside, real_entry, real_target, weakness

ME = os.geteuid()
STRANGER = 54_321


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    return folder


def test_an_entry_is_where_a_rename_changes_something(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "file").symlink_to("elsewhere")
    assert real_entry(tmp_path / "link" / "file") == str(tmp_path / "real" / "file")
    assert real_target(tmp_path / "link" / "file") == str(tmp_path / "real" / "elsewhere")
    assert real_entry(tmp_path / "link" / "none" / "x") == str(tmp_path / "real" / "none" / "x")


def test_after_a_link_dots_lead_to_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    assert real_entry(f"{tmp_path}/link/../x") == str(tmp_path / "a" / "x")


def test_a_folder_is_inside_itself_and_not_inside_one_whose_name_begins_alike() -> None:
    assert is_inside("/a/b", "/a/b")
    assert is_inside("/a/b/c", "/a/b")
    assert is_inside("/a", "/")
    assert not is_inside("/a/bc", "/a/b")


def test_a_path_of_ones_own_has_no_weakness(own: Path) -> None:
    (own / "x").mkdir()
    assert weakness(own / "x", ME) is None
    assert weakness(own / "not" / "there", ME) is None


def test_a_folder_that_everybody_may_write_is_one(own: Path) -> None:
    (own / "wide" / "x").mkdir(parents=True)
    (own / "wide").chmod(0o777)
    found = weakness(own / "wide" / "x", ME)
    assert found is not None
    assert (found.path, found.fix) == (str(own / "wide"), f"chmod o-w {own / 'wide'}")
    (own / "wide").chmod(0o1777)  # sticky: others cannot rename what is ours in it
    assert weakness(own / "wide" / "x", ME) is None


def test_the_last_folder_can_be_left_to_the_caller(own: Path) -> None:
    own.chmod(0o777)
    assert weakness(own, ME, itself=False) is None
    assert weakness(own, ME) is not None


def test_a_link_to_a_wide_folder_is_found_where_it_leads(own: Path, tmp_path: Path) -> None:
    (tmp_path / "wide" / "x").mkdir(parents=True)
    (tmp_path / "wide").chmod(0o777)
    (own / "link").symlink_to(tmp_path / "wide" / "x")
    (own / "relative").symlink_to("../own/link")
    for name in ("link", "relative"):
        found = weakness(own / name, ME, itself=False)
        assert found is not None
        assert found.path == str(tmp_path / "wide")


def test_dots_after_a_link_do_not_hide_where_it_leads(own: Path, tmp_path: Path) -> None:
    (tmp_path / "wide" / "x").mkdir(parents=True)
    (tmp_path / "wide").chmod(0o777)
    (own / "link").symlink_to(tmp_path / "wide" / "x")
    (own / "state").mkdir()
    assert weakness(f"{own}/link/../../own/state", ME) is not None


def test_links_that_go_round_end(own: Path) -> None:
    (own / "a").symlink_to("b")
    (own / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        weakness(own / "a", ME)


@pytest.mark.skipif(ME != 0, reason="only root can give folders away")
def test_what_belongs_to_somebody_else_is_one(own: Path) -> None:
    (own / "theirs").mkdir()
    os.chown(own / "theirs", STRANGER, STRANGER)
    (own / "link").symlink_to("/")
    os.chown(own / "link", STRANGER, STRANGER, follow_symlinks=False)
    for name, kind in (("theirs", "folder"), ("link", "symbolic link")):
        found = weakness(own / name, ME)
        assert found is not None
        assert found.why == f"the {kind} belongs to user {STRANGER}"
    assert weakness(own / "theirs", STRANGER) is None

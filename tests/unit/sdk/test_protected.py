"""Folders that no path of intent may lead into."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.sdk.protected import Protected


@pytest.fixture
def protected(tmp_path: Path) -> Protected:
    (tmp_path / "real" / "state").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    return Protected({tmp_path / "link" / "state": "the state folder"})


@pytest.mark.parametrize("path", ["real/state", "real/state/lock", "real/state/a/b", "link/state/x"])
def test_what_is_in_a_known_folder_is_refused(tmp_path: Path, protected: Protected, path: str) -> None:
    assert protected.why(str(tmp_path / path)).startswith("the state folder")


def test_what_is_beside_it_is_not(tmp_path: Path, protected: Protected) -> None:
    assert protected.why(str(tmp_path / "real" / "state2" / "x")) == ""
    assert protected.why(str(tmp_path / "real" / "x")) == ""


def test_a_link_on_the_way_to_it_is_not_replaced(tmp_path: Path, protected: Protected) -> None:
    assert protected.why(str(tmp_path / "link"))
    assert protected.why(str(tmp_path / "real"))
    assert protected.why(str(tmp_path / "real"), entry=False) == "", "files beside it may be written"


@pytest.mark.parametrize("path", [".git", ".git/hooks/post-commit", "sub/.git/config"])
def test_repositories_are_known_by_name(tmp_path: Path, path: str) -> None:
    assert protected_by_nothing().why(str(tmp_path / path)).startswith("the git repository")
    assert protected_by_nothing().why(str(tmp_path / ".github" / "x")) == ""


def test_bare_repositories_and_other_states_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    bare, state = tmp_path / "intent", tmp_path / "other"
    (bare / "objects").mkdir(parents=True)
    (bare / "refs").mkdir()
    state.mkdir()
    for file in (bare / "HEAD", state / "state.sqlite", state / "lock"):
        file.touch()
    seen: dict[str, str] = {}
    why = protected_by_nothing().why
    assert why(str(bare / "hooks" / "update"), seen=seen) == f"the git repository {bare}"
    assert why(str(state / "workspace.json"), seen=seen) == f"the state folder {state}"
    assert why(str(tmp_path / "x"), seen=seen) == ""
    assert seen[str(bare)]
    assert not seen[str(tmp_path)]


def protected_by_nothing() -> Protected:
    return Protected({})

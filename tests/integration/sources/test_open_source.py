"""Which kind of source a location means."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.sources import DirectorySource, GitSource, open_source
from lehr.sources.location import Kind


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with a work tree and a directory in it, a bare one, and a plain directory."""
    (tmp_path / "plain").mkdir()
    for arguments in (["tree"], ["--bare", "bare"]):
        subprocess.run(["git", "init", "-q", *arguments], cwd=tmp_path, check=True)
    (tmp_path / "tree" / "examples").mkdir()
    return tmp_path


def opened(location: Path | str, state: Path, kind: Kind | None = None) -> str:
    return open_source(str(location), state, clock=SystemClock(), kind=kind).name


def test_local_directories_are_what_they_look_like(place: Path) -> None:
    state = place / "state"
    assert opened(place / "tree", state) == f"git:{place}/tree"
    assert opened(place / "bare", state) == f"git:{place}/bare"
    assert opened(place / "plain", state) == f"directory:{place}/plain"
    assert opened(place / "tree" / "examples", state) == f"directory:{place}/tree/examples"
    assert opened(place / "nowhere", state) == f"directory:{place}/nowhere"


def test_the_kind_can_be_said(place: Path) -> None:
    state = place / "state"
    assert opened(place / "tree", state, "directory") == f"directory:{place}/tree"
    assert opened(place / "plain", state, "git") == f"git:{place}/plain"
    assert opened(f"git+{place}/plain", state) == f"git:{place}/plain"


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("https://example.org/intent", "git:https://example.org/intent"),
        ("https://user:token@example.org/intent#main", "git:https://example.org/intent#main"),
        ("git@example.org:team/intent.git", "git:git@example.org:team/intent.git"),
        ("ssh://git@example.org/intent#main:a/b", "git:ssh://example.org/intent#main:a/b"),
        ("git+ssh://example.org/intent#:a/b", "git:ssh://example.org/intent:a/b"),
        ("/srv/intent.git", "git:/srv/intent.git"),
        ("/srv/intent.git#main", "git:/srv/intent.git#main"),
    ],
)
def test_urls_are_git_repositories(tmp_path: Path, location: str, name: str) -> None:
    assert opened(location, tmp_path) == name


def test_branch_and_path_may_follow_the_location_or_be_given(place: Path) -> None:
    assert opened(f"{place}/tree#main:examples", place) == f"git:{place}/tree#main:examples"
    source = open_source(f"{place}/tree#a", place, clock=SystemClock(), branch="b", path="examples")
    assert isinstance(source, GitSource)
    assert source.name == f"git:{place}/tree#b:examples"


def test_a_mark_in_the_name_of_a_directory_that_is_there_is_part_of_it(place: Path) -> None:
    (place / "plain#1").mkdir()
    assert opened(place / "plain#1", place) == f"directory:{place}/plain#1"


def test_a_mark_in_a_file_url_begins_the_branch_also_where_the_repository_is_there(place: Path) -> None:
    assert opened(f"file://{place}/tree#main:examples", place) == f"git:{place}/tree#main:examples"


def test_a_state_directory_inside_the_source_is_no_intent(tmp_path: Path) -> None:
    (tmp_path / "lehr.yaml").write_text("partition: a\n")
    state = tmp_path / "var" / "state"
    source = open_source(str(tmp_path), state, clock=SystemClock())
    assert isinstance(source, DirectorySource)
    first = source.newest().revision
    source.keep(first)
    assert any(state.rglob("HEAD"))
    assert source.newest().revision == first

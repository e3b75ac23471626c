"""Where the state of a workspace is, and whether it may be trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lehr.control.state_folder import (
    default_state,
    make,
    moved_from,
    named_state,
    record_of,
    require_not_moved,
    require_own,
    require_partition,
    states,
    write_record,
)
from tests.codes import raises

STRANGER = 54_321


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    return tmp_path / "home"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "lehr.yaml").write_text("partition: shop\n")
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- where it is ------------------------------------------------------------------


def test_the_state_is_named_after_the_real_path_of_the_workspace(workspace: Path, home: Path) -> None:
    state = default_state(workspace)
    assert state.parent == home / "lehr"
    assert state.name.startswith("shop-")
    (workspace.parent / "link").symlink_to("shop")
    assert default_state(workspace.parent / "link") == state
    (workspace.parent / "other" / "shop").mkdir(parents=True)
    assert default_state(workspace.parent / "other" / "shop") != state


@pytest.mark.parametrize("name", ["a b\nc", "x" * 200, "...", "ü"])
def test_any_name_of_a_folder_makes_a_name_of_a_state(tmp_path: Path, name: str) -> None:
    made = default_state(tmp_path / name).name
    assert made.isascii()
    assert made.isprintable()
    assert len(made) < 60
    assert not made.startswith(".")


def test_systemd_then_xdg_then_the_system_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/x"}
    assert states(both) == Path("/var/lib/a")
    assert states({"XDG_STATE_HOME": "/x"}) == Path("/x/lehr")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert states({}) == Path("/var/lib/lehr")
    assert states({"XDG_STATE_HOME": "relative", "STATE_DIRECTORY": "relative"}) == Path("/var/lib/lehr")
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert states({}) == Path("~/.local/state/lehr").expanduser()


def test_a_workspace_names_its_state_and_nothing_in_it_does(workspace: Path, tmp_path: Path) -> None:
    (workspace / "state.sqlite").touch()  # somebody committed it
    assert named_state(workspace) == default_state(workspace)
    assert named_state(tmp_path / "state") == tmp_path / "state"


# --- whether it may be trusted ----------------------------------------------------


def test_a_state_is_made_for_its_owner_alone(workspace: Path, home: Path) -> None:
    before = os.umask(0)
    try:
        make(default_state(workspace))
    finally:
        os.umask(before)
    assert mode(home / "lehr") == mode(default_state(workspace)) == 0o700


def test_others_are_shut_out_of_a_state_in_the_usual_place(workspace: Path) -> None:
    state = default_state(workspace)
    make(state)
    state.chmod(0o755)
    (state / "state.sqlite").touch(0o644)
    first, second = require_own(state)
    assert "0755" in first
    assert "state.sqlite" in second
    assert (mode(state), mode(state / "state.sqlite")) == (0o700, 0o600)
    assert require_own(state) == ()


def test_a_named_folder_that_others_may_look_into_is_refused_with_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    with raises("CTL129") as refused:
        require_own(tmp_path / "state")
    assert refused.value.fix == f"chmod 700 {tmp_path / 'state'}"
    assert mode(tmp_path / "state") == 0o755


def test_a_link_to_a_wider_folder_is_refused(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "wide" / "state").mkdir(parents=True, mode=0o700)
    (tmp_path / "wide").chmod(0o777)
    state = default_state(workspace)
    state.parent.mkdir(parents=True)
    state.symlink_to(tmp_path / "wide" / "state")
    with raises("CTL130", match="every user may write") as refused:
        require_own(state)
    assert str(tmp_path / "wide") in refused.value.why


def test_a_folder_of_all_states_that_others_may_write_is_refused(workspace: Path) -> None:
    make(default_state(workspace))
    default_state(workspace).parent.chmod(0o777)
    with raises("CTL130"):
        require_own(default_state(workspace))


def test_a_file_of_the_state_that_is_a_link_is_refused(workspace: Path, tmp_path: Path) -> None:
    state = default_state(workspace)
    make(state)
    (state / "state.sqlite").symlink_to(tmp_path / "forged.sqlite")
    with raises("CTL130", match="it is a symbolic link"):
        require_own(state)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_the_state_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", STRANGER, STRANGER)
    with raises("CTL127", match=f"belongs to user {STRANGER}"):
        require_own(tmp_path / "state")


@pytest.mark.parametrize("inside", ["state", "deep/er/state", ".git/state"])
def test_a_state_where_git_writes_is_refused(workspace: Path, inside: str) -> None:
    (workspace / ".git").mkdir()
    with raises("CTL128"):
        require_own(workspace / inside)


@pytest.mark.parametrize("through", ["itself", "a link"])
def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path, through: str) -> None:
    state = tmp_path / os.fsdecode(b"caf\xe9")
    if through == "a link":
        state.mkdir(mode=0o700)
        (tmp_path / "state").symlink_to(state)
        state = tmp_path / "state"
    with raises("CTL135", match=r"caf\\xe9"):
        require_own(state)


def test_a_link_into_a_work_tree_is_refused(workspace: Path, tmp_path: Path) -> None:
    (workspace / ".git").write_text("gitdir: /elsewhere\n")  # as in a linked work tree
    (tmp_path / "state").symlink_to(workspace)
    with raises("CTL128"):
        require_own(tmp_path / "state")


def test_a_home_may_be_a_work_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    assert require_own(tmp_path / ".local/state/lehr/shop") == ()


# --- whose it is ------------------------------------------------------------------


def test_a_state_remembers_whose_it_is(workspace: Path) -> None:
    state = default_state(workspace)
    make(state)
    assert record_of(state) is None
    write_record(state, workspace, "shop")
    record = record_of(state)
    assert record is not None
    assert (record.path, record.partition) == (workspace, "shop")
    assert mode(state / "workspace.json") == 0o600
    require_partition(state, "shop")
    with raises("CTL133", match="other"):
        require_partition(state, "other")


def test_any_path_can_be_remembered(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff %41#?")
    folder.mkdir()
    make(tmp_path / "state")
    write_record(tmp_path / "state", folder, "shop")
    record = record_of(tmp_path / "state")
    assert record is not None
    assert record.path == folder


def test_a_workspace_that_was_moved_is_known_again(workspace: Path, tmp_path: Path) -> None:
    state = default_state(workspace)
    make(state)
    write_record(state, workspace, "shop")
    require_not_moved(workspace)
    workspace.rename(tmp_path / "moved")
    [(found, _)] = moved_from(tmp_path / "moved")
    assert found == state
    with raises("CTL134") as refused:
        require_not_moved(tmp_path / "moved")
    assert f"lehr state move {workspace}" in refused.value.fix
    require_not_moved(tmp_path / "moved", "bakery")  # another workspace was given the same inode


def test_a_record_that_cannot_be_read_is_said(workspace: Path) -> None:
    make(default_state(workspace))
    (default_state(workspace) / "workspace.json").write_text("{")
    with raises("CTL131"):
        record_of(default_state(workspace))

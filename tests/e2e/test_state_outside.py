"""The state is never in the workspace, so that nobody who can commit can put one there."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from lehr.control.state_folder import UNUSED, default_state
from tests.e2e.bad_input.workspace import Done, Workspace


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    """A workspace whose state nobody names."""
    workspace = Workspace(tmp_path)
    del workspace.environment["LEHR_STATE"]
    workspace.declare_file("motd", "hello")
    workspace.commit()
    return workspace


def at(shop: Workspace, folder: Path, *arguments: str) -> Done:
    """A command in `folder`."""
    there = Workspace.__new__(Workspace)
    there.folder, there.environment = folder, shop.environment
    return there.lehr(*arguments)


def forged(folder: Path) -> Path:
    """A state whose first incarnation no file says; a state file alone, as it would be committed."""
    workspace = Workspace(folder, state=folder / "state")
    workspace.declare_file("evil", "pwned")
    workspace.commit()
    assert workspace.once().code == 0
    (folder / "production" / "evil.txt").unlink()
    file = folder / "forged.sqlite"
    with sqlite3.connect(folder / "state" / "state.sqlite") as db:
        db.execute("VACUUM INTO ?", (str(file),))
    return file


def test_a_state_that_somebody_committed_is_not_used(shop: Workspace, tmp_path: Path) -> None:
    victim = tmp_path / "attacker" / "production" / "evil.txt"
    file = forged(tmp_path / "attacker")
    committed = shop.repository / UNUSED / "state.sqlite"
    committed.parent.mkdir()
    shutil.copy(file, committed)
    shop.commit("Innocent")
    shop.git("clone", "--quiet", str(shop.repository), str(tmp_path / "clone"))
    done = at(shop, tmp_path / "clone", "run", "--once")
    assert done.code == 0, done.err
    assert "shop@1: production is as intended, 1 asset" in done.err
    assert f"{UNUSED} is not used" in done.err
    assert not victim.exists()
    assert (shop.production / "motd.txt").read_text() == "hello"


def test_git_neither_overwrites_nor_cleans_the_state(shop: Workspace, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shop.git("clone", "--quiet", str(shop.repository), str(clone))
    assert at(shop, clone, "run", "--once").code == 0
    (shop.repository / UNUSED).mkdir()
    (shop.repository / UNUSED / "state.sqlite").write_text("not yours")
    shop.git("add", "--force", UNUSED)
    shop.commit("Innocent")
    shop.git("-C", str(clone), "pull", "--quiet")
    shop.git("-C", str(clone), "clean", "-fdxq")
    done = at(shop, clone, "run", "--once")
    assert done.code == 0, done.err
    assert "shop@1" in done.err or "shop@2" in done.err
    listed = at(shop, clone, "get", "incarnations", "-o", "name").out.split()
    assert listed[-1] == "shop@1", "history goes on"


def test_nothing_is_made_where_there_is_no_workspace(shop: Workspace, tmp_path: Path) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "readme").touch()
    before = set(default_state(tmp_path).parent.glob("*"))
    done = at(shop, tmp_path / "wrong", "run", "--once")
    done.failed("error[CLI119]", "lehr.yaml", "lehr init")
    assert os.listdir(tmp_path / "wrong") == ["readme"]
    assert set(default_state(tmp_path).parent.glob("*")) == before
    new = Workspace(tmp_path / "new")
    del new.environment["LEHR_STATE"]
    (new.repository / "readme").touch()
    (new.repository / "lehr.yaml").rename(tmp_path / "kept")
    new.commit()
    (tmp_path / "kept").rename(new.repository / "lehr.yaml")
    new.once().failed("error[CLI119]", "commit lehr.yaml")
    named = new.once("--state", str(tmp_path / "named" / "deep"))
    named.failed("error[CLI119]")
    assert not (tmp_path / "named").exists()


def test_a_wrong_folder_does_not_hide_the_state_above_it(shop: Workspace) -> None:
    assert at(shop, shop.repository, "run", "--once").code == 0
    at(shop, shop.repository / "assets", "run", "--once").failed("error[CLI119]")
    assert at(shop, shop.repository / "assets", "get", "assets", "-o", "name").out == "motd\n"


def test_a_moved_workspace_takes_its_state_along_when_told_to(shop: Workspace, tmp_path: Path) -> None:
    assert at(shop, shop.repository, "run", "--once").code == 0
    moved = tmp_path / "moved"
    shop.repository.rename(moved)
    at(shop, moved, "run", "--once").failed("error[CTL134]", f"lehr state move {shop.repository}")
    at(shop, moved, "status").failed(f"lehr state move {shop.repository}")
    done = at(shop, moved, "state", "move", str(shop.repository))
    assert done.code == 0, done.err
    assert at(shop, moved, "state", "show", "-o", "name").out.strip() == str(default_state(moved))
    assert "shop@1" in at(shop, moved, "run", "--once").err
    shown = at(shop, moved, "state", "show").out
    assert "shop@1" in shown
    assert str(moved) in shown


def test_another_partition_at_the_same_path_is_refused(shop: Workspace) -> None:
    assert at(shop, shop.repository, "run", "--once").code == 0
    shop.write("lehr.yaml", "partition: other\n")
    shop.commit("Another one")
    at(shop, shop.repository, "run", "--once").failed("error[CTL133]", "partition other", "shop")


def test_a_state_that_others_may_read_is_refused_or_shut(shop: Workspace, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    shop.once("--state", str(tmp_path / "state")).failed("error[CTL129]")
    assert shop.once().code == 0
    default_state(shop.repository).chmod(0o755)
    said = at(shop, shop.repository, "status")
    assert said.code == 0
    assert "0700" in said.err
    assert default_state(shop.repository).stat().st_mode & 0o777 == 0o700
    assert {
        path.stat().st_mode & 0o077 for path in default_state(shop.repository).iterdir() if path.is_file()
    } == {0}


def test_a_path_that_is_too_long_for_a_socket_is_none_for_lehr(shop: Workspace, tmp_path: Path) -> None:
    state = tmp_path.joinpath(*["long" * 10] * 5)
    with shop.run("--state", str(state)) as running:
        running.says("production is as intended")
        done = shop.lehr("sync", "--state", str(state))
        assert done.code == 0, done.err


@pytest.mark.parametrize("through", ["itself", "a link", "a link that comes later"])
def test_no_file_of_intent_lands_in_the_state(shop: Workspace, tmp_path: Path, through: str) -> None:
    assert shop.once().code == 0
    state = default_state(shop.repository)
    before = (state / "state.sqlite").stat().st_ino
    link = tmp_path / "link"
    link.symlink_to(state if through == "a link" else shop.production)
    path = state if through == "itself" else link
    shop.declare("evil", "lehr.File", {"path": str(path / "state.sqlite"), "content": "gone"})
    shop.commit()
    if through == "a link that comes later":
        assert shop.once().code == 0
        (shop.production / "state.sqlite").unlink()
        link.unlink()
        link.symlink_to(state)
        shop.once().failed("state.sqlite", f"is in the state folder {state}")
    else:
        shop.once().failed("error[VAL032]", f"which is in the state folder {state}", "assets/evil.json:1:1")
    assert (state / "state.sqlite").stat().st_ino == before
    assert at(shop, shop.repository, "store", "check").code == 0


def test_no_file_of_intent_lands_in_a_repository(shop: Workspace) -> None:
    hook = shop.repository / ".git" / "hooks" / "post-commit"
    shop.declare("evil", "lehr.File", {"path": str(hook), "content": "#!/bin/sh\n", "mode": "0755"})
    shop.commit()
    shop.once().failed("error[VAL032]", f"which is in the git repository {shop.repository}/.git")
    assert not hook.exists()

"""Given a repository in force, when it goes away or its past is rewritten, then intent stays in force."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_a_repository_that_disappears_or_is_damaged_is_followed_again_when_it_is_back(
    shop: Workspace,
) -> None:
    motd = shop.declare_file("motd", "one\n")
    shop.commit()
    away = shop.folder / "away"
    with shop.run("--poll", "1s") as running:
        running.says("production is as intended")
        shop.repository.rename(away)
        running.says(
            "could not be read",
            "shop@1 stays in force",
            f"error[PUB001]: the repository {shop.repository} does not exist",
            "why: it was moved or deleted, or its file system is not mounted",
            "fix: put it back",
        )
        motd.unlink()
        until("what is in force is looked after", motd.exists)
        sync = shop.lehr("sync")
        sync.failed("does not exist")
        away.rename(shop.repository)
        running.says("the source is readable again; shop@1 stays in force")
        shop.declare_file("motd", "two\n")
        shop.commit()
        until("the next commit is in force", lambda: motd.read_text() == "two\n", running.said)

        head = shop.repository / ".git" / "HEAD"
        head.rename(head.with_suffix(".away"))
        running.says("could not be read", "shop@2 stays in force", "is not a git repository")
        head.with_suffix(".away").rename(head)
        running.says("the source is readable again; shop@2 stays in force")


def test_after_a_force_push_the_new_tip_is_published_and_the_past_stays_readable(shop: Workspace) -> None:
    motd = shop.declare_file("motd", "one\n")
    shop.declare_file("other", "other\n")
    shop.commit()
    with shop.run("--poll", "1s") as running:
        running.says("production is as intended")
        shop.declare_file("motd", "two\n")
        lost = shop.commit()
        until("the second commit is in force", lambda: motd.read_text() == "two\n")

        shop.git("reset", "--quiet", "--hard", "HEAD~1")
        shop.declare_file("motd", "three\n")
        shop.commit("Another history")
        shop.git("reflog", "expire", "--expire=now", "--all")
        shop.git("gc", "--quiet", "--prune=now")
        assert lost not in shop.git("rev-list", "--all", "--reflog")
        until("the new tip is in force", lambda: motd.read_text() == "three\n", running.said)

        diff = shop.lehr("diff", "2", "latest")  # what the branch was set back to may be one, too
        assert "-two" in diff.out
        assert "+three" in diff.out
        assert lost[:12] in shop.lehr("get", "incarnations").out
        assert shop.lehr("pin", "motd", "--at", "2", "--reason", "the past was better").code == 0
        until("the lost commit is in production", lambda: motd.read_text() == "two\n", running.said)


def test_a_force_push_that_drops_assets_is_refused_like_any_other_commit(shop: Workspace) -> None:
    motd = shop.declare_file("motd", "one\n")
    shop.commit()
    with shop.run("--poll", "1s") as running:
        running.says("production is as intended")
        shop.git("checkout", "--quiet", "--orphan", "rewritten")
        shop.git("rm", "--quiet", "-r", "--force", "assets")
        shop.declare_file("other", "other\n")
        tip = shop.commit("Another history")
        shop.git("branch", "--force", "main", tip)
        shop.git("checkout", "--quiet", "main")
        running.says(f"{tip[:12]} was refused", "error[VAL010]", "`motd` has disappeared", "lehr.Turndown")
        assert motd.read_text() == "one\n"
        assert not (shop.production / "other.txt").exists()


def test_an_emptied_directory_touches_nothing(shop: Workspace) -> None:
    motd = shop.declare_file("motd", "one\n")
    with shop.run("--poll", "1s") as running:
        running.says("production is as intended")
        (shop.repository / "assets").rename(shop.folder / "away")
        (shop.repository / "lehr.yaml").rename(shop.folder / "lehr.yaml")
        running.says("could not be read", "has no files", "an empty directory never means")
        motd.unlink()
        until("what is in force is looked after", motd.exists)


def test_a_branch_that_is_not_there_is_named_with_those_that_are(shop: Workspace) -> None:
    shop.declare_file("motd", "one\n")
    shop.commit()
    assert shop.once().code == 0
    done = shop.once("--branch", "mian")
    done.failed("has no branch mian", "it has main", "did you mean main?", "shop@1 stays in force")
    assert done.err.count("mian") == 1
    shop.git("branch", "--move", "trunk")
    shop.once("--branch", "main").failed("has no branch main", "trunk")


def test_a_place_that_is_not_there_at_the_start_is_taken_for_nothing_else(shop: Workspace) -> None:
    """When it comes back as a repository, what nobody committed must not be published."""
    motd = shop.declare_file("motd", "one\n")
    shop.commit()
    assert shop.once().code == 0
    shop.repository.rename(shop.folder / "away")
    for command in ("run", "validate", "plan"):
        done = shop.lehr(command, str(shop.repository))
        done.failed(f"{shop.repository} does not exist", "not mounted", "fix: put it back, or name")
    assert motd.read_text() == "one\n"


def test_a_place_with_nothing_in_it_says_what_to_do(shop: Workspace) -> None:
    (shop.repository / "lehr.yaml").unlink()
    shop.once().failed("has no files", "lehr init")
    shop.git("init", "--quiet")
    shop.once().failed("has no commits yet", "fix: commit to it")
    shop.write("notes.txt", "nothing to see\n")
    shop.commit()
    shop.once().failed("error[CLI119]", "lehr.yaml", "lehr init")
    shop.lehr("get", "assets").failed("error[STO142]")


def test_a_ref_that_is_not_utf_8_and_a_branch_that_is_gone_end_nothing(shop: Workspace) -> None:
    motd = shop.declare_file("motd", "one\n")
    commit = shop.commit()
    git = shop.repository / ".git"
    branch = shop.git("symbolic-ref", "--short", "HEAD")
    with shop.run("--poll", "1s") as running:
        running.says("production is as intended")
        (git / "packed-refs").write_bytes(f"{commit} refs/heads/caf".encode() + b"\xe9\n")
        (git / "refs" / "heads" / branch).unlink()
        running.says("could not be read", "shop@1 stays in force", r"it has caf\xe9")
        motd.unlink()
        until("what is in force is looked after", motd.exists, running.said)
        assert running.end() == 0
    given_up = shop.once("--timeout", "10s")
    assert given_up.code == 1
    assert motd.exists()


@pytest.mark.parametrize("kind", ["git", "directory"])
def test_a_workspace_whose_path_is_not_utf_8_is_like_any_other(tmp_path: Path, kind: str) -> None:
    shop = Workspace(tmp_path / os.fsdecode(b"caf\xe9"), state=tmp_path / "state")
    shop.declare("motd", "lehr.File", {"path": "production/motd.txt", "content": "one\n"})
    shop.commit()
    if kind == "directory":
        shutil.rmtree(shop.repository / ".git")
    for _ in range(2):
        done = shop.once()
        assert done.code == 0, done.err
    assert (shop.repository / "production" / "motd.txt").read_text() == "one\n"
    assert shop.lehr("validate", str(shop.repository)).code == 0
    [incarnation] = json.loads(shop.lehr("get", "incarnations", "-o", "json").out)
    assert rf"{kind}:{tmp_path}/caf\xe9/intent" in [source["source"] for source in incarnation["sources"]]

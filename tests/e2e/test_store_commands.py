"""Given a state with some history, when people look after it, then what they need stays, and damage shows."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.checksums import seal
from tests.e2e.bad_input.workspace import Workspace


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Four incarnations, each of which has changed the same file; a year old, as the records say."""
    workspace = Workspace(tmp_path_factory.mktemp("grown"))
    for turn in range(4):
        workspace.declare_file("motd", f"welcome {turn}\n")
        workspace.commit()
        assert workspace.once().code == 0
    with contextlib.closing(sqlite3.connect(workspace.state / "state.sqlite")) as db, db:
        for table, column, path in (
            ("incarnation", "header", "created_at"),
            ("operation", "body", "ended_at"),
            ("decision", "body", "at"),
        ):
            aged = f"CAST(json_set(CAST({column} AS TEXT), '$.{path}', 1e9) AS BLOB)"
            db.execute(f"UPDATE {table} SET {column} = {aged}")
        seal(db)
    for folder in (workspace.state, workspace.repository):
        shutil.copytree(folder, workspace.folder / "good" / folder.name)
    return workspace


@pytest.fixture
def shop(grown: Workspace) -> Workspace:
    for folder in (grown.state, grown.repository):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(grown.folder / "good" / folder.name, folder)
    return grown


def kept(shop: Workspace) -> list[str]:
    return shop.lehr("get", "incarnations", "-o", "name").out.split()


def test_a_running_program_prunes_when_it_is_told(shop: Workspace) -> None:
    with shop.run() as running:
        running.says("enforcing partition shop")
        # when it is asked what would go
        told = shop.lehr("store", "prune", "--keep", "1", "--older-than", "1d", "--dry-run").out
        assert "dry run: pruned: 3 incarnations with 3 versions" in told
        assert len(kept(shop)) == 4
        # when it is told to do it
        done = shop.lehr("store", "prune", "--keep", "1", "--older-than", "1d")
        assert done.code == 0, done.err
        assert told.removeprefix("dry run: ") == done.out
        # then only what is in force can be read, and the rest says so
        assert kept(shop) == ["shop@4"]
        shop.lehr("diff", "1", "4").failed("error[SDK106]", "shop@1", "shop@4", "lehr get incarnations")
        shop.lehr("get", "assets", "--incarnation", "2").failed("error[SDK106]", "shop@2")
        shop.lehr("pin", "motd", "--at", "2", "--reason", "x").failed("shop@2")
        # and no damage found with the state, nor with the program
        check = shop.lehr("store", "check")
        assert "no damage" in check.out, check.out + check.err
        shop.declare_file("motd", "welcome 5\n")
        shop.commit()
        assert shop.lehr("sync").code == 0
        shop.wait("--allow-pinned")
    assert kept(shop) == ["shop@5", "shop@4"]


def test_what_is_pinned_is_not_pruned_also_where_nothing_runs(shop: Workspace) -> None:
    with shop.run() as running:
        running.says("enforcing partition shop")
        assert shop.lehr("pin", "motd", "--at", "2", "--reason", "it was better").code == 0
        shop.wait("--allow-pinned")
    done = shop.lehr("store", "prune", "--keep", "1", "--older-than", "1d")
    assert "pruned: 2 incarnations" in done.out, done.err
    assert kept(shop) == ["shop@4", "shop@2"]
    assert shop.lehr("store", "check").code == 0
    with contextlib.closing(sqlite3.connect(shop.state / "state.sqlite")) as db:
        said = [json.loads(body) for (body,) in db.execute("SELECT body FROM audit ORDER BY number")]
    assert [entry["command"] for entry in said] == ["pin", "prune"]
    assert said[-1]["result"].startswith("pruned: 2 incarnations")


def test_what_may_be_in_use_is_not_pruned(shop: Workspace) -> None:
    done = shop.lehr("store", "prune", "--older-than", "1m")
    assert done.code == 2
    assert "--older-than" in done.err
    assert "10m" in done.err


def test_damage_is_named_and_the_command_fails(shop: Workspace) -> None:
    with contextlib.closing(sqlite3.connect(shop.state / "state.sqlite")) as db, db:
        db.execute("UPDATE asset_version SET body = CAST('{}' AS BLOB) WHERE sequence = 2")
        db.execute("UPDATE partition SET newest = 3")
    shop.lehr("store", "check").failed(
        "damaged: asset motd of incarnation shop@2 was changed",
        "damaged: partition shop has the wrong newest incarnation",
        "why: it has 3, and the newest that exists is 4",
        "fix: restore the state from a backup",
        "damaged: asset motd of incarnation shop@2 is damaged",
        "damaged: partition shop is damaged",
        "4 problems",
    )
    done = shop.lehr("store", "check", "-o", "json")
    assert done.code == 1
    assert [sorted(item) for item in json.loads(done.out)] == [["fix", "what", "why"]] * 4


def test_an_incarnation_goes_to_another_state_as_a_file(shop: Workspace, tmp_path: Path) -> None:
    file, other = tmp_path / "shop.incarnation", ("--state", str(tmp_path / "other"))
    done = shop.lehr("store", "export", "2", str(file))
    assert "shop@2" in done.out, done.err
    shop.lehr("store", "export", "3", str(file)).failed("error[CLI155]", "--force")
    done = shop.lehr("store", "import", str(file), *other)
    assert "imported:shop@2" in done.out, done.err
    shown = shop.lehr("get", "assets", "--incarnation", "imported:shop@2", "-o", "json", *other)
    assert json.loads(shown.out)[0]["payload"]["content"] == "welcome 1\n"
    # it is not in force there
    shop.lehr("get", "assets", *other).failed("error[QRY114]")
    # and can be compared with what is in force here
    assert shop.lehr("store", "import", str(file)).code == 0
    differences = shop.lehr("diff", "imported:shop@2", "latest")
    assert "welcome 1" in differences.out
    assert "welcome 3" in differences.out
    shop.lehr("get", "assets", "--incarnation", "imported:shop@7").failed("error[CLI148]", "imported:shop@2")
    file.write_text(file.read_text().replace("welcome 1", "welcome 9"))
    shop.lehr("store", "import", str(file), *other).failed("asset motd was changed")
    with shop.run() as running:
        running.says("enforcing partition shop")
        shop.lehr("store", "import", str(file)).failed("error[CLI156]", "--state")

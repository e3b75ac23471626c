"""Given a rule that a database judges, when that is down or does not agree, then nothing is published."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.database.databases import column
from tests.e2e.bad_input.workspace import Workspace

RULE = (
    "{name: owners, connection: 'sqlite:PATH', query: SELECT name FROM team, type: lehr.File,"
    " field: /owner, when_down: WHEN}"
)


def database(path: Path, *names: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS team (name TEXT, head INTEGER)")
        connection.executemany("INSERT INTO team VALUES (?, 1)", [(name,) for name in names])


def owned(folder: Path, when_down: str) -> tuple[Workspace, Path]:
    workspace, path = Workspace(folder), folder / "teams.sqlite"
    rule = RULE.replace("PATH", str(path)).replace("WHEN", when_down)
    workspace.write("lehr.yaml", f"partition: shop\ndatabases:\n- {rule}\n")
    payload = {"path": str(workspace.production / "a"), "content": "x", "owner": "root"}
    workspace.declare("a", "lehr.File", payload)
    workspace.commit()
    return workspace, path


def test_what_the_database_does_not_know_is_refused_until_it_does(tmp_path: Path) -> None:
    workspace, path = owned(tmp_path, "refuse")
    workspace.once().failed("VAL051", "the rule `owners` cannot be checked", "teams.sqlite")
    database(path, "nobody")
    workspace.once().failed("VAL050", "`/payload/owner` of `a` is `root`, which owners does not know")
    assert not list(workspace.production.iterdir())
    checked = workspace.lehr("validate", str(workspace.repository))
    checked.failed("VAL050", "assets/a.json:1")


def test_a_database_that_comes_back_is_asked_again_about_the_same_commit(tmp_path: Path) -> None:
    workspace, path = owned(tmp_path, "refuse")
    workspace.once().failed("VAL051", "Lehr retries automatically")
    database(path, "root")
    done = workspace.once()
    assert done.code == 0, done.err
    assert (workspace.production / "a").read_text() == "x"


def test_a_rule_may_let_changes_go_while_its_database_is_down(tmp_path: Path) -> None:
    workspace, _path = owned(tmp_path, "warn")
    done = workspace.once()
    assert done.code == 0, done.err
    workspace.declare("a", "lehr.File", {"path": str(workspace.production / "a"), "content": "y"})
    checked = workspace.lehr("validate", str(workspace.repository))
    assert checked.code == 0, checked.err
    assert "warning[VAL051]" in checked.out


def test_a_rule_that_its_database_refuses_lets_nothing_go(tmp_path: Path) -> None:
    workspace, path = owned(tmp_path, "warn")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    workspace.once().failed("VAL051", "the rule `owners` cannot be checked", "no such table: team")
    assert not list(workspace.production.iterdir())


# --- what a query may do ----------------------------------------------------------------------


def test_the_first_column_is_read_as_text_without_null(tmp_path: Path) -> None:
    database(tmp_path / "teams.sqlite", "web", "db")
    union = "SELECT name FROM team UNION ALL SELECT 7 UNION ALL SELECT NULL"
    assert column("sqlite:teams.sqlite", union, tmp_path) == {"web", "db", "7"}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("DELETE FROM team", StalledError),
        ("ATTACH 'other.sqlite' AS other", StalledError),
        ("PRAGMA user_version = 3", StalledError),
        ("SELECT nothing FROM team", StalledError),
        ("SELECT 1; SELECT 2", LehrError),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT count(*) FROM c",
            TransientError,
        ),
    ],
)
def test_a_query_only_reads_and_comes_to_an_end(tmp_path: Path, query: str, kind: type[LehrError]) -> None:
    database(tmp_path / "teams.sqlite", "web")
    with pytest.raises(kind):
        column("sqlite:teams.sqlite", query, tmp_path)
    assert column("sqlite:teams.sqlite", "SELECT name FROM team", tmp_path) == {"web"}
    assert not (tmp_path / "other.sqlite").exists()


def test_a_password_has_no_place_in_a_rule(tmp_path: Path) -> None:
    with pytest.raises(StalledError) as caught:
        column("postgresql://app:hunter2" + "@db.shop.example/shop", "SELECT 1", tmp_path)
    assert "password" in caught.value.why
    assert "hunter2" not in str(caught.value)

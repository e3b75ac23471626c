"""`lehr types`, `lehr explain` and `lehr get referrers`, over a state whose types have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli

FIRST = """\
name: shop.Team
description: People who answer.
schema:
  type: object
  additionalProperties: false
  properties: {mail: {type: string, description: Where they are reached.}, parent: {type: string}}
references: {/parent: {types: [shop.Team]}}
"""
SECOND = (
    FIRST.replace("{mail:", "{address:").replace("/parent", "/above").replace("parent:", "above:")
    + """\
version: 2
was: [{version: 1, steps: [{rename: {/mail: /address, /parent: /above}}]}]
"""
)
TEAMS = """\
- {id: all, type: shop.Team, version: 1, payload: {mail: a@x}}
- {id: web, type: shop.Team, version: 1, payload: {mail: w@x, parent: all}}
- {id: css, type: shop.Team, version: 1, payload: {mail: c@x, parent: web}}
"""


def lehr(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two incarnations; in the second, the type has another form, and the files have not."""
    folder: Path = tmp_path_factory.mktemp("shop")
    (folder / "types").mkdir()
    (folder / "assets").mkdir()
    (folder / "lehr.yaml").write_text("partition: shop\n")
    (folder / "assets/teams.yaml").write_text(TEAMS)
    for text in (FIRST, SECOND):
        (folder / "types/team.yaml").write_text(text)
        lehr("run", str(folder), "--once")
    return str(folder)


def told(*arguments: str) -> Any:
    return json.loads(lehr(*arguments, "-o", "json"))


def test_an_old_incarnation_is_read_with_the_types_that_it_has(state: str) -> None:
    newest = told("explain", "shop.Team", "--state", state)
    before = told("explain", "shop.Team", "--incarnation", "1", "--state", state)
    assert (newest["version"], before["version"]) == (2, 1)
    assert [field["name"] for field in newest["fields"]] == ["above", "address"]
    assert [field["name"] for field in before["fields"]] == ["mail", "parent"]
    graph = told("graph", "--incarnation", "1", "--assets", "web", "--state", state)
    assert graph["edges"][0]["path"] == ["/payload/parent"]


def test_what_was_written_in_the_old_form_is_stored_in_the_new_one(state: str) -> None:
    before, newest = (
        told("get", "assets", "web", "--incarnation", name, "--state", state)[0] for name in ("1", "2")
    )
    assert before["payload"] == {"mail": "w@x", "parent": "all"}
    assert newest["payload"] == {"address": "w@x", "above": "all"}
    assert newest["versions"] == {"shop.Team": 2}


def test_a_field_is_explained_with_what_it_may_hold(state: str) -> None:
    assert "names an asset of type shop.Team" in lehr("explain", "shop.Team.above", "--state", state)
    assert "version 2" in lehr("explain", "shop.Team", "--state", state)
    assert "shop.Team" in lehr("types", "-o", "wide", "--state", state)


def test_who_refers_to_an_asset_is_listed_through_a_field_and_all_the_way(state: str) -> None:
    def ids(*arguments: str) -> list[tuple[str, int]]:
        found = told("get", "referrers", *arguments, "--state", state)
        return [(item["id"], item["depth"]) for item in found]

    assert ids("all") == [("web", 1)]
    assert ids("all", "--tree", "--field", "above") == [("web", 1), ("css", 2)]
    assert ids("all", "--field", "parent") == []
    assert ids("all", "--tree", "--field", "parent", "--incarnation", "1") == [("web", 1), ("css", 2)]
    assert "/payload/above" in lehr("get", "referrers", "all", "--state", state)


def test_an_asset_that_there_never_was_has_no_referrers(state: str) -> None:
    assert lehr("get", "referrers", "nobody", "--state", state, code=1) == ""

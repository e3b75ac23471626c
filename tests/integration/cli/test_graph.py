"""`lehr graph` on a workspace and on a state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.base.errors import LehrError
from lehr.cli.main import cli

GENERATORS = """\
from lehr.sdk.generator import annotate, asset, for_each_asset, for_each_file


@for_each_file("sites/*.yaml")
def sites(file):
    name = file.yaml()
    yield asset(f"{name}/file", "lehr.File", {"path": f"out/{name}", "content": name})


@for_each_asset("lehr.File")
def owners(file):
    yield annotate(file.id, "lehr.Owner", {"team": "web"})


@for_each_file("nothing/*.yaml")
def idle(file):
    yield asset("none", "lehr.File", {"path": "out/none", "content": ""})
"""
FILES = {
    "lehr.yaml": "partition: shop\n",
    "assets/page.yaml": "id: page\ntype: lehr.File\npayload: {path: out/page, content: x}\n"
    "addons: {lehr.DependsOn: {assets: [a/file]}}\n",
    "sites/a.yaml": "a\n",
    "sites/b.yaml": "b\n",
    "generators/sites.py": GENERATORS,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def lehr(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done.stdout


def test_a_workspace_shows_its_generators_in_order_also_the_idle_ones(folder: Path) -> None:
    told = lehr("graph", str(folder)).splitlines()
    assert [line.split()[0] for line in told[2:]] == [
        "generators/sites.py:idle:15",
        "generators/sites.py:sites:4",
        "generators/sites.py:owners:10",
    ]
    assert "asset files" in told[1]
    assert "nothing/*.yaml (0)" in told[2]
    assert "each sites/*.yaml (2)" in told[3]
    assert "lehr.File (2)" in told[3]
    assert "+lehr.Owner (3)" in told[4]


def test_a_state_shows_what_made_its_assets(folder: Path) -> None:
    lehr("run", str(folder), "--once")
    state = ("--state", str(folder))
    found = json.loads(lehr("graph", "--incarnation", "latest", "-o", "json", *state))
    assert [node["name"] for node in found["generators"]] == [
        "generators/sites.py:sites",
        "generators/sites.py:owners",
    ]
    assert (found["files"], found["declares"]) == (1, {"lehr.File": 1})
    told = lehr("graph", "--incarnation", "1", "--assets", "page", *state)
    assert told.splitlines() == [
        "a/file (lehr.File)",
        "page (lehr.File)",
        "  depends on  a/file  (/addons/lehr.DependsOn/assets/0)",
    ]


def test_a_cycle_of_dependencies_is_named_though_it_is_not_valid(folder: Path) -> None:
    (folder / "assets" / "other.yaml").write_text(
        "id: other\ntype: lehr.File\npayload: {path: out/o, content: x}\n"
        "addons: {lehr.DependsOn: {assets: [back]}}\n---\n"
        "id: back\ntype: lehr.File\npayload: {path: out/b, content: x}\n"
        "addons: {lehr.DependsOn: {assets: [other]}}\n"
    )
    told = lehr("graph", str(folder), "--assets", "all")
    assert "cycle of dependencies: back -> other -> back" in told
    assert lehr("graph", str(folder), "--assets", "all", "-o", "dot").startswith("digraph lehr {\n")


def test_what_cannot_be_generated_cannot_be_drawn(folder: Path) -> None:
    (folder / "generators" / "sites.py").write_text("1 / 0\n")
    lehr("graph", str(folder), code=1)


def test_a_selector_that_selects_nothing_is_an_error(folder: Path) -> None:
    done = CliRunner().invoke(cli, ["graph", str(folder), "--assets", "nobody"])
    assert isinstance(done.exception, LehrError)
    assert done.exception.code == "CLI113"
    assert "id=nobody" in str(done.exception)

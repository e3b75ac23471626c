"""Given a workspace in force, when generation answers with what brought others down, then nothing is touched.

Each is named after an outage that became known; what is refused says why, and what to do.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace

SITES = 12

GENERATOR = """
import json
from lehr.sdk.generator import asset, for_each_file

@for_each_file("data/*.json")
def sites(file):
    for site in json.loads(file.text()):
        yield asset(site["name"], "lehr.File", {"path": site["path"], "content": site["content"]})
"""


class Sites:
    """A workspace whose files are generated from rows, as somebody's database might give them."""

    def __init__(self, folder: Path, content: str = "open\n") -> None:
        self.workspace = Workspace(folder)
        self.workspace.write("generators/sites.py", GENERATOR)
        self.workspace.write("lehr.yaml", "partition: shop\ngrowth: {floor: 5}\n")
        self.rows = [self.row(f"site-{number:02}", content) for number in range(SITES)]
        self.answer(self.rows)
        assert self.workspace.once().code == 0
        self.before = self.production()
        assert len(self.before) == SITES

    def row(self, name: str, content: str) -> dict[str, str]:
        """A row of the answer."""
        return {"name": name, "path": str(self.workspace.production / name), "content": content}

    def answer(self, rows: list[dict[str, str]]) -> None:
        """Have generation make its assets of `rows`."""
        self.workspace.write("data/sites.json", json.dumps(rows))
        self.workspace.commit()

    def production(self) -> dict[str, str]:
        """Every file that is there."""
        return {file.name: file.read_text() for file in sorted(self.workspace.production.iterdir())}

    def refuses(self, rows: list[dict[str, str]], *words: str) -> None:
        """Publishes nothing of `rows`, touches nothing, says each of `words`; a good answer goes on."""
        self.answer(rows)
        self.workspace.once().failed(*words)
        assert self.workspace.sequence() == 1
        assert self.production() == self.before
        self.answer([*self.rows, self.row("new", "open\n")])
        assert self.workspace.once().code == 0
        assert self.workspace.sequence() == 2
        assert self.production() == {**self.before, "new": "open\n"}


def test_an_empty_set_is_not_taken_for_everything(tmp_path: Path) -> None:
    Sites(tmp_path).refuses(
        [],
        "VAL020",
        f"nothing is declared; before, there were {SITES} assets",
        "check whether files are missing",
        f"{SITES} assets have disappeared without a turndown",
        "declare it again with the addon `lehr.Turndown",
    )


def test_half_an_answer_takes_nothing_away(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    sites.refuses(
        sites.rows[::2],
        "VAL010",
        "`site-01` has disappeared without a turndown",
        "its absence does not determine what should happen to it",
        "let_go: {site-01: REASON}",
    )


def test_a_field_that_is_blank_everywhere_reaches_nobody(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    sites.refuses(
        [{**row, "content": ""} for row in sites.rows],
        "VAL024",
        "`/content` of `site-00`, `site-01`",
        "and 2 more is empty, and was not before",
        "check where the value comes from",
        "acknowledge: [{code: VAL024, subject: lehr.File, after: shop@1, reason: WHY}]",
    )


@pytest.mark.parametrize("twice", ["in one file", "under other names"])
def test_a_file_that_doubles_is_not_handed_on(tmp_path: Path, twice: str) -> None:
    sites = Sites(tmp_path, "allow 192.0.2.1\n" * 1_000)
    if twice == "in one file":
        rows = [{**row, "content": row["content"] * 2} for row in sites.rows]
        said = ("VAL023", "have grown by more than 80 %: `site-00` from 1", "check what it contains twice")
    else:
        rows = [*sites.rows, *(sites.row(f"{row['name']}-copy", row["content"]) for row in sites.rows)]
        said = ("VAL022", f"this change adds {SITES} to {SITES} assets", "is declared twice under other ids")
    sites.refuses(rows, *said)


def test_what_is_meant_is_acknowledged_in_the_same_commit_and_recorded(tmp_path: Path) -> None:
    sites = Sites(tmp_path)
    closed = [{**row, "content": ""} for row in sites.rows]
    entry = "{code: VAL024, subject: lehr.File, after: shop@1, reason: all sites are closed}"
    sites.workspace.write("lehr.yaml", f"partition: shop\nacknowledge: [{entry}]\n")
    sites.answer(closed)
    done = sites.workspace.once()
    assert done.code == 0, done.err
    assert set(sites.production().values()) == {""}
    [newest, first] = json.loads(sites.workspace.lehr("get", "incarnations", "-o", "json").out)
    assert [held["reason"] for held in newest["acknowledged"]] == ["all sites are closed"]
    assert first["acknowledged"] == []
    shown = sites.workspace.lehr("get", "incarnations", "-o", "wide").out
    assert "VAL024 lehr.File: all sites are closed" in shown
    sites.answer(sites.rows)
    assert sites.workspace.once().code == 0
    sites.answer(closed)
    sites.workspace.once().failed("VAL024", "VAL013", "follows shop@1, and the newest is shop@3")
    assert sites.production() == sites.before


def test_the_line_that_holds_a_secret_is_shown_to_nobody(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    secret = "gh" + "p_" + "0aB1cD2eF3" * 4
    path = workspace.production / "token"
    workspace.write(
        "assets/token.yaml",
        f"- {{id: token, type: lehr.File, payload: {{path: {path}, content: {secret}}}, "
        "addons: {lehr.DependsOn: {assets: [nobody]}}}\n",
    )
    workspace.commit()
    done = workspace.once()
    done.failed("VAL001", "VAL041", "`/payload/content` of `token` looks like a GitHub token", "not_secret:")
    why = workspace.lehr("why", "--all")
    checked = workspace.lehr("validate", str(workspace.repository), "-o", "json")
    for said in (done, why, checked):
        assert secret not in f"{said.out}{said.err}"
    assert "VAL041" in checked.out
    assert not path.exists()

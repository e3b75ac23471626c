"""What the pages on sources tell people to do works as it stands, and every field has a line."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from lehr.generate.engine.workspace import read_workspace
from lehr.model.declared_sources import KINDS
from tests.docs.test_tutorials import run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "use-several-sources.md").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "workspace.md").read_text()

PROMOTE = (ROOT / "docs" / "how-to" / "promote.md").read_text()

SIGNED = "For a declared repository, list"


def test_the_page_on_several_sources_is_run(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    folder = tmp_path / "shop"
    (folder / "generators").mkdir(parents=True)
    said = run(PAGE[: PAGE.index(SIGNED)], folder)
    listed = said[said.index("[\n") : said.rindex("\n]") + 2]
    [incarnation] = json.loads(listed)
    folders = {item.get("folder", "") for item in incarnation["sources"]}
    assert folders == {"", "sources/catalogue", "sources/clusters", "sources/shared"}
    assert "sources/catalogue/web.toml" in said
    assert said.endswith("v1eu 7\nhello")


def test_the_page_on_promotion_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    said = run(PROMOTE, folder)
    assert "sources: {staging: {partition: staging, state: ../staging, incarnation: 1, " in said
    assert "production@2: production is as intended" in said
    assert "archive: ../staging-2.incarnation}}" in said
    assert (folder / "production" / "production" / "hello.txt").read_text() == "Good day."


def test_the_example_of_keys_is_what_a_workspace_may_say() -> None:
    block = PAGE[PAGE.index("```yaml\n", PAGE.index(SIGNED)) :].split("```")[1].removeprefix("yaml\n")
    workspace, problems = read_workspace(f"partition: a\n{block}".encode())
    assert workspace is not None, problems


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_source_has_a_line(kind: str) -> None:
    section = REFERENCE[REFERENCE.index(f"### `{kind}`") :].split("\n### ")[0]
    told = {name for line in section.splitlines() if line.startswith("| `") for name in _names(line)}
    assert told == set(KINDS[kind].__struct_fields__)


def test_every_field_of_the_workspace_file_has_a_line() -> None:
    from lehr.generate.engine import workspace

    section = REFERENCE[: REFERENCE.index("## Sources")]
    told = {name for line in section.splitlines() if line.startswith("| `") for name in _names(line)}
    _, problems = read_workspace(b"partition: a\nnot_a_field: 1\n")
    assert "not_a_field" in problems[0].what
    assert told == set(workspace.FIELDS)


def _names(line: str) -> list[str]:
    return line.split("|")[1].replace("`", "").replace(" or ", ",").replace(" ", "").split(",")

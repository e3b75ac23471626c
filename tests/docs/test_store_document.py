"""What the page about the store tells people to call works, and its format is the one that is written."""

from __future__ import annotations

import json
from pathlib import Path

from lehr.store.archive import FORMAT, VERSION
from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/keep-the-store.md").read_text()
BEGIN = "```sh\nlehr init tutorial\ncd tutorial\nlehr run --once\n```\n"


def test_every_call_on_the_page_works(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    said = run(BEGIN + PAGE, folder)
    assert "no damage found" in said
    assert "dry run: nothing was old enough" in said
    assert "imported:tutorial@1 imported" in said
    assert "imported:tutorial@1 to tutorial@1: no differences" in said
    lines = [json.loads(line) for line in (folder / "tutorial/hello.incarnation").read_text().splitlines()]
    assert (lines[0]["format"], lines[0]["version"]) == (FORMAT, VERSION)
    for line in (lines[0], lines[1], lines[-1]):
        assert all(f"`{field}`" in PAGE for field in line)


def test_the_page_names_the_version_that_is_written() -> None:
    assert f"`format`: `{FORMAT}`; `version`: {VERSION};" in PAGE

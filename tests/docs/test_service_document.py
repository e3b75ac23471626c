"""The page about services: its calls work, and it names the settings and files that the unit has."""

from __future__ import annotations

import re
from pathlib import Path

from lehr.cli.service.systemd import Unit
from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/run-as-a-service.md").read_text()
BEGIN = "```sh\nlehr init tutorial\ncd tutorial\n```\n"


def test_every_call_works_and_every_setting_is_in_the_unit(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    said = run(BEGIN + PAGE, folder)
    settings = re.findall(r"^\| `(\w+=\S*)` \|", PAGE, re.MULTILINE)
    assert len(settings) > 5
    for setting in settings:
        assert f"\n{setting}" in said


def test_the_files_are_where_the_page_says() -> None:
    system, user = (Unit("/srv/shop", None, system=kind) for kind in (True, False))
    for file in (system.path, system.environment_file):
        assert f"`{file}`" in PAGE
    for file in (user.path, user.environment_file):
        assert file.name in PAGE

"""What the page on controllers tells people to do works, and its controller is as short as is claimed."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from lehr.testing.controllers import Stage
from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-a-controller.md").read_text()
MOST_LINES = 30


def test_the_page_on_controllers_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -W error -B "$@" -p no:cacheprovider\n')
    python.chmod(0o755)
    said = run(PAGE, folder)
    assert "1 passed" in said
    assert [copy.read_text() for copy in (folder / "shop" / "copies").glob("*.copy")] == ["quills: 3\n"]


def test_the_whole_controller_has_at_most_thirty_lines() -> None:
    block = re.search(r"^```python\n# backups\.py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert len(block.group(1).splitlines()) <= MOST_LINES


def test_everything_that_a_story_can_do_is_named() -> None:
    public = {name for name in vars(Stage) if not name.startswith("_") and name != "close"}
    assert {name for name in public if f"`stage.{name}(" not in PAGE} == set()

"""The guide to questions about an asset leads from a page that is held up to the commands that free it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ask-why.md").read_text()

# People take longer to read on than a turn takes to end.
_LOOK_BACK = re.compile(r"^(lehr why web/page --at 1s)$", re.MULTILINE)
_PATIENT = r"until lehr why web/page --at 1s | grep -q 'is waiting'; do sleep 0.5; done\n\1"

_DIFFERS = re.compile(r"freeze/\w+|by \w+|#\d+|\w+ ago")
"""What is different each time."""


def same(text: str) -> str:
    return _DIFFERS.sub("…", text)


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    output = same(run(_LOOK_BACK.sub(_PATIENT, PAGE), folder))
    blocks = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        assert same(block) in output


def test_the_guide_names_every_command_that_can_be_supposed() -> None:
    from lehr.dry_run.suppositions import Verb

    table = "".join(line for line in PAGE.splitlines(keepends=True) if line.startswith("| `"))
    assert all(re.search(rf"`{verb}[ `]", table) for verb in Verb)

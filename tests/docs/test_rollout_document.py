"""The guide to rollouts in waves leads from nothing to a rollout that goes on, back, and away."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "roll-out-in-waves.md").read_text()

# People take longer to read on than a rollout takes to begin or to end.
_COMMANDS = re.compile(r"^(lehr rollout (?!show|history).*)$", re.MULTILINE)
_SHOWN = re.compile(r"^lehr rollout show$", re.MULTILINE)


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    patient = _COMMANDS.sub(r"until \1; do sleep 0.2; done", PAGE)
    patient = _SHOWN.sub("sleep 1; lehr rollout show", patient)
    output = run(patient, folder)
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        title, *lines = block.splitlines()
        assert title in output
        assert all(line in output for line in lines if line.endswith(("under way", "--reason TEXT`")))
    assert "customers complain" in output
    assert output.rstrip().endswith("version 4\nversion 4\nversion 4")

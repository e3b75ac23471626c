"""The guide to plugins in processes of their own is run; its table of fields is complete."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from lehr.plugins.remote.configuration import PluginDefinition
from tests.docs.test_tutorials import ROOT, run

GUIDE = (ROOT / "docs" / "how-to" / "run-plugins.md").read_text()


def test_every_field_is_described_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9]+)` \| ?`?([^|`]*?)`? \|[^|]*\|$", GUIDE, re.MULTILINE))
    assert set(rows) == {field.name for field in msgspec.structs.fields(PluginDefinition)}
    assert rows["directory"] == PluginDefinition(types=("a",), command=("b",)).directory


def test_the_guide_is_run(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)  # plugins get no variables of Lehr's
    (tmp_path / "python3").write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {sys.executable} "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    printed = run(GUIDE, here)
    assert "motd (example.Note): will be pushed" in printed
    assert "welcome" in printed
    assert "an incident is open" in printed
    assert "good evening" in printed.partition("an incident is open")[2]
    assert "ok      incident/no_answer_is_no_permission" in printed
    refused = printed.partition("error[wording/W001]: the text contains howdy\n  --> assets/motd.yaml:5:3")[2]
    assert "\nhowdy there\n" in refused.partition("\ngood evening\n")[2]
    assert "ok      wording/changes_can_be_divided" in printed
    assert printed.count("0 broken") == 2

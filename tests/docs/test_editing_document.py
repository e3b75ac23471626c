"""What the page on edits by program tells people to do works as it stands."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "edit-by-program.md"


def test_the_page_on_edits_by_program_is_run(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    folder = tmp_path / "here"
    folder.mkdir()
    said = run(PAGE.read_text(), folder)
    assert "assets/hello.yaml | 2 +-" in said
    assert '+  mode: "0600"' in said
    assert '+assets: ["assets/**/*.{yaml,yml,json,toml}", "more/*.yaml"]' in said

"""What the page on declaring types tells people to do works, and shows what it says."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "declare-a-type.md"


def test_the_page_on_declaring_types_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    protoc = tmp_path / "protoc"
    protoc.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -W ignore -m grpc_tools.protoc -I. "$@"\n'
    )
    protoc.chmod(0o755)
    said = re.sub(r"\s+", " ", run(PAGE.read_text(), folder))
    prose = re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    facts = [re.sub(r"\s+", " ", line) for line in re.findall(r"^    (\S.*)$", prose, re.MULTILINE)]
    assert len(facts) == 9
    assert [line for line in facts if line not in said] == []

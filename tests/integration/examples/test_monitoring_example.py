"""`examples/monitoring`: the commands of its page, one after the other."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "monitoring"


def test_the_commands_of_the_page_do_what_it_describes(tmp_path: Path) -> None:
    folder = tmp_path / "monitoring"
    shutil.copytree(EXAMPLE, folder)
    lines = re.findall(r"^    (\S.*)$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    lehr = f"{sys.executable} -m lehr"
    found = []
    for line in lines:
        command = re.sub(r"^lehr\b", lehr, line)
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=150, check=False
        )
        page = folder / "out" / "index.html"
        found.append((done.returncode, page.read_text() if page.exists() else "", done.stdout))
    assert [code for code, _, _ in found] == [0, 0, 0, 1, 0, 0, 0]
    assert "MonitorHolds" in found[4][2]
    assert "Welcome" in found[4][1]
    assert "Hello" in found[6][1]

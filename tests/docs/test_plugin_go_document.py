"""What the Go example's README tells people to do works, block by block."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.test_tutorials import run
from tests.golang import EXAMPLE, built

PAGE = (EXAMPLE / "README.md").read_text()


@pytest.mark.timeout(280)
def test_the_guide_is_run(tmp_path: Path) -> None:
    here = tmp_path / "plugin-go"
    shutil.copytree(EXAMPLE, here)
    page = PAGE
    for shown, instead in (
        ("sudo apt-get install", "true"),
        ("./go.sh build -o zones .", f"cp {built(EXAMPLE)} zones"),
        # tests/integration/examples/test_plugin_go.py checks all rules.
        ("--fixtures fixtures/record", "--fixtures fixtures/record --rule push_converges"),
    ):
        assert shown in page
        page = page.replace(shown, instead)
    printed = run(page, here)
    assert "1 rule checked, 0 broken" in printed
    zone = (tmp_path / "dns/zones/example.com.zone").read_text()
    assert "www IN A 192.0.2.1\n" in zone
    assert "printer A 192.0.2.9 ; on the second floor\n" in zone
    assert " 3 7200 " in zone, "the zone and its record were written, and the record again"

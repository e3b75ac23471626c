"""An exclusive directory, from intent to the wait for an approval."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ASSETS = """\
id: sites
type: lehr.Directory
payload: {path: out/sites, exclusive: true}
---
id: shop
type: lehr.File
payload: {path: out/sites/shop, content: shop}
"""


def lehr(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "lehr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_what_intent_does_not_declare_waits_for_an_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "assets" / "sites.yaml").write_text(ASSETS)
    lehr("run", "--once")
    (tmp_path / "out" / "sites" / "stray").touch()
    plan = lehr("plan")
    assert "sites (lehr.Directory): needs approval" in plan
    assert "inside/stray" in plan
    assert "inside/shop" not in plan
    (tmp_path / "assets" / "sites.yaml").write_text(
        ASSETS + "---\n" + ASSETS[ASSETS.index("id: shop") :].replace("shop", "stray")
    )
    assert "needs approval" not in lehr("plan")

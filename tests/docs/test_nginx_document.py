"""The page on nginx is run from its first line to the removal of a site, with the real program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_tutorials import ROOT, run
from tests.installed import installed


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the workers of nginx may read."""
    with tempfile.TemporaryDirectory(prefix="lehr-nginx-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        here = Path(name) / "here"
        here.mkdir()
        yield here


def test_the_page_on_nginx_is_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.pathsep.join([os.environ["PATH"], str(Path(installed("nginx")).parent)])
    monkeypatch.setenv("PATH", path)
    text = (ROOT / "docs" / "how-to" / "run-nginx.md").read_text()
    said = run(text.partition("\n## Find undeclared files")[0], folder)
    assert "the shop\n" in said
    assert "the blog\n" in said

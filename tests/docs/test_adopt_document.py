"""What the page about adopting tells people to do works, and leaves production alone."""

from __future__ import annotations

from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "adopt.md"


def test_the_page_about_adopting_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    said = run(PAGE.read_text(), folder)
    assert "# Not adopted: it is a symbolic link" in said
    assert "2 as intended" in said
    assert "no operations" in said
    assert "nothing was pushed" in said
    assert said.count("production is as intended, 2 assets") == 3
    assert (folder / "shop" / "etc" / "motd").read_text() == "Welcome\n"
    assert "3 as intended" in said
    assert "version: 0" in (folder / "shop" / "assets" / "orders.yaml").read_text()

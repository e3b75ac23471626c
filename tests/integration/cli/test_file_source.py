"""Content in files of the workspace, from the source to production."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ASSETS = """\
id: config
type: lehr.File
payload:
  path: out/app.conf
  source: files/app.conf
---
id: logo
type: lehr.File
payload:
  path: out/logo
  source: files/logo
"""
LOGO = bytes(range(256)) * 12_000
"""3 MB: more than an asset can hold."""

Kind = str


@pytest.fixture(params=["git", "directory"])
def workspace(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Kind]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").mkdir()
    (tmp_path / "files").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / ".gitignore").write_text("out\n")
    (tmp_path / "assets" / "files.yaml").write_text(ASSETS)
    (tmp_path / "files" / "app.conf").write_text("one\ntwo\n")
    (tmp_path / "files" / "logo").write_bytes(LOGO)
    if request.param == "git":
        subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    save(request.param)
    return tmp_path, request.param


def save(kind: Kind) -> None:
    if kind == "git":
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", *who, "commit", "-qm", "Change"], check=True)


def lehr(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "lehr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_file_of_the_workspace_becomes_production_and_its_changes_follow(
    workspace: tuple[Path, Kind],
) -> None:
    folder, kind = workspace
    planned = lehr("plan")
    assert "2 to push" in planned
    assert "+two\n" in planned
    assert "text hidden: it is " in planned
    lehr("run", "--once")
    assert (folder / "out" / "logo").read_bytes() == LOGO
    (folder / "files" / "app.conf").write_text("one\n2\n")
    (folder / "files" / "logo").write_bytes(LOGO[1:])
    differences = lehr("diff")
    assert "-two\n" in differences
    assert "+2\n" in differences
    assert "/payload/source/size: 3072000 -> 3071999" in differences
    planned = lehr("plan")
    assert "-two\n" in planned
    assert "+2\n" in planned
    save(kind)
    lehr("run", "--once")
    assert (folder / "out" / "logo").read_bytes() == LOGO[1:]
    assert (folder / "out" / "app.conf").read_text() == "one\n2\n"
    assert "-two\n" in lehr("diff", "1", "2"), "the old content is kept"


def test_each_source_that_cannot_be_used_is_refused_with_its_place(workspace: tuple[Path, Kind]) -> None:
    folder, _ = workspace
    (folder / "files" / "link").symlink_to("/etc/passwd")
    sources = ["files/missing", "files", "files/link", "../x", "/etc/passwd"]
    assets = [
        ASSETS.replace("id: ", f"id: {number}/", 1).replace("files/app.conf", source).split("---")[0]
        for number, source in enumerate(sources)
    ]
    (folder / "assets" / "files.yaml").write_text("---\n".join(assets))
    found = lehr("validate", code=1)
    assert found.count("error[VAL043]") == len(sources)
    for line in (5, 11, 17, 23, 29):
        assert f"assets/files.yaml:{line}:3" in found

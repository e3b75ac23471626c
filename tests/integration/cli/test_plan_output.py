"""What `lehr plan` shows: texts line by line, secrets never, and a summary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "hunter2-hunter2"

ASSETS = """\
id: motd
type: lehr.File
payload:
  path: out/motd
  content: |
    hello
    world
---
id: long
type: lehr.File
payload: {path: out/long, source: long}
---
id: hidden
type: lehr.File
payload: {path: out/hidden, content: "new\\n", mode: "0640"}
---
id: same
type: lehr.File
payload: {path: out/same, content: "same\\n"}
"""


def lehr(*arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "lehr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "long").write_text("".join(f"line {number}\n" for number in range(100)))
    (tmp_path / "assets" / "files.yaml").write_text(ASSETS)
    for name, content in (("motd", "hello\r\nworld"), ("hidden", "old"), ("same", "same\n")):
        path = tmp_path / "out" / name
        path.write_bytes(content.encode())
        path.chmod(0o644)
    return tmp_path


def test_a_plan_shows_texts_line_by_line(workspace: Path) -> None:
    assert (
        lehr("plan", "motd")
        == """\
motd (lehr.File): will be pushed
  differs
    content:
      @@ -1,2 +1,2 @@
      -hello\\r
      -world
      \\ No newline at end of file
      +hello
      +world
1 to push
"""
    )
    assert lehr("plan").endswith("3 to push, 1 as intended\n")


def test_a_long_text_is_cut_and_can_be_seen_whole(workspace: Path) -> None:
    cut = lehr("plan", "long")
    assert "61 more lines; see --full-diff" in cut
    assert "line 99" not in cut
    assert "+line 99\n" in lehr("plan", "long", "--full-diff")


def test_a_plan_hides_what_may_be_secret_and_stores_no_text(workspace: Path) -> None:
    (workspace / "out" / "motd").write_text(f"password = {SECRET}\n")
    (workspace / "out" / "hidden").write_text(f"{SECRET}\n")
    for form in ("text", "json", "yaml"):
        assert SECRET not in lehr("plan", "--full-diff", "-o", form)
    planned = lehr("plan")
    assert "text hidden: mode 0640 keeps it from other users" in planned
    assert "text hidden: a part of it looks like a password" in planned
    lehr("run", "--once")
    (workspace / "out" / "motd").write_text(f"{SECRET} may be shown here\n")
    assert SECRET in lehr("plan")
    lehr("run", "--once")
    for stored in (workspace / ".lehr").rglob("*"):
        assert not stored.is_file() or SECRET.encode() not in stored.read_bytes(), stored


def test_a_removal_is_counted_as_one(workspace: Path) -> None:
    lehr("run", "--once")
    turndown = "addons: {lehr.Turndown: {reason: not needed}}"
    files = workspace / "assets" / "files.yaml"
    files.write_text(ASSETS.replace("type: lehr.File", f"type: lehr.File\n{turndown}", 1))
    planned = lehr("plan")
    assert planned.startswith("motd (lehr.File): will be removed (fenced first)\n")
    assert planned.endswith("1 to remove, 3 as intended\n")


def test_drift_and_new_content_are_told_apart(workspace: Path) -> None:
    lehr("run", "--once")
    (workspace / "out" / "same").write_text("edited\n")
    files = workspace / "assets" / "files.yaml"
    files.write_text(ASSETS.replace("world", "everybody"))
    planned = lehr("plan")
    assert "motd (lehr.File): will be pushed\n  cause      new content since shop@1\n" in planned
    assert "cause      drift: production no longer matches shop@1\n" in planned


def test_json_has_the_changes_and_no_texts(workspace: Path) -> None:
    [planned] = json.loads(lehr("plan", "motd", "-o", "json"))
    assert [change["path"] for change in planned["diff"]["changes"]] == ["content"]
    assert "world" not in json.dumps(planned)


def test_problems_of_a_workspace_are_json_for_programs(workspace: Path) -> None:
    (workspace / "assets" / "broken.yaml").write_text("id: [\n")
    command = [sys.executable, "-m", "lehr", "plan", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    [problem] = json.loads(done.stderr)
    assert (done.returncode, done.stdout) == (1, "")
    assert problem["at"]["file"] == "assets/broken.yaml"


def test_what_awaits_its_release_is_held(workspace: Path) -> None:
    lehr("run", "--once")
    waves = "id: waves\ntype: lehr.RolloutPolicy\npayload: {select: {ids: [motd]}}\n"
    (workspace / "assets" / "waves.yaml").write_text(waves)
    lehr("run", "--once")
    files = workspace / "assets" / "files.yaml"
    files.write_text(ASSETS.replace("world", "everybody"))
    planned = lehr("plan", "--exit-code")
    assert "motd (lehr.File): held\n  because    as in incarnation 1; newer content is not rel" in planned
    assert planned.endswith("1 held, 3 as intended\n")

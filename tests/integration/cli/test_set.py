"""`lehr set`, with real files, git and generation."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.set import set_

ASSETS = """\
# What is where.
- id: greeting
  type: lehr.File
  payload:
    path: out/greeting.txt   # relative
    content: hello
    mode: "0644"
"""


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a workspace in a folder of it, which is the current directory."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "LEHR_"))]:
        monkeypatch.delenv(name)
    workspace = tmp_path / "repository" / "intent"
    (workspace / "assets").mkdir(parents=True)
    (workspace / "lehr.yaml").write_text("partition: shop\n")
    (workspace / "assets" / "a.yaml").write_text(ASSETS)
    git(tmp_path / "repository", "init", "-q", "-b", "main")
    git(tmp_path / "repository", "config", "user.name", "Ada")
    git(tmp_path / "repository", "config", "user.email", "ada@example.org")
    git(tmp_path / "repository", "add", "-A")
    git(tmp_path / "repository", "commit", "-q", "-m", "first")
    monkeypatch.chdir(workspace)
    return tmp_path / "repository"


def git(at: Path, *arguments: str) -> str:
    command = ["git", "-c", "safe.directory=*", "-C", str(at), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(set_, arguments)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def subjects(repository: Path) -> list[str]:
    return git(repository, "log", "--format=%s").splitlines()


def test_a_value_is_set_validated_and_committed(repository: Path) -> None:
    result = run("assets/a.yaml", "[id=greeting].payload.content", "good day", "-m", "politer")
    assert "+    content: good day\n" in result.stdout
    assert "commit " in result.stderr
    assert subjects(repository) == ["politer", "first"]
    assert git(repository, "status", "--porcelain") == ""


def test_what_would_not_validate_is_not_committed(repository: Path) -> None:
    arguments = ("assets/a.yaml", "[id=greeting].payload.mode", "rw", "-m", "worse")
    result = run(*arguments, code=1)
    assert "error[GEN007]" in result.stderr
    assert "assets/a.yaml:7:5" in result.stderr
    assert "nothing was written" in result.stderr
    assert result.stdout == ""
    assert subjects(repository) == ["first"]
    run(*arguments, "--no-check")
    assert subjects(repository) == ["worse", "first"]


def test_a_dry_run_shows_the_diff_alone_and_needs_no_reason(repository: Path) -> None:
    result = run("assets/a.yaml", "[id=greeting].payload.content", "x", "--dry-run")
    assert result.stdout.startswith("--- a/assets/a.yaml\n+++ b/assets/a.yaml\n")
    assert subjects(repository) == ["first"]
    run("assets/a.yaml", "[id=greeting].payload.content", "x", code=2)


def test_programs_get_json(repository: Path) -> None:
    result = run("assets/a.yaml", "[id=greeting].payload.content", "x", "-m", "y", "-o", "json")
    document = json.loads(result.stdout)
    assert document["commit"] == git(repository, "rev-parse", "HEAD").strip()
    assert document["changed"] is True
    again = json.loads(
        run("assets/a.yaml", "[id=greeting].payload.content", "x", "-m", "y", "-o", "json").stdout
    )
    assert (again["commit"], again["changed"], again["diff"]) == (None, False, "")


def test_keys_are_added_and_deleted(repository: Path) -> None:
    run("assets/a.yaml", "[id=greeting].addons", "{lehr.Labels: {labels: {team: web}}}", "--add", "-m", "a")
    run("assets/a.yaml", "[id=greeting].payload.mode", "--delete", "-m", "b")
    text = (repository / "intent" / "assets" / "a.yaml").read_text()
    assert text.endswith("    content: hello\n  addons: {lehr.Labels: {labels: {team: web}}}\n")


def test_what_is_expected_must_be_there(repository: Path) -> None:
    result = run(
        "assets/a.yaml", "[id=greeting].payload.content", "x", "--expect", "hallo", "-m", "y", code=1
    )
    assert "error[EDT005]" in result.stderr
    run("assets/a.yaml", "[id=greeting].payload.content", "x", "--expect", "hello", "-m", "y")


def test_a_text_need_not_be_yaml(repository: Path) -> None:
    run("assets/a.yaml", "[id=greeting].payload.content", "a: [b", "--text", "-m", "y")
    assert '    content: "a: [b"\n' in (repository / "intent" / "assets" / "a.yaml").read_text()
    run("assets/a.yaml", "[id=greeting].payload.content", "a: [b", "-m", "y", code=2)


def test_a_negative_number_is_no_option() -> None:
    result = run("assets/a.yaml", "[id=greeting].payload.mode", "-1", "--retype", "--no-check", "--dry-run")
    assert "+    mode: -1\n" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--add", "--delete"),
        (),
        ("1", "--delete"),
        ("1", "--add", "--expect", "2"),
    ],
)
def test_a_call_that_makes_no_sense_ends_with_2(arguments: tuple[str, ...]) -> None:
    run("assets/a.yaml", "x", "-m", "y", *arguments, code=2)


def test_another_repository_is_named_with_in(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "central.git")
    where = ("--in", f"file://{tmp_path}/central.git", "--author", "Bob <bob@example.org>")
    run("intent/assets/a.yaml", "[id=greeting].payload.content", "x", "-m", "from afar", *where)
    assert subjects(tmp_path / "central.git") == ["from afar", "first"]
    assert subjects(repository) == ["first"]
    inside = ("--in", f"file://{tmp_path}/central.git#main:intent", "--author", "Bob <bob@example.org>")
    result = run("assets/a.yaml", "[id=greeting].payload.mode", "rw", "-m", "worse", *inside, code=1)
    assert "error[GEN007]" in result.stderr


def test_a_plain_directory_is_edited_in_place(repository: Path) -> None:
    (repository / ".git").rename(repository / "away")
    path = repository / "intent" / "assets" / "a.yaml"
    path.chmod(0o640)
    result = run("assets/a.yaml", "[id=greeting].payload.content", "x")
    assert "changed" in result.stderr
    assert path.read_text() == ASSETS.replace("hello", "x")
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(item.name for item in path.parent.iterdir()) == ["a.yaml"]


def test_a_file_that_is_not_committed_can_be_edited_in_place(repository: Path) -> None:
    (repository / "intent" / "assets" / "b.yaml").write_text("[]\n")
    assert "error[EDT009]" in run("assets/b.yaml", "-", "1", "--add", "-m", "y", code=1).stderr
    run("assets/b.yaml", "-", "1", "--add", "--kind", "directory", "--no-check")
    assert (repository / "intent" / "assets" / "b.yaml").read_text() == "[1]\n"

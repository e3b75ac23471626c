"""`lehr get incarnations`: who committed them, and the newest commit if it was refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli

MOTD = "- {id: motd, type: lehr.File, payload: {path: motd, content: TEXT}}\n"


def lehr(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done.stdout


def commit(folder: Path, content: str, subject: str) -> None:
    (folder / "assets").mkdir(exist_ok=True)
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(content)
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", folder, "add", "-A"], check=True)
    subprocess.run(["git", "-C", folder, *who, "commit", "-q", "-m", subject], check=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two incarnations."""
    folder = tmp_path / "work"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    monkeypatch.setenv("LEHR_STATE", str(tmp_path / "state"))
    for content, subject in (("one", "Say one"), ("two", "Say two\n\nBecause.")):
        commit(folder, MOTD.replace("TEXT", content), subject)
        lehr("run", str(folder), "--once")
    return folder


def test_each_incarnation_has_the_author_and_the_subject_of_its_commit(folder: Path) -> None:
    second, first = lehr("get", "incarnations").splitlines()[1:]
    assert second.startswith("hello@2")
    assert second.endswith("Ada     Say two")
    assert first.endswith("Ada     Say one")
    assert "Ada <ada@example.org>" in lehr("get", "incarnations", "-o", "wide")
    [document] = json.loads(lehr("get", "incarnations", "--limit", "1", "-o", "json"))
    assert (document["name"], document["commit"]["subject"]) == ("hello@2", "Say two")


def test_a_refused_commit_is_shown_first_until_another_one_is_published(folder: Path) -> None:
    commit(folder, MOTD.replace("content: TEXT", "contnt: x"), "Break it")
    lehr("run", str(folder), "--once", code=1)
    refused, second = lehr("get", "incarnations").splitlines()[1:3]
    assert refused.startswith("refused (GEN007)")
    assert refused.endswith("Ada     Break it")
    assert second.startswith("hello@2")
    assert "contnt" in lehr("get", "incarnations", "-o", "wide").splitlines()[1]
    assert lehr("get", "incarnations", "-o", "name").splitlines() == ["hello@2", "hello@1"]
    commit(folder, MOTD.replace("TEXT", "three"), "Say three")
    lehr("run", str(folder), "--once")
    assert "refused" not in lehr("get", "incarnations")

"""`lehr init`, with real files, git and generation."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli.init import init
from lehr.generate.engine.client import GenerationWorker
from lehr.sdk.generation import Generated
from lehr.sources import open_source
from lehr.templates import FOLDER, TEMPLATES, write_template

NAMES = ["basic", "hello", "web-service", "database"]


@pytest.fixture(autouse=True)
def no_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A person who has never told git a name."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "GIT_DIR", "GIT_WORK_TREE", "EMAIL"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(init, arguments)


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-c", "safe.directory=*", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def generated(directory: Path, state: Path) -> Generated:
    async def generate() -> Generated:
        worker = GenerationWorker("lehr.wiring:registry", Threads("contents", 1))
        try:
            return await worker.generate(open_source(str(directory), state, clock=SystemClock()).newest())
        finally:
            await worker.close()

    return asyncio.run(generate())


@pytest.mark.parametrize("template", NAMES)
def test_every_template_declares_assets_without_a_single_warning(template: str, tmp_path: Path) -> None:
    assert run(str(tmp_path / "shop"), "--template", template).exit_code == 0
    made = generated(tmp_path / "shop", tmp_path / "state")
    assert not made.diagnostics
    assert made.partition == "shop"
    assert len(made.assets) >= 2


@pytest.mark.parametrize("template", NAMES)
def test_everything_that_is_made_is_in_the_first_commit(template: str, tmp_path: Path) -> None:
    assert run(str(tmp_path / "new" / "x"), "--template", template).exit_code == 0
    directory = tmp_path / "new" / "x"
    assert set(git(directory, "ls-files").split()) == files(directory).keys()
    assert git(directory, "status", "--porcelain") == ""
    assert git(directory, "log", "--format=%s").count("\n") == 1


def test_without_git_there_are_files_alone(tmp_path: Path) -> None:
    result = run(str(tmp_path / "x"), "--no-git")
    assert result.exit_code == 0
    assert not (tmp_path / "x" / ".git").exists()
    assert (tmp_path / "x" / "lehr.yaml").exists()


def test_what_exists_is_never_overwritten_and_nothing_is_half_done(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "hello.yaml").write_text("mine\n")
    result = run(str(tmp_path))
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "CLI114"
    assert "assets/hello.yaml" in str(result.exception)
    assert files(tmp_path) == {"assets/hello.yaml": b"mine\n"}


def test_a_repository_that_exists_gets_files_and_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("mine\n")
    result = run(str(tmp_path))
    assert result.exit_code == 0
    assert "Commit the new files first" in result.output
    assert "Add /production/ to your" in result.output
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert git(tmp_path, "log", "--all", "--format=%H") == ""


def test_a_refusal_of_git_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/proc/nothing")
    result = run(str(tmp_path / "x"))
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "CLI116"
    assert "git init" in str(result.exception)


def test_a_name_that_cannot_name_a_partition_leaves_the_templates(tmp_path: Path) -> None:
    write_template("basic", tmp_path / "My_Shop")
    assert "partition: hello\n" in (tmp_path / "My_Shop" / "lehr.yaml").read_text()


def test_what_running_leaves_in_a_template_is_not_copied(tmp_path: Path) -> None:
    write_template("hello", tmp_path / "x")
    expected = set(git(FOLDER / "hello", "ls-files", "--others", "--cached", "--exclude-standard").split())
    assert files(tmp_path / "x").keys() == expected


def test_every_template_is_listed_with_what_it_is() -> None:
    others = {"__pycache__", "plugin"}  # the latter holds those of `lehr plugin new`
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} - others == TEMPLATES.keys()
    listed = json.loads(run("--list-templates", "-o", "json").stdout)
    assert [item["name"] for item in listed] == list(TEMPLATES)
    assert all(item["about"] and item["change"] for item in listed)
    assert run("--list-templates", "-o", "name").stdout.split() == list(TEMPLATES)


def test_where_to_make_a_workspace_must_be_said() -> None:
    result = run("--template", "hello")
    assert result.exit_code == 2
    assert "Name the DIRECTORY" in result.output


@pytest.mark.parametrize("template", TEMPLATES)
def test_where_people_go_on_is_in_the_template_and_every_file_of_intent_is_commented(
    template: str, tmp_path: Path
) -> None:
    write_template(template, tmp_path / "x")
    assert (tmp_path / "x" / TEMPLATES[template].change).exists()
    for path in (tmp_path / "x").rglob("*"):
        if path.suffix == ".yaml":
            assert "# " in path.read_text(), path
        if path.suffix == ".py":
            assert path.read_text().startswith('"""'), path

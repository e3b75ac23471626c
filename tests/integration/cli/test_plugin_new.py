"""`lehr plugin new`: plugins that work as they are written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.templates.plugin_template import LANGUAGES, language_of
from tests.golang import require_go
from tests.node import node_path, with_modules

NAME = "short-link"


def lehr(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def new(language: str, folder: Path, *options: str) -> Result:
    return lehr("plugin", "new", NAME, "--language", language, "--directory", str(folder), *options)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_files_are_of_the_new_plugin(language: str, tmp_path: Path) -> None:
    done = new(language, tmp_path / "new")
    assert done.exit_code == 0, done.output
    written = files(tmp_path / "new")
    assert {"README.md", "fixtures/test.yaml", "types/short-link.json"} <= {*written}
    for path, text in written.items():
        assert "line-plugin" not in path + text, path
        assert "example.Line" not in text, path
    how = language_of(language, NAME)
    assert (tmp_path / "new" / how.file).is_file()
    assert f"lehr plugin test {how.run} --fixtures fixtures" in done.output
    assert f"lehr plugin test {how.run} --fixtures fixtures" in written["README.md"]
    assert str(tmp_path / "new") in done.output


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_workspace_can_declare_assets_of_its_type(language: str, tmp_path: Path) -> None:
    new(language, tmp_path / "new", "--type", "shop.Line")
    (tmp_path / "types").mkdir()
    (tmp_path / "assets").mkdir()
    shutil.copy(tmp_path / "new/types/short-link.json", tmp_path / "types")
    (tmp_path / "lehr.yaml").write_text("partition: test\n")
    asset = yaml.safe_load((tmp_path / "new/fixtures/test.yaml").read_text())["asset"]
    assert asset["type"] == "shop.Line"
    asset["payload"]["path"] = asset["payload"]["path"].replace("${PRODUCTION}", str(tmp_path))
    (tmp_path / "assets/a.yaml").write_text(yaml.safe_dump(asset))
    checked = lehr("validate", str(tmp_path))
    assert checked.exit_code == 0, checked.output


def test_a_folder_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert new("python", tmp_path / "empty").exit_code == 0
    before = files(tmp_path)
    for folder in (tmp_path, tmp_path / "empty"):
        refused = new("python", folder)
        assert isinstance(refused.exception, LehrError)
        assert refused.exception.code == "CLI203"
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["Short", "a/b", "../x", "a--b", "-a", "1a", "a" * 40, ""])
def test_names_that_programs_and_packages_cannot_have_are_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    refused = lehr("plugin", "new", "--language", "python", "--directory", str(folder), "--", name)
    assert isinstance(refused.exception, LehrError)
    assert refused.exception.code == "CLI201"
    assert not folder.exists()


@pytest.mark.parametrize("name", ["Link", "lehr.Link", "a..b", "a.b c", ""])
def test_types_that_cannot_be_declared_are_refused(name: str, tmp_path: Path) -> None:
    refused = new("python", tmp_path / "new", "--type", name)
    assert isinstance(refused.exception, LehrError)
    assert refused.exception.code == "CLI202"


def test_started_by_a_person_it_explains_itself(tmp_path: Path) -> None:
    new("python", tmp_path / "new")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "plugin.py"]
    done = subprocess.run(
        command, cwd=tmp_path / "new", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"{NAME} is a plugin of Lehr")


def prepared(language: str, folder: Path) -> tuple[str, dict[str, str]]:
    """A command that runs the plugin in `folder`, and the variables that it needs."""
    run = language_of(language, NAME).run
    if language == "python":
        paths = os.pathsep.join(path for path in sys.path if path)
        return run.replace("python3", sys.executable), {"PYTHONPATH": paths}
    if language == "node":
        with_modules(folder)
        return run, {"PATH": node_path()}
    require_go()
    done = subprocess.run(
        ["sh", "-c", language_of(language, NAME).prepare],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return run, {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_new_plugin_keeps_all_rules(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new"
    new(language, folder)
    command, variables = prepared(language, folder)
    with (folder / "fixtures/test.yaml").open("a") as fixtures:
        fixtures.write(yaml.safe_dump({"environment": variables}))
    monkeypatch.chdir(folder)
    done = lehr("plugin", "test", "--fixtures", "fixtures", "--", *command.split())
    assert done.exit_code == 0, done.output
    assert "0 broken" in done.output

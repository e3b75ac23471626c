"""Validators of a plugin in a process of its own, for everybody who uses them: validate, plan and run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_command_line import Workspace

PLUGIN = Path(__file__).parents[1] / "integration/plugins/remote/validator_plugin.py"
ASSETS = """\
id: web
type: shop.Site
payload:
  owner: mira
  name: NAME
---
id: greeting
type: lehr.File
payload: {path: out/greeting.txt, content: "hello\\n"}
"""
PLACE = "assets/all.yaml:5:3"


class Shop(Workspace):
    """A workspace with sites, whose names a plugin judges."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "types").mkdir()
        (folder / "types/site.yaml").write_text("name: shop.Site\nschema: {type: object}\n")
        (folder / "assets/files.yaml").unlink()
        self.name("web")

    def name(self, name: str) -> None:
        (self.folder / "assets/all.yaml").write_text(ASSETS.replace("NAME", name))

    def plugins(self, *arguments: str, **served: object) -> str:
        """The option for a file of plugins with one of this fault."""
        file = self.folder.parent / "plugins.yaml"
        paths = os.pathsep.join(path for path in sys.path if path)
        definition = {
            "command": [sys.executable, str(PLUGIN), *arguments],
            "environment": {"PYTHONPATH": paths, "MARK": str(self.folder.parent / "mark")},
            "validators": [{"name": "naming", "types": ["shop.Site"], **served}],
        }
        file.write_text(json.dumps({"plugins": {"house": definition}}))
        return f"--plugins={file}"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def test_a_finding_is_shown_with_file_line_and_column(shop: Shop) -> None:
    plugins = shop.plugins()
    done = shop.lehr("validate", plugins)
    assert "is valid: 3 assets, judged by naming" in done.stderr
    shop.lehr("run", "--once", plugins)
    shop.name("Web")
    assert "is valid" in shop.lehr("validate").stderr  # nobody asks the plugin
    shown = shop.lehr("validate", plugins, code=1).stdout
    assert f"error[naming/N001]: the name Web has capital letters\n  --> {PLACE}\n" in shown
    assert " 5 |   name: Web\n   |   ^\n" in shown
    [problem] = shop.json("validate", plugins, code=1)
    assert problem["at"] == {"file": "assets/all.yaml", "line": 5, "column": 3}
    assert PLACE in shop.lehr("plan", plugins, code=1).stderr
    refused = shop.lehr("run", "--once", plugins, code=1).stderr
    assert PLACE in refused
    assert "naming/N001" in refused
    assert "shop@1 stays in force" in shop.lehr("why", "--all").stdout
    shop.name("blog")
    assert "shop@2: production is as intended" in shop.lehr("run", "--once", plugins).stderr


def test_the_variable_names_the_file_and_a_note_says_who_was_not_asked(shop: Shop) -> None:
    plugins = shop.plugins()
    assert "not asked" not in shop.lehr("validate").stderr
    shop.lehr("run", "--once", plugins)
    file = plugins.partition("=")[2]
    for command in (("validate",), ("plan",)):
        told = shop.lehr(*command).stderr
        assert "were not asked: naming (plugin house)" in told
        assert "LEHR_PLUGINS" in told
        assert "not asked" not in shop.lehr(*command, LEHR_PLUGINS=file).stderr
    shop.name("Web")
    shop.lehr("validate", code=1, LEHR_PLUGINS=file)


def test_without_an_answer_nothing_is_valid_planned_or_published(shop: Shop) -> None:
    plugins = shop.plugins("dies")
    shown = shop.lehr("validate", plugins, code=1).stdout
    assert "error[VAL080]: the validator `naming` has not judged the change" in shown
    assert "exit code 3: out of paper" in shown
    assert "VAL080" in shop.lehr("plan", plugins, code=1).stderr
    assert "VAL080" in shop.lehr("run", "--once", plugins, code=1).stderr
    assert not (shop.folder / "out").exists()
    plugins = shop.plugins("dies", when_down="warn")
    assert "warning[VAL080]" in shop.lehr("validate", plugins).stdout
    assert "warning[VAL080]" in shop.lehr("plan", plugins).stderr
    shop.lehr("run", "--once", plugins)
    assert shop.production == "hello\n"


@pytest.fixture
def running(shop: Shop) -> Iterator[subprocess.Popen[bytes]]:
    """A `lehr run` with a plugin that answers nonsense for now."""
    shop.lehr("run", "--once", shop.plugins())
    plugins = shop.plugins("until-marked")
    shop.name("blog")
    with (shop.folder.parent / "run.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lehr", "run", "--poll", "1s", plugins], cwd=shop.folder, stderr=log
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def wait(shop: Shop, *arguments: str, until: str) -> str:
    for _ in range(120):
        shown = shop.lehr(*arguments, code=0).stdout
        if until in shown:
            return shown
        time.sleep(0.5)
    raise AssertionError(f"{until!r} is not in {shown}\n{(shop.folder.parent / 'run.log').read_text()}")


def test_a_running_lehr_heals_and_publishes_once_the_plugin_answers(
    shop: Shop, running: subprocess.Popen[bytes]
) -> None:
    told = wait(shop, "why", "--all", until="has not judged the change")
    assert "an answer without a result" in told
    (shop.folder / "out/greeting.txt").unlink()
    for _ in range(120):
        if (shop.folder / "out/greeting.txt").exists():
            break
        time.sleep(0.5)
    assert shop.production == "hello\n"
    listed = shop.lehr("plugin", "list").stdout.splitlines()
    header, row = listed[0], listed[1]
    assert row[header.index("VALIDATORS") :].startswith("naming")
    assert [item["validators"] for item in shop.json("plugin", "list")] == [["naming"]]
    (shop.folder.parent / "mark").touch()
    wait(shop, "get", "incarnations", until="shop@2")
    assert "/payload/name" in shop.lehr("diff", "previous", "latest").stdout

"""`lehr why --if` and `--unblock`: what commands would change, with nothing written or pushed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.model.asset import Partition
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector
from lehr.model.writes import SetControl
from lehr.store.sqlite import SqliteStore

ASSETS = """\
id: page
type: lehr.File
payload: {path: out/page, content: "new\\n"}
---
id: hours
type: lehr.Calendar
payload:
  select: {ids: [page]}
  timezone: UTC
  closed: [{from: "2020-01-01T00:00", to: "2099-01-01T00:00", reason: stocktaking}]
  override: true
---
id: strict
type: lehr.Calendar
payload:
  select: {ids: [other]}
  timezone: UTC
  closed: [{from: "2020-01-01T00:00", to: "2099-01-01T00:00", reason: never}]
---
id: other
type: lehr.File
payload: {path: out/other, content: "new\\n"}
---
id: same
type: lehr.File
payload: {path: out/same, content: "same\\n"}
---
id: broken
type: lehr.File
payload: {path: out/folder, content: "new\\n"}
"""
OVERRIDE = "lehr override page --check hours --reason TEXT"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`page` is frozen and outside its hours, `other` waits for a check that cannot be overridden."""
    path = tmp_path_factory.mktemp("shop")
    (path / "assets").mkdir()
    (path / "out" / "folder").mkdir(parents=True)
    (path / "lehr.yaml").write_text("partition: shop\n")
    (path / "assets" / "all.yaml").write_text(ASSETS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        CliRunner().invoke(cli, ["run", "--once", "--state", "state"])
    assert (path / "out" / "same").exists()
    store = SqliteStore(path / "state" / "state.sqlite")
    store.commit([SetControl(freeze("page"))])
    store.close()
    return path


@pytest.fixture
def folder(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(prepared)
    yield prepared
    assert not (prepared / "out" / "page").exists()


def freeze(selector: str) -> Control:
    return Control(
        id="f1",
        kind=ControlKind.FREEZE,
        partition=Partition("shop"),
        selector=parse_selector(selector),
        reason="market day",
        actor="ana",
        at=1.0,
    )


def why(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["why", *arguments, "--state", "state"])


def document(*arguments: str) -> Any:
    done = why(*arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_one_command_may_not_be_enough(folder: Path) -> None:
    lines = why("page", "--if", "unfreeze").stdout.splitlines()
    assert lines[0].startswith("● page would wait: calendar/hours: hours is closed until")
    assert lines[1] == "  if         `lehr unfreeze id=page`"
    assert any(line.startswith("    waits   calendar/hours") for line in lines)
    assert not [line for line in lines if "freeze/f1" in line]


def test_several_commands_can_be_supposed(folder: Path) -> None:
    lines = why("page", "--if", "unfreeze all", "--if", "override hours").stdout.splitlines()
    assert lines[0] == "● page would be pushed"
    assert lines[1] == f"  if         `lehr unfreeze all`, `{OVERRIDE}`"
    found = document("page", "--if", "unfreeze all", "--if", "override hours")
    assert (found["unblocked"], found["commands"]) == (True, ["lehr unfreeze all", OVERRIDE])
    assert found["planned"]["result"] == "will be pushed"


def test_the_fewest_commands_are_found(folder: Path) -> None:
    lines = why("page", "--unblock").stdout.splitlines()
    assert lines[0].startswith("● page waits: freeze/f1: frozen by ana: market day; calendar/hours")
    assert lines[1:5] == [
        "  unblock    run all of these; fewer are not enough",
        "    lehr unfreeze id=page",
        f"    {OVERRIDE}",
        "  then       it would be pushed",
    ]
    found = document("page", "--unblock")
    assert found["now"]["unblocked"] is False
    assert found["then"]["commands"] == ["lehr unfreeze id=page", OVERRIDE]
    assert (found["then"]["unblocked"], found["otherwise"], found["complete"]) == (True, None, True)


def test_where_no_command_helps_it_says_so(folder: Path) -> None:
    lines = why("other", "--unblock").stdout.splitlines()
    assert lines[0].startswith("● other waits: calendar/strict")
    assert "  unblock    no commands unblock it" in lines
    assert any(line.startswith("  then       it would wait: calendar/strict") for line in lines)
    found = document("other", "--unblock")
    assert (found["then"], found["complete"]) == (None, True)
    assert found["otherwise"]["unblocked"] is False


def test_a_push_that_has_failed_is_retried_with_a_warning(folder: Path) -> None:
    lines = why("broken", "--unblock").stdout.splitlines()
    assert lines[0].startswith("● broken is not pushed: ")
    assert lines[1:3] == ["  unblock    run", "    lehr retry broken"]
    assert lines[3].startswith("  note       its last push failed")
    assert (folder / "out" / "folder").is_dir()


def test_where_nothing_blocks_it_says_so(folder: Path) -> None:
    lines = why("same", "--unblock").stdout.splitlines()
    assert lines == [
        "● same would be as intended, without a push",
        "  unblock    nothing blocks it",
    ]
    found = document("same", "--unblock")
    assert found["now"] == found["then"]


def test_drift_that_nothing_blocks_would_be_pushed(folder: Path) -> None:
    (folder / "out" / "same").write_text("changed by hand\n")
    lines = why("same", "--unblock").stdout.splitlines()
    assert lines[0] == "● same would be pushed"
    assert (folder / "out" / "same").read_text() == "changed by hand\n"
    (folder / "out" / "same").write_text("same\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("page", "--if", "freeze all"), "DRY101"),
        (("page", "--if", "retry same"), "DRY102"),
        (("page", "--if", "unpin"), "DRY103"),
        (("hours", "--unblock"), "DRY104"),
        (("page", "--if", "override --check strict"), "CTL115"),
        (("page", "--if", "override --check hour"), "CTL114"),
        (("page", "--if", "rollout promote"), "CTL141"),
        (("page", "--if", "rollout release"), "CTL147"),
        (("nothing", "--unblock"), "QRY121"),
    ],
)
def test_what_cannot_be_supposed_is_refused(folder: Path, arguments: tuple[str, ...], code: str) -> None:
    done = why(*arguments)
    assert isinstance(done.exception, LehrError)
    assert done.exception.code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("--all", "--unblock"),
        ("--all", "--if", "retry"),
        ("page", "--unblock", "--if", "retry"),
        ("page", "--unblock", "--at", "5m"),
        ("page", "--if", "retry", "--at", "5m"),
        ("--unblock",),
    ],
)
def test_one_question_is_asked_at_a_time(folder: Path, arguments: tuple[str, ...]) -> None:
    assert why(*arguments).exit_code == 2


def test_nothing_is_written(folder: Path) -> None:
    def rows() -> list[str]:
        dump = ["python3", "-c", "import sqlite3; print(*sqlite3.connect('state/state.sqlite').iterdump())"]
        return subprocess.run(dump, check=True, capture_output=True, text=True).stdout.splitlines()

    before = rows()
    why("page", "--unblock")
    why("page", "--if", "unfreeze")
    assert rows() == before

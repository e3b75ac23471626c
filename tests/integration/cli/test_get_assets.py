"""`lehr get assets`: filters, fields, pages."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.main import cli

ASSETS = """\
- {id: web/motd, type: lehr.File, payload: {path: etc/motd, content: hello, mode: "0600"}}
- {id: web/conf, type: lehr.File, payload: {path: etc/conf, content: "a=1"}}
"""
SECRET = "type == 'lehr.File' && payload.mode == '0600'"


def lehr(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("hello")
    (folder / "assets").mkdir()
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(ASSETS)
    lehr("run", str(folder), "--once")
    return str(folder)


def names(done: Result) -> list[str]:
    return done.stdout.split()


def test_a_filter_selects_among_what_is_in_force(state: str) -> None:
    assert names(lehr("get", "assets", "--filter", SECRET, "-o", "name", "--state", state)) == ["web/motd"]
    both = lehr(
        "get", "assets", "web/*", "--filter", "payload.path == 'etc/conf'", "-o", "name", "--state", state
    )
    assert names(both) == ["web/conf"]


def test_assets_without_an_answer_are_told_of(state: str) -> None:
    done = lehr("get", "assets", "--filter", "payload.none == 1", "--state", state)
    assert "2 assets omitted" in done.stderr
    assert "no such key: none" in done.stderr


def test_how_a_filter_is_answered_can_be_seen(state: str) -> None:
    plan = json.loads(
        lehr("get", "assets", "--filter", SECRET, "--explain-query", "-o", "json", "--state", state).stdout
    )
    assert (plan["by_index"], plan["fast"]) == (["type is one of lehr.File"], True)
    told = lehr("get", "assets", "--filter", "id.matches('w')", "--explain-query", "--state", state).stdout
    assert "every asset is checked" in told
    assert "(slow)" in told


def test_fields_are_picked(state: str) -> None:
    done = lehr("get", "assets", "web/motd", "--fields", "payload.path", "-o", "json", "--state", state)
    assert json.loads(done.stdout) == [
        {"id": "web/motd", "type": "lehr.File", "payload": {"path": "etc/motd"}}
    ]
    table = lehr("get", "assets", "--fields", "payload.path,payload.none", "--state", state).stdout
    assert re.search(r"^web/motd +etc/motd +-$", table, re.MULTILINE)


def test_pages_go_on_at_their_cursors(state: str) -> None:
    first = lehr("get", "assets", "--incarnation", "1", "--limit", "1", "-o", "name", "--state", state)
    cursor = first.stderr.split()[-1]
    rest = lehr("get", "assets", "--cursor", cursor, "-o", "name", "--state", state)
    assert names(first) + names(rest) == ["web/conf", "web/motd"]


@pytest.mark.parametrize(
    "options",
    [
        ("--explain-query",),
        ("--status", "Waiting", "--fields", "payload"),
        ("--cursor", "x", "--incarnation", "1"),
        ("--incarnation", ""),
        ("--fields", ""),
        ("--cursor", "", "--fields", "payload"),
        ("--watch", "--limit", "1"),
        ("--watch", "--all"),
    ],
)
def test_options_that_do_not_go_together_are_refused(state: str, options: tuple[str, ...]) -> None:
    assert "--" in lehr("get", "assets", *options, "--state", state, code=2).stderr


def test_all_fields_that_there_are_not_are_told_at_once(state: str) -> None:
    refused = lehr("get", "assets", "--fields", "none,payload,oirgin", "--state", state, code=1).exception
    assert "'none', 'oirgin'" in str(refused)


@pytest.mark.parametrize("at", [(), ("--incarnation", "1")])
def test_referrers_of_what_never_was_are_refused(state: str, at: tuple[str, ...]) -> None:
    refused = lehr("get", "referrers", "web/mtod", *at, "--state", state, code=1).exception
    assert "web/motd" in str(refused)


def test_a_status_that_there_is_not_is_refused_and_not_answered_with_nothing(state: str) -> None:
    assert names(lehr("get", "assets", "--status", "converged", "-o", "name", "--state", state)) != []
    assert lehr("get", "assets", "--status", "Stalled", "--state", state).stderr == "no assets\n"
    refused = lehr("get", "assets", "--status", "Staled", "--state", state, code=1).exception
    assert isinstance(refused, LehrError)
    assert "'Staled'" in refused.what
    assert all(status in refused.fix for status in ("Stalled", "Waiting", "Inert", "NoTurnYet"))


def test_the_page_on_queries_shows_what_is_shown(state: str) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/how-to/query.md").read_text()
    shown = page.partition("--explain-query\n")[2].partition("\n\n")[0]
    told = lehr("get", "assets", "--filter", SECRET, "--explain-query", "--state", state).stdout
    assert [line.strip() for line in shown.splitlines()] == told.splitlines()
    for line in re.findall(r"^    lehr (get assets .*)$", page, re.MULTILINE):
        if "--incarnation" not in line and "--cursor" not in line:
            lehr(*shlex.split(line), "--state", state)

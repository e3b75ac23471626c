"""`lehr help`: topics from the pages of docs, codes, commands, and what is like them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.help import TOPICS, topic_text
from lehr.cli.main import SECTIONS, cli
from lehr.model.decision import Status
from lehr.query.asset_rows import INERT, NO_TURN

ROOT = Path(__file__).resolve().parents[3]


def lehr(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["help", *arguments])


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_shows_its_page(name: str) -> None:
    done = lehr(name)
    assert done.exit_code == 0
    assert done.stdout.strip() == topic_text(TOPICS[name]).strip()
    assert len(done.stdout.splitlines()) > 5


def test_no_topic_has_the_name_of_a_command() -> None:
    assert not TOPICS.keys() & {name for section in SECTIONS.values() for name in section}


def test_the_pages_are_part_of_the_package() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for topic in TOPICS.values():
        folder = f"docs/{topic.page.partition('/')[0]}"
        assert wheel["force-include"][folder] == f"lehr/{folder}"


def test_without_a_name_commands_and_topics_are_listed() -> None:
    shown = lehr().stdout
    assert all(title in shown for title in SECTIONS)
    assert all(f"  {name} " in shown for name in TOPICS)


def test_topics_are_also_listed_alone() -> None:
    shown = lehr("topics").stdout
    assert all(f"  {name} " in shown for name in TOPICS)
    assert "Usage:" not in shown


def test_every_status_is_explained() -> None:
    shown = lehr("statuses").stdout
    assert all(f"| `{status}` |" in shown for status in (*Status, INERT, NO_TURN))


@pytest.mark.parametrize("line", ["why", "get assets", "secret edit", "get asset"])
def test_the_help_of_a_command_is_that_of_its_option(line: str) -> None:
    assert lehr(*line.split()).stdout == CliRunner().invoke(cli, [*line.split(), "--help"]).stdout


@pytest.mark.parametrize(
    ("code", "title"), [("OutsideWindow", "meaning"), ("CLI158", "message"), ("GEN002", "problem")]
)
def test_a_code_is_explained(code: str, title: str) -> None:
    assert lehr(code).stdout.partition(f"`{code}`\n")[2].startswith(f"{title}: ")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("selectros", "`lehr help selectors`"),
        ("OutsideWindw", "`lehr help OutsideWindow`"),
        ("statsu", "`lehr help status`"),
        ("apply", "`lehr run` applies it"),
        ("zzzzz", "`lehr help` lists"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(name: str, hint: str) -> None:
    done = lehr(name)
    assert done.exit_code == 2
    assert hint in done.stderr

"""Options such as --server mean the same before and after the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.main import cli

URL = "http://127.0.0.1:1"
"""Where no server answers."""


def run(line: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, line.split(), env=environment)


def code(result: Result) -> str:
    return getattr(result.exception, "code", "")


@pytest.mark.parametrize(
    "line",
    [
        f"--server {URL} get assets",
        f"get --server {URL} assets",
        f"get assets --server {URL}",
        f"--server {URL} get assets --server {URL}",
    ],
)
def test_a_server_is_named_before_or_after_the_command(line: str) -> None:
    assert code(run(line)) == "HTP107"


@pytest.mark.parametrize("line", ["--state {0} -o json status", "status --state {0} -o json"])
def test_so_are_the_state_and_the_format(line: str, tmp_path: Path) -> None:
    chosen: dict[str, str] = {}
    result = CliRunner().invoke(cli, line.format(tmp_path).split(), obj=chosen)
    assert str(tmp_path) in str(result.exception)
    assert chosen == {"form": "json"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"--server {URL} status --server {URL}1", f"{URL} before the command, but {URL}1 after it"),
        ("--partition a get --partition b assets", "--partition is b in one place, and a in another"),
        ("-o json status -o yaml", "--output is json before the command, but yaml after it"),
        (f"status --server {URL} --state .", "--server and --state cannot be combined"),
        (f"--server {URL} --store x status", "--server and --store cannot be combined"),
        ("--partition x version", "`cli version` does not take --partition"),
        ("-o xml status", "'xml' is not one of"),
    ],
)
def test_a_conflict_is_reported(line: str, words: str) -> None:
    result = run(line)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_what_is_written_takes_precedence_over_the_environment(tmp_path: Path) -> None:
    assert code(run("status", LEHR_SERVER=URL)) == "HTP107"
    assert str(tmp_path) in str(run(f"status --state {tmp_path}", LEHR_SERVER=URL).exception)
    assert code(run(f"status --server {URL}", LEHR_STATE=str(tmp_path))) == "HTP107"
    assert run("version", LEHR_SERVER=URL).exit_code == 0

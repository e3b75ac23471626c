"""`lehr sim plans`: what is played, what is said of it, and how it ends."""

from __future__ import annotations

import shlex

import msgspec
import pytest
from click.testing import CliRunner, Result

from lehr.cli.sim.plans import plans
from lehr.enforce import in_force
from tests.codes import raises

CRASH = "crash after commit 17"


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(plans, [*arguments, "--jobs", "1"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_one_plan_is_played_by_its_name() -> None:
    result = call("hello", "--only", CRASH)
    assert result.exit_code == 0
    assert "hello: 1 plan played" in result.stdout
    assert "another crash leaves the same state" in result.stdout
    assert "all end as without a fault" in result.stdout


@pytest.mark.parametrize("fencing", ["compare-and-swap", "none"])
def test_plans_are_played_with_other_fencing_and_only_one_control_plane_at_a_time(fencing: str) -> None:
    result = call("hello", "--fencing", fencing, "--only", "push 1")
    assert result.exit_code == 0
    assert "two control planes at once need a provider with native fencing" in result.stdout
    stories = call("hello", "--fencing", fencing, "--only", "push 1 continues detached", "--show").stdout
    assert "alarm     none" in stories


def test_the_report_is_a_document_too() -> None:
    [report] = msgspec.json.decode(call("hello", "--only", CRASH, "-o", "json").stdout)
    assert (report["scenario"], report["played"], report["alarms"]) == ("hello", 1, [])
    assert report["states"] > 20


def test_a_story_tells_of_the_fault_and_of_what_came_of_it() -> None:
    story = call("hello", "--only", CRASH, "--show").stdout
    assert f"fault     {CRASH}" in story
    assert "process   process 2 starts" in story
    assert "alarm     none" in story


def test_a_name_that_no_plan_has_is_an_error() -> None:
    with raises("SIM101"):
        call("hello", "--only", "crush")


def test_stories_of_hundreds_are_refused() -> None:
    assert call("hello", "--show").exit_code == 2


def test_an_alarm_names_the_command_that_plays_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_force, "recover", lambda *args: [])
    result = call("hello", "--only", "crash before commit")
    assert result.exit_code == 1
    replay = next(line.strip() for line in result.stdout.splitlines() if "--only" in line)
    again = call(*shlex.split(replay)[3:])
    assert again.exit_code == 1
    assert "hello: 1 plan played" in again.stdout

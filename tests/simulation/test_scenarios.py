"""The scenarios: each plays as it is written, and shows the rule that it is named after."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.sim.play import play as play_command
from lehr.testing.sim.script_play import COMMANDS, play, read
from lehr.testing.sim.suite import scratch, silence

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_plays_as_it_is_written(path: Path) -> None:
    script, diagnostics = read(path.read_text(), path.name)
    assert not diagnostics
    with scratch() as folder, silence():
        played = play(script, folder)
    assert not played.failures
    assert not played.difference, "\n".join(played.difference)


def test_every_command_is_shown_by_a_scenario() -> None:
    scripts = [read(path.read_text(), path.name)[0] for path in SCENARIOS]
    shown = {step.command.usage for script in scripts for block in script.blocks for step in block.steps}
    assert [command.usage for command in COMMANDS if command.usage not in shown] == []


def test_every_scenario_begins_with_what_it_shows() -> None:
    assert [path.name for path in SCENARIOS if not path.read_text().startswith("# ")] == []


def lehr_sim_play(*arguments: object) -> Result:
    return CliRunner().invoke(play_command, [str(item) for item in arguments], standalone_mode=False)


def test_the_command_shows_what_differs_and_writes_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("commit\n    web: value 1\nproduction\n----\nweb = 2\n")
    done = lehr_sim_play(path)
    assert done.return_value == 1
    assert "-web = 2\n" in done.stdout
    assert "+nothing\n" in done.stdout
    assert lehr_sim_play("--rewrite", path).return_value == 0
    assert path.read_text().endswith("nothing\n")
    assert lehr_sim_play(path).return_value == 0


def test_no_rewriting_makes_an_expectation_come_true(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("commit\n    web: value 1\nsettle\nexpect web Held\n")
    done = lehr_sim_play("--rewrite", path)
    assert done.return_value == 1
    assert "web is Converged AsIntended, not Held" in done.stdout


def test_a_script_with_problems_is_not_played(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("setttle\nadvance\n")
    done = lehr_sim_play("--rewrite", path)
    assert done.return_value == 1
    assert f"{path}:1:1" in done.stdout
    assert f"{path}:2:8" in done.stdout
    assert path.read_text() == "setttle\nadvance\n"

"""The reference of scenarios has every command, argument and clause, as the program has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lehr.testing.sim.script_arguments import ARGUMENTS
from lehr.testing.sim.script_assets import CLAUSES
from lehr.testing.sim.script_commands import Command
from lehr.testing.sim.script_harness import ExtraTypes
from lehr.testing.sim.script_play import COMMANDS, Played, play, read
from lehr.testing.sim.suite import scratch, silence

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = (DOCS / "reference/scenarios.md").read_text()
HOW_TO = (DOCS / "how-to/test-a-plugin.md").read_text().partition("\n## Write a scenario ")[2]
SAID = " ".join(REFERENCE.split())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.usage))
def test_every_command_is_documented_in_its_own_words(command: Command) -> None:
    assert f"- `{command.usage}`: {command.summary}" in SAID


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_is_documented_in_its_own_words(name: str) -> None:
    assert f"- `{name}`: {ARGUMENTS[name].meaning}" in SAID


@pytest.mark.parametrize("clause", CLAUSES)
def test_every_clause_is_documented(clause: str) -> None:
    assert f"| `{clause}` |" in REFERENCE


def test_no_command_is_documented_that_does_not_exist() -> None:
    commands = REFERENCE.partition("## Commands")[2].partition("## Words in capitals")[0]
    documented = re.findall(r"^- `([^`]+)`", commands, re.MULTILINE)
    assert sorted(documented) == sorted(command.usage for command in COMMANDS)


def example(page: str, language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return str(found[0])


def played(text: str, extra: ExtraTypes | None = None) -> Played:
    script, diagnostics = read(text, "example")
    assert not diagnostics
    with scratch() as folder, silence():
        return play(script, folder, extra)


def test_the_example_plays_as_it_is_shown() -> None:
    found = played(example(REFERENCE, "text"))
    assert found.difference == []
    assert found.failures == ()


def test_types_of_ones_own_are_managed_as_it_is_shown() -> None:
    module: dict[str, Any] = {}
    exec(compile(example(HOW_TO, "python"), "queue_scenarios.py", "exec"), module)
    found = played(example(HOW_TO, "text"), module["TYPES"])
    assert found.difference == []
    assert found.failures == ()

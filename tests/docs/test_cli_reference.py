"""Every command says what it does, with examples that are calls of it; and the page says the same."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType

import click
import pytest

from lehr.cli.command import commands_of
from lehr.cli.main import SECTIONS, cli

ROOT = Path(__file__).resolve().parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "scripts" / "cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = script()
COMMANDS: list[tuple[str, click.Command]] = list(commands_of(cli))


def examples(command: click.Command) -> list[str]:
    """The calls in its help; what is said beside a call stands behind two spaces."""
    text = inspect.cleandoc(command.epilog or "").replace("\b\n", "")
    block = text.removeprefix("Examples:\n").partition("\n\n")[0]
    return [line.strip().partition("  ")[0] for line in block.splitlines()]


def _short_for(word: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(word)]


def test_the_page_is_what_the_commands_say() -> None:
    assert (ROOT / "docs" / "reference" / "cli.md").read_text() == REFERENCE.page(), (
        "write it anew with scripts/cli_reference.py"
    )


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_command_has_examples_and_every_option_is_explained(name: str, command: click.Command) -> None:
    assert command.help
    assert any(f"lehr {name.split(maxsplit=1)[0]}" in line for line in examples(command))
    options = [item for item in command.params if isinstance(item, click.Option)]
    assert not [option.name for option in options if not option.help]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_the_examples_are_calls_that_are_understood(name: str, command: click.Command) -> None:
    known = dict(COMMANDS)
    for line in examples(command):
        for call in line.replace("||", "&&").split("&&"):
            words = shlex.split(
                call.partition(" > ")[0].partition(" | ")[0].removeprefix("source <(").removesuffix(")")
            )
            if words[0] != "lehr":
                continue
            called = known[words[1]]
            arguments = words[2:]
            if isinstance(called, click.Group):
                names = called.list_commands(click.Context(called))
                [inner] = [arguments[0]] if arguments[0] in names else _short_for(arguments[0], names)
                called, arguments = known[f"{words[1]} {inner}"], arguments[1:]
            called.make_context(f"lehr {words[1]}", arguments)


def test_the_summary_of_a_command_is_one_sentence() -> None:
    for section in SECTIONS.values():
        for item in section.values():
            assert item.summary.endswith(".")
            assert len(item.summary) < 70


def test_the_readme_names_commands_that_exist() -> None:
    named = re.findall(r"(?:`|^    |^)lehr ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(named) > 10
    assert set(named) <= {name for section in SECTIONS.values() for name in section}

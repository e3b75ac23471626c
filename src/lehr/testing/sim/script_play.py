"""Playing scripts: the output of each block, and what was wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lehr.base.diagnostics import Diagnostic, Excerpt, Position
from lehr.base.errors import LehrError
from lehr.sdk.plugin import Fencing
from lehr.testing.sim import script, script_people, script_world
from lehr.testing.sim.script import Script, Step
from lehr.testing.sim.script_stage import Cast, Setting, Stage
from lehr.testing.virtual import run

COMMANDS = (*script_world.COMMANDS, *script_people.COMMANDS)
"""All commands, in the order in which the reference shows them."""

_LONGEST = 40 * 86_400.0
"""Seconds after which a script must be over."""


class Played(msgspec.Struct, frozen=True):
    """Result of a script.

    Attributes:
        outputs: the output of each block.
        failures: expectations that did not become true and rules that were broken, in order,
            whatever the expected output.
    """

    script: Script
    outputs: tuple[tuple[str, ...], ...]
    failures: tuple[str, ...]

    @property
    def difference(self) -> list[str]:
        """Lines of a diff from the expected output; empty if all was as expected."""
        return self.script.difference(self.outputs)


def read(text: str, file: str) -> tuple[Script, list[Diagnostic]]:
    """The script that `text` writes, and every problem in it."""
    found, diagnostics = script.read(text, file, COMMANDS)
    steps = [step for block in found.blocks for step in block.steps]
    diagnostics += [_late(found, step) for step in steps[1:] if step.command.word == "world"]
    return found, diagnostics


def _late(found: Script, step: Step) -> Diagnostic:
    return Diagnostic(
        code="SCN001",
        what="`world` comes too late: the world is there already",
        fix="make it the first command",
        subject=found.file,
        at=Position(found.file, step.line, 1),
        excerpt=Excerpt(step.command.word, 0),
    )


def play(found: Script, folder: Path, cast: Cast | None = None) -> Played:
    """Play a script in an empty `folder`, under virtual time.

    Args:
        cast: what it may manage besides `test.Thing`.
    """
    setting = _setting(found)
    outputs: list[tuple[str, ...]] = []
    failures: list[str] = []

    async def main() -> None:
        stage = Stage(folder, setting, cast or Cast())
        try:
            async with asyncio.timeout(_LONGEST):
                for block in found.blocks:
                    output = await _block(stage, block.steps)
                    outputs.append(tuple(output))
        finally:
            failures.extend(stage.failures)
            await stage.close()

    try:
        run(main, seed=setting.seed, start=setting.start)
    except Exception as error:  # in any case, the output until then is worth reading
        failures.append(f"the run broke: {type(error).__name__}: {error}")
    outputs += [block.expected for block in found.blocks[len(outputs) :]]
    return Played(found, tuple(outputs), tuple(failures))


async def _block(stage: Stage, steps: Sequence[Step]) -> list[str]:
    lines: list[str] = []
    for step in steps:
        try:
            said = await step.command.carry_out(stage, *step.arguments, **step.options)
            lines += [stage.named(line) for line in said]
        except LehrError as error:
            lines.append(f"refused: {error}")
        lines += stage.happened()
    return lines


def _setting(found: Script) -> Setting:
    first = found.blocks[0].steps[:1] if found.blocks else ()
    options = first[0].options if first and first[0].command.word == "world" else {}
    if "fencing" in options:
        options = {**options, "fencing": Fencing(options["fencing"])}
    return Setting(**options)

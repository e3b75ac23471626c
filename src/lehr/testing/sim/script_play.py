"""Playing scripts: the output of each block, and what was wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError
from lehr.testing.sim import script, script_people, script_releases, script_world
from lehr.testing.sim.script import Script, ScriptStep
from lehr.testing.sim.script_commands import Misuse
from lehr.testing.sim.script_harness import ExtraTypes, ScriptHarness, WorldSettings
from lehr.testing.virtual import run

COMMANDS = (*script_world.COMMANDS, *script_people.COMMANDS, *script_releases.COMMANDS)
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
    late, fix = "`world` comes too late: the world is there already", "make it the first command"
    misuses = [Misuse(step.line, 0, late, fix) for step in steps[1:] if step.command.word == "world"]
    return found, [*diagnostics, *(script.diagnostic(file, misuse) for misuse in misuses)]


def play(found: Script, folder: Path, extra: ExtraTypes | None = None) -> Played:
    """Play a script in an empty `folder`, under virtual time.

    Args:
        extra: what it may manage besides `test.Thing`.
    """
    first = [step for block in found.blocks[:1] for step in block.steps[:1]]
    settings = WorldSettings(**(first[0].options if first and first[0].command.word == "world" else {}))
    outputs: list[tuple[str, ...]] = []
    failures: list[str] = []

    async def main() -> None:
        harness = ScriptHarness(folder, settings, extra or ExtraTypes())
        try:
            async with asyncio.timeout(_LONGEST):
                for block in found.blocks:
                    output = await _block(harness, block.steps)
                    outputs.append(tuple(output))
        finally:
            failures.extend(harness.failures)
            await harness.close()

    try:
        run(main, seed=settings.seed, start=settings.start)
    except Exception as error:  # in any case, the output until then is worth reading
        failures.append(f"the run broke: {type(error).__name__}: {error}")
    outputs += [block.expected for block in found.blocks[len(outputs) :]]
    return Played(found, tuple(outputs), tuple(failures))


async def _block(harness: ScriptHarness, steps: Sequence[ScriptStep]) -> list[str]:
    lines: list[str] = []
    for step in steps:
        try:
            output = await step.command.carry_out(harness, *step.arguments, **step.options)
            lines += [harness.named(line) for line in output or ()]
        except LehrError as error:
            lines.append(f"refused: {error}")
        lines += harness.happened()
    return lines

"""Scenarios as text: commands, and below each `----` their expected output.

    # Nothing is pushed while a freeze is active.
    commit
        web: value 1
    freeze all --reason "launch"
    settle
    ----
    0:00:00.0  test@1: 1 asset, 1 changed
    ...

A command is at the start of a line; its parts are indented below. Expected output ends at the first
empty line. Lines that begin with `#` are comments. The format follows CockroachDB's `datadriven`,
its use the scripts of Oxide's reconfigurator.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Excerpt, Position
from lehr.testing.sim.script_commands import Command, Line, Misuse, Word, matched

MARK = "----"
"""Between commands and their expected output."""

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


class ScriptStep(msgspec.Struct, frozen=True):
    """One command of a script, understood.

    Attributes:
        line: its first.
        arguments, options: as its function takes them, the body last among the arguments.
    """

    line: Line
    command: Command
    arguments: tuple[Any, ...]
    options: dict[str, Any]


class Block(msgspec.Struct, frozen=True):
    """Some commands, and their expected output.

    Attributes:
        source: the lines up to `----`, unchanged.
        expected: the lines after it.
    """

    source: tuple[str, ...]
    steps: tuple[ScriptStep, ...]
    expected: tuple[str, ...]


class Script(msgspec.Struct, frozen=True):
    """A whole script.

    Attributes:
        rest: lines after the last block: comments and empty lines.
    """

    file: str
    blocks: tuple[Block, ...]
    rest: tuple[str, ...]

    @property
    def expected(self) -> list[list[str]]:
        """The expected output of each block."""
        return [list(block.expected) for block in self.blocks]

    def rewritten(self, outputs: Sequence[Sequence[str]]) -> str:
        """The text of this script with `outputs` in place of what was expected, block by block."""
        lines: list[str] = []
        for block, output in zip(self.blocks, outputs, strict=True):
            if lines and block.source[0].strip():
                lines.append("")
            lines += [*block.source, MARK, *output]
        return "\n".join([*lines, *self.rest]).rstrip("\n") + "\n"

    def difference(self, outputs: Sequence[Sequence[str]]) -> list[str]:
        """Lines of a unified diff from what is expected to `outputs`; none if they are equal."""
        if self.expected == [list(output) for output in outputs]:
            return []
        expected = self.rewritten(self.expected).splitlines()
        found = self.rewritten(outputs).splitlines()
        return list(difflib.unified_diff(expected, found, self.file, f"{self.file} as played", lineterm=""))


def read(text: str, file: str, commands: Iterable[Command]) -> tuple[Script, list[Diagnostic]]:
    """The script that `text` writes, and every problem in it. With a problem it is not whole."""
    reading = _Reading(file, tuple(commands))
    for number, line in enumerate(text.splitlines(), 1):
        reading.take(Line(number, line.rstrip()))
    return reading.done(), reading.diagnostics


class _Reading:
    """The steps read so far, line by line."""

    def __init__(self, file: str, commands: tuple[Command, ...]) -> None:
        self.file = file
        self.diagnostics: list[Diagnostic] = []
        self._commands = commands
        self._blocks: list[Block] = []
        self._source: list[str] = []
        self._steps: list[ScriptStep] = []
        self._begun = False
        self._expected: list[str] | None = None
        self._head: Line | None = None
        self._body: list[Line] = []

    def take(self, line: Line) -> None:
        if self._expected is not None and line.text:
            self._expected.append(line.text)
            return
        if self._expected is not None:
            self._end_block()
        if line.text == MARK:
            self._end_step()
            self._expected = []
            if not self._begun:
                self._report(Misuse(line, 0, "there is no command above `----`", "write a command above it"))
            return
        self._source.append(line.text)
        if line.text.startswith("#"):
            return
        if not line.text or line.text.startswith((" ", "\t")):
            self._belongs(line)
            return
        self._end_step()
        self._head = line
        self._begun = True

    def done(self) -> Script:
        self._end_step()
        if self._steps or self._expected is not None:
            self._end_block()
        return Script(self.file, tuple(self._blocks), tuple(self._source))

    def _belongs(self, line: Line) -> None:
        if self._head is not None:
            self._body.append(line)
        elif line.text:
            what = "this is indented, and belongs to no command"
            self._report(Misuse(line, line.indent, what, "begin commands at the margin"))

    def _end_step(self) -> None:
        head, body = self._head, self._body
        self._head, self._body = None, []
        if head is None:
            return
        while body and not body[-1].text:
            body.pop()
        found = matched(self._commands, head, list(words(head)), body)
        if isinstance(found, list):
            for misuse in found:
                self._report(misuse)
        else:
            command, arguments, options = found
            self._steps.append(ScriptStep(head, command, arguments, options))

    def _end_block(self) -> None:
        block = Block(tuple(self._source), tuple(self._steps), tuple(self._expected or ()))
        self._blocks.append(block)
        self._source, self._steps, self._begun, self._expected = [], [], False, None

    def _report(self, misuse: Misuse) -> None:
        self.diagnostics.append(diagnostic(self.file, misuse))


def diagnostic(file: str, misuse: Misuse) -> Diagnostic:
    """A problem of the script `file`, with its place."""
    return Diagnostic(
        code="SCN001",
        what=misuse.what,
        fix=misuse.fix,
        subject=file,
        at=Position(file, misuse.line.number, misuse.column + 1),
        excerpt=Excerpt(misuse.line.text, misuse.column),
    )


def words(line: Line) -> Iterator[Word]:
    """The words of a line; a quotation is one word."""
    for found in _WORD.finditer(line.text):
        text = found.group()
        if text.startswith('"') and text.endswith('"') and len(text) > 1:
            text = re.sub(r"\\(.)", r"\1", text[1:-1])
        yield Word(line, found.start(), text)

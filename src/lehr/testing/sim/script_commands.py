"""Commands of scripts: how each is written, and how a line is matched with that.

A usage such as `fault push ASSET FAULT [--for TIME]` is the whole grammar of a command: words in
small letters are literal (`a|b` is one of them), words in capitals are arguments whose name defines
their allowed values, brackets enclose optional parts.

All mistakes of a script are reported at once, each with its column, and several usages may begin with one
word. `click` stops at the first mistake, and does not know columns.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from lehr.testing.sim.script_arguments import ARGUMENTS


class Line(NamedTuple):
    """A line of a script, and its number from 1."""

    number: int
    text: str

    @property
    def indent(self) -> int:
        """The column of its first word."""
        return len(self.text) - len(self.text.lstrip())


class Word(NamedTuple):
    """A word of a line, and its column from 0."""

    line: Line
    column: int
    text: str


class Misuse(NamedTuple):
    """Something that is wrong in a script. `column` counts from 0."""

    line: Line
    column: int
    what: str
    fix: str


BodyReader = Callable[[Sequence[Line]], tuple[Any, list[Misuse]]]
"""Reads the indented lines below a command."""

Output = Iterable[str] | None
"""A command's output, line by line, besides what then happens."""


class Command(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        usage: see above.
        carry_out: `carry_out(harness, *arguments, **options)`, an argument that is left out being
            None. Its docstring describes it.
        body: reads what is indented below; None where nothing may be.
    """

    usage: str
    carry_out: Callable[..., Awaitable[Output]]
    body: BodyReader | None = None

    @property
    def summary(self) -> str:
        """Its description, for the reference."""
        return " ".join((self.carry_out.__doc__ or "").split())

    @property
    def word(self) -> str:
        """The word that it begins with."""
        return self.usage.split(maxsplit=1)[0]


class _Slot(NamedTuple):
    """One place in a usage."""

    text: str
    optional: bool

    @property
    def argument(self) -> bool:
        return self.text.isupper()

    @property
    def choices(self) -> list[str]:
        return self.text.split("|")


Matched = tuple[Command, tuple[Any, ...], dict[str, Any]]


def matched(
    commands: Sequence[Command], head: Line, words: list[Word], body: Sequence[Line]
) -> Matched | list[Misuse]:
    """The command on a line, with its arguments and options; or everything that is wrong with it."""
    named = [command for command in commands if command.word == words[0].text]
    if not named:
        return [_unknown(commands, words[0])]
    tries = [_Match(command, head, words[1:], body) for command in named]
    best = min(tries, key=lambda item: (len(item.misuses), -item.taken))
    return best.misuses or (best.command, tuple(best.arguments), best.options)


def _unknown(commands: Sequence[Command], word: Word) -> Misuse:
    known = sorted({command.word for command in commands})
    close = difflib.get_close_matches(word.text, known, n=1)
    fix = f"did you mean `{close[0]}`?" if close else f"known are: {', '.join(known)}"
    return Misuse(word.line, word.column, f"there is no command `{word.text}`", fix)


class _Match:
    """One line held against one usage."""

    def __init__(self, command: Command, head: Line, words: Sequence[Word], body: Sequence[Line]) -> None:
        self.command = command
        self.arguments: list[Any] = []
        self.options: dict[str, Any] = {}
        self.misuses: list[Misuse] = []
        self.taken = 0
        self._head = head
        slots, options = _slots(command.usage)
        self._places(slots, self._options(options, words))
        self._read(body)

    def _options(self, known: dict[str, _Slot], words: Sequence[Word]) -> list[Word]:
        """Take the options out of `words`, and return the others."""
        others: list[Word] = []
        left = list(words)
        while left:
            word = left.pop(0)
            if not word.text.startswith("--"):
                others.append(word)
                continue
            slot = known.get(word.text)
            if slot is None:
                self._wrong(word, f"`{self.command.word}` has no option `{word.text}`")
            if not left:
                self._wrong(word, f"`{word.text}` needs a value")
                break
            value = left.pop(0)
            if slot is not None:
                self.options[_python(word.text)] = self._value(slot.text, value)
        for name, slot in known.items():
            if not slot.optional and _python(name) not in self.options:
                self._lacks(f"{name} {slot.text}")
        return others

    def _places(self, slots: list[_Slot], words: list[Word]) -> None:
        for slot in slots:
            if words and (slot.argument or words[0].text in slot.choices):
                word = words.pop(0)
                self.taken += 1
                if slot.argument:
                    self.arguments.append(self._value(slot.text, word))
                elif len(slot.choices) > 1:
                    self.arguments.append(word.text)
            elif slot.optional:
                if slot.argument or len(slot.choices) > 1:
                    self.arguments.append(None)
            elif words:
                self._wrong(words.pop(0), f"expected {_either(slot.choices)}")
            else:
                self._lacks(slot.text)
        if words:
            self._wrong(words[0], f"`{self.command.word}` takes nothing more")

    def _value(self, name: str, word: Word) -> Any:
        try:
            return ARGUMENTS[name].read(word.text)
        except ValueError as error:
            self._wrong(word, str(error))
            return None

    def _read(self, body: Sequence[Line]) -> None:
        if self.command.body is None:
            if body:
                line = next(line for line in body if line.text)
                what = f"nothing may be written below `{self.command.word}`"
                self.misuses.append(Misuse(line, line.indent, what, "take it out"))
            return
        value, misuses = self.command.body(body)
        self.misuses += misuses
        if not body:
            self.misuses.append(Misuse(self._head, 0, f"`{self.command.word}` is empty", "indent it below"))
        self.arguments.append(value)

    def _wrong(self, word: Word, what: str) -> None:
        self.misuses.append(Misuse(word.line, word.column, what, self._usage()))

    def _lacks(self, what: str) -> None:
        end = len(self._head.text)
        self.misuses.append(Misuse(self._head, end, f"{what} is missing", self._usage()))

    def _usage(self) -> str:
        return f"write `{self.command.usage}`"


def _slots(usage: str) -> tuple[list[_Slot], dict[str, _Slot]]:
    """The places of a usage after its first word, and its options."""
    slots: list[_Slot] = []
    options: dict[str, _Slot] = {}
    for found in re.finditer(
        r"(\[?)(--[a-z-]+ )?([\w|]+)\]?", usage.split(" ", 1)[1] if " " in usage else ""
    ):
        slot = _Slot(found[3], bool(found[1]))
        if found[2]:
            options[found[2].strip()] = slot
        else:
            slots.append(slot)
    return slots, options


def _python(option: str) -> str:
    name = option.removeprefix("--").replace("-", "_")
    return "seconds" if name == "for" else name


def _either(choices: list[str]) -> str:
    return " or ".join(f"`{choice}`" for choice in choices)

"""Generator runs: from modules and arguments to answers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.errors import LehrError
from lehr.generate.engine.schedule import OVER_FILES, Generator
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox import forks
from lehr.generate.sandbox.authors import (
    Argument,
    CallOutput,
    Module,
    Types,
    call_each,
    describe,
    describe_types,
)
from lehr.generate.sandbox.confinement import FILTERED
from lehr.generate.sandbox.meter import Overrun
from lehr.model.selector import selector_of
from lehr.sdk.generator import SourceFile

_module = msgspec.msgpack.Decoder(Module)
_types = msgspec.msgpack.Decoder(Types)
_answer = msgspec.msgpack.Decoder(CallOutput)

T = TypeVar("T", Module, Types)


_TRACED = re.compile(r'^  File "([^"\n]+)", line (\d+) in ', re.MULTILINE)

_FEW = 10_000
"""Size of arguments up to which sending them is faster than forking a large process."""

Fork = Callable[[forks.Work, SandboxLimits, Clock, forks.Take], forks.RunResult]


class Run:
    """Imports modules and calls generators in forks.

    Architecture invariant: nothing that a fork does or sends can raise here.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        clock: Clock,
        run: Fork = forks.run,
        run_many: Fork = forks.run,
        describe: Fork | None = None,
    ) -> None:
        """Import and call within `limits`.

        Args:
            run: runs calls.
            describe: imports modules without being interrupted; None for `run`.
            run_many: runs calls with too many arguments to send to another process.
        """
        self._limits = limits
        self._clock = clock
        self._run = run
        self._run_many = run_many
        self._describe = describe or run
        self.interrupted = False
        """Whether a call was ended because of newer work."""

    def describe(self, path: str, code: Mapping[str, bytes]) -> Module:
        """The generators that the module at `path` declares. `code` is every module's source by path."""
        found = self._described(path, functools.partial(describe, path, code, self._limits), _module)
        if isinstance(found, Diagnostic):
            return Module((), (found,))
        return found if _credible(found, code) else Module((), (_garbled(path, Position(path)),))

    def describe_types(self, path: str, code: Mapping[str, bytes]) -> Types:
        """The types that the module at `path` declares. `code` is every such module's source by path."""
        found = self._described(path, functools.partial(describe_types, path, code, self._limits), _types)
        return Types((), (found,)) if isinstance(found, Diagnostic) else found

    def _described(self, path: str, work: forks.Work, decoder: msgspec.msgpack.Decoder[T]) -> T | Diagnostic:
        frames: list[bytes] = []
        ended = self._describe(work, self._limits, self._clock, frames.append)
        at = Position(path)
        try:
            answers = [decoder.decode(body) for body in frames]
        except (msgspec.MsgspecError, RecursionError):
            return _garbled(path, at)
        return answers[0] if answers and ended.clean else self._death(ended, path, at)

    def call(
        self,
        generator: Generator,
        arguments: Sequence[Argument],
        code: Mapping[str, bytes],
        take: Callable[[CallOutput], None],
    ) -> Diagnostic | None:
        """Call `generator` with each argument.

        Args:
            take: called with each answer as it arrives, in the order of the arguments; they are never all in
                memory at the same time.

        Returns:
            Why the first argument without an answer has none; or, if all have one, what failed at the end.
            None if nothing failed, if the last answer reports that a limit ended it, or if it was
            interrupted.
        """
        size = sum(map(_size, arguments))
        limits = replace(self._limits, calls=len(arguments), given_bytes=size)
        work = functools.partial(call_each, generator.path, generator.found.name, arguments, code, limits)
        answers = _Answers(len(arguments), take)
        run = self._run if _count(arguments) <= _FEW else self._run_many
        ended = run(work, limits, self._clock, answers)
        if ended.overran is Overrun.INTERRUPTED:
            self.interrupted = self.interrupted or answers.left > 0
            return None
        if answers.garbled:
            return _garbled(generator.name, generator.at)
        if answers.stopped or (not answers.left and ended.clean):
            return None
        return self._death(ended, generator.name, generator.at)

    def _death(self, ended: forks.RunResult, subject: str, at: Position) -> Diagnostic:
        limits = self._limits
        code, why, fix = "GEN024", _tail(ended.printed), "look for an endless loop"
        match ended.overran:
            case Overrun.TIME:
                what = f"{subject} did not answer for {limits.wall_seconds:g} seconds and was stopped"
                fix = "look for an endless loop, or for something that it waits for"
            case Overrun.PROCESSOR:
                used = f"more than {limits.cpu_seconds} seconds of processor time"
                what = f"{subject} used {used} and was stopped"
            case Overrun.PROCESSOR_IN_ALL | Overrun.TIME_IN_ALL:
                what = f"{subject} used up the {ended.overran} of its calls and was stopped"
                why = (
                    f"its calls together may use {limits.cpu_seconds} s of processor time, "
                    f"plus {limits.cpu_seconds_per_call:g} s for each call and "
                    f"{limits.cpu_seconds_per_megabyte:g} s for each megabyte read or yielded, "
                    f"and {limits.wall_seconds / limits.cpu_seconds:g} times as much elapsed time"
                )
                fix = "make it faster, or split it into several generators"
            case Overrun.ANSWER:
                code = "GEN025"
                what = f"{subject} yielded more than {limits.answer_bytes:,} bytes and was stopped"
            case Overrun.ANSWERS:
                return _garbled(subject, at)
            case _ if ended.status == forks.EXIT_NO_MEMORY:
                code, what = "GEN025", f"{subject} ran out of memory"
                fix = "look for a collection that grows without limit"
            case _ if ended.status == FILTERED:
                return _filtered(ended.printed, subject, at)
            case _:
                how = f"by signal {-ended.status}" if ended.status < 0 else f"with exit code {ended.status}"
                code, what = "GEN026", f"the process of {subject} ended {how} before it finished"
                fix = "a generator must neither exit nor crash the interpreter"
        return Diagnostic(code=code, what=what, why=why, fix=fix, subject=subject, at=at)


def _credible(module: Module, code: Mapping[str, bytes]) -> bool:
    """Whether a module's process reports only what it can know: native code could have forged the answer."""
    names = [found.name for found in module.generators]
    if len(set(names)) < len(names) or not set(module.uses) <= code.keys():
        return False
    try:
        for found in module.generators:
            if found.declaration.reads not in OVER_FILES:
                selector_of(found.declaration.of)
    except LehrError:
        return False
    return all(found.line > 0 for found in module.generators)


_ASSET_BYTES = 1000  # approximate size of an argument asset


def _size(argument: Argument) -> int:
    items = argument if isinstance(argument, list) else [argument]
    return sum(len(item.bytes()) if isinstance(item, SourceFile) else _ASSET_BYTES for item in items)


def _count(arguments: Sequence[Argument]) -> int:
    return sum(len(item) if isinstance(item, list) else 1 for item in arguments)


class _Answers:
    """Decodes a fork's answers, up to the first unreadable one.

    Attributes:
        left: number of missing answers.
        stopped: True if the last answer reports that a limit ended it.
    """

    def __init__(self, left: int, take: Callable[[CallOutput], None]) -> None:
        self.left = left
        self.stopped = False
        self.garbled = False
        self._take = take

    def __call__(self, body: bytes) -> None:
        if self.garbled or self.stopped or not self.left:
            return
        try:
            answer = _answer.decode(body)
        except (msgspec.MsgspecError, RecursionError):
            self.garbled = True
            return
        if not answer.repeatable and not errors(answer.diagnostics):  # the reason for its end would be lost
            self.garbled = True
            return
        self.left -= 1
        self.stopped = not answer.repeatable
        self._take(answer)


def _garbled(subject: str, at: Position) -> Diagnostic:
    return Diagnostic(
        code="GEN026",
        what=f"the process of {subject} sent an answer that cannot be read",
        why="something wrote to the file descriptor that answers are sent through",
        fix="a generator must not write to file descriptors",
        subject=subject,
        at=at,
    )


def _filtered(printed: bytes, subject: str, at: Position) -> Diagnostic:
    """The kernel killed it; Python wrote its traceback. Only paths of a snapshot are relative."""
    places = _TRACED.findall(printed.decode(errors="replace"))
    inner = next((Position(file, int(line)) for file, line in places if file[0] not in "/<"), at)
    return Diagnostic(
        code="GEN023",
        what=f"{subject} made a system call that generators may not make, and was stopped",
        why="native code that it calls tried to use a socket or another process",
        fix="read the data from source files, as the argument",
        subject=subject,
        at=inner,
    )


def _tail(printed: bytes) -> str:
    text = printed.decode(errors="replace").strip()
    return repr(text if len(text) <= 200 else text[:197] + "...") if text else ""

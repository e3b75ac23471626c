"""Generator runs: from modules and arguments to answers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate import sandbox
from lehr.generate.authors import Answer, Argument, Module, Types, call_each, describe, describe_types
from lehr.generate.confinement import FILTERED
from lehr.generate.protocol import SandboxLimits
from lehr.generate.schedule import Generator

_module = msgspec.msgpack.Decoder(Module)
_types = msgspec.msgpack.Decoder(Types)
_answer = msgspec.msgpack.Decoder(Answer)

T = TypeVar("T", Module, Types)


_TRACED = re.compile(r'^  File "([^"\n]+)", line (\d+) in ', re.MULTILINE)

_FEW = 10_000
"""Arguments that are sent faster than a large process forks."""

Fork = Callable[[sandbox.Work, SandboxLimits, Clock, sandbox.Take], sandbox.Ended]


class Run:
    """Imports modules and calls generators in forks.

    Architecture invariant: nothing that a fork does or says can raise here.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        clock: Clock,
        run: Fork = sandbox.run,
        run_many: Fork = sandbox.run,
        describe: Fork | None = None,
    ) -> None:
        """Import and call within `limits`.

        Args:
            run: does it.
            describe: imports modules where nothing interrupts it; None for `run`.
            run_many: does it where there are so many arguments that they are better not sent anywhere.
        """
        self._limits = limits
        self._clock = clock
        self._run = run
        self._run_many = run_many
        self._describe = describe or run
        self.interrupted = False
        """Whether a call was ended because there is something else to do."""

    def describe(self, path: str, code: Mapping[str, bytes]) -> Module:
        """What the module at `path` declares. `code` is every module's source by path."""
        found = self._described(path, functools.partial(describe, path, code, self._limits), _module)
        return Module((), (found,)) if isinstance(found, Diagnostic) else found

    def describe_types(self, path: str, code: Mapping[str, bytes]) -> Types:
        """The types that the module at `path` declares. `code` is every such module's source by path."""
        found = self._described(path, functools.partial(describe_types, path, code, self._limits), _types)
        return Types((), (found,)) if isinstance(found, Diagnostic) else found

    def _described(
        self, path: str, work: sandbox.Work, decoder: msgspec.msgpack.Decoder[T]
    ) -> T | Diagnostic:
        frames: list[bytes] = []
        ended = self._describe(work, self._limits, self._clock, frames.append)
        at = Position(path)
        try:
            answers = [decoder.decode(body) for body in frames]
        except (msgspec.MsgspecError, RecursionError):
            return _garbled(path, at)
        return answers[0] if len(answers) == 1 else self._death(ended, path, at)

    def call(
        self,
        generator: Generator,
        arguments: Sequence[Argument],
        code: Mapping[str, bytes],
        take: Callable[[Answer], None],
    ) -> Diagnostic | None:
        """Call `generator` with each argument.

        Args:
            take: called with each answer as it comes, in the order of the arguments; all are never
                in memory at a time.

        Returns:
            What kept the first argument without an answer from having one; None when all have one,
            when the last that came was ended for a limit, or when it was interrupted.
        """
        work = functools.partial(
            call_each, generator.path, generator.found.name, arguments, code, self._limits
        )
        answers = _Answers(len(arguments), take)
        run = self._run if _count(arguments) <= _FEW else self._run_many
        ended = run(work, self._limits, self._clock, answers)
        if answers.left and ended.overran == "interrupted":
            self.interrupted = True
            return None
        if not answers.left or answers.stopped:
            return None
        if answers.garbled:
            return _garbled(generator.name, generator.at)
        return self._death(ended, generator.name, generator.at)

    def _death(self, ended: sandbox.Ended, subject: str, at: Position) -> Diagnostic:
        limits = self._limits
        match ended.overran:
            case "time":
                code, what = (
                    "GEN024",
                    f"{subject} gave no answer for {limits.wall_seconds:g} seconds, and was ended",
                )
                fix = "look for a loop that does not end, or for something it waits for"
            case "answer":
                code, what = (
                    "GEN025",
                    f"{subject} yielded more than {limits.answer_bytes:,} bytes, and was ended",
                )
                fix = "look for a loop that does not end"
            case _ if ended.status == sandbox.EXIT_NO_MEMORY:
                code, what = "GEN025", f"{subject} used up its memory"
                fix = "look for a collection that grows without end"
            case _ if ended.status == FILTERED:
                return _filtered(ended.printed, subject, at)
            case _:
                how = f"by signal {-ended.status}" if ended.status < 0 else f"with exit code {ended.status}"
                code, what = "GEN026", f"the process of {subject} ended {how} before it had answered"
                fix = "a generator must neither exit nor crash the interpreter"
        return Diagnostic(code=code, what=what, why=_tail(ended.printed), fix=fix, subject=subject, at=at)


def _count(arguments: Sequence[Argument]) -> int:
    return sum(len(item) if isinstance(item, list) else 1 for item in arguments)


class _Answers:
    """Decodes what comes from a fork, up to the first that cannot be read.

    Attributes:
        left: how many are still to come.
        stopped: True when the last that came was ended for a limit.
    """

    def __init__(self, left: int, take: Callable[[Answer], None]) -> None:
        self.left = left
        self.stopped = False
        self.garbled = False
        self._take = take

    def __call__(self, body: bytes) -> None:
        if self.garbled or not self.left:
            return
        try:
            answer = _answer.decode(body)
        except (msgspec.MsgspecError, RecursionError):
            self.garbled = True
            return
        self.left -= 1
        self.stopped = not answer.repeatable
        self._take(answer)


def _garbled(subject: str, at: Position) -> Diagnostic:
    return Diagnostic(
        code="GEN026",
        what=f"the process of {subject} gave an answer that cannot be read",
        why="something wrote to the descriptor that answers go through",
        fix="a generator must leave file descriptors alone",
        subject=subject,
        at=at,
    )


def _filtered(printed: bytes, subject: str, at: Position) -> Diagnostic:
    """The kernel has ended it; Python has written where it stood. Only paths of a snapshot are relative."""
    places = _TRACED.findall(printed.decode(errors="replace"))
    inner = next((Position(file, int(line)) for file, line in places if file[0] not in "/<"), at)
    return Diagnostic(
        code="GEN023",
        what=f"{subject} asked the system for what generators may not have, and was ended",
        why="native code that it calls wanted a socket, a process, or what belongs to another one",
        fix="read what is needed from source files, as the argument",
        subject=subject,
        at=inner,
    )


def _tail(printed: bytes) -> str:
    text = printed.decode(errors="replace").strip()
    return repr(text if len(text) <= 200 else text[:197] + "...") if text else ""

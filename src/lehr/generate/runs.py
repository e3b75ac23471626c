"""Generator runs: from modules and arguments to answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate import sandbox
from lehr.generate.authors import Answer, Argument, Module, call_each, describe
from lehr.generate.protocol import SandboxLimits
from lehr.generate.schedule import Generator

_module = msgspec.msgpack.Decoder(Module)
_answer = msgspec.msgpack.Decoder(Answer)


class Run:
    """Imports modules and calls generators in forks of this process.

    Architecture invariant: nothing that a fork does or says can raise here.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        clock: Clock,
        run: Callable[[sandbox.Work, SandboxLimits, Clock], sandbox.Ended] = sandbox.run,
    ) -> None:
        """Import and call within `limits`, by means of `run`."""
        self._limits = limits
        self._clock = clock
        self._run = run

    def describe(self, path: str, code: Mapping[str, bytes]) -> Module:
        """What the module at `path` declares. `code` is every module's source by path."""
        ended = self._run(functools.partial(describe, path, code, self._limits), self._limits, self._clock)
        at = Position(path)
        try:
            modules = [_module.decode(body) for body in ended.frames]
        except (msgspec.MsgspecError, RecursionError):
            return Module((), (_garbled(path, at),))
        return modules[0] if len(modules) == 1 else Module((), (self._death(ended, path, at),))

    def call(
        self, generator: Generator, arguments: Sequence[Argument], code: Mapping[str, bytes]
    ) -> tuple[list[Answer], Diagnostic | None]:
        """Call `generator` with each argument.

        Returns:
            An answer for each argument and None; or answers for the first ones only, and what
            kept the next one from being answered.
        """
        work = functools.partial(
            call_each, generator.path, generator.found.name, arguments, code, self._limits
        )
        ended = self._run(work, self._limits, self._clock)
        try:
            answers = [_answer.decode(body) for body in ended.frames]
        except (msgspec.MsgspecError, RecursionError):
            return [], _garbled(generator.name, generator.at)
        if len(answers) < len(arguments):
            stopped = bool(answers) and not answers[-1].repeatable
            return answers, None if stopped else self._death(ended, generator.name, generator.at)
        return answers[: len(arguments)], None

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
            case _:
                how = f"by signal {-ended.status}" if ended.status < 0 else f"with exit code {ended.status}"
                code, what = "GEN026", f"the process of {subject} ended {how} before it had answered"
                fix = "a generator must neither exit nor crash the interpreter"
        return Diagnostic(code=code, what=what, why=_tail(ended.printed), fix=fix, subject=subject, at=at)


def _garbled(subject: str, at: Position) -> Diagnostic:
    return Diagnostic(
        code="GEN026",
        what=f"the process of {subject} gave an answer that cannot be read",
        why="something wrote to the descriptor that answers go through",
        fix="a generator must leave file descriptors alone",
        subject=subject,
        at=at,
    )


def _tail(printed: bytes) -> str:
    text = printed.decode(errors="replace").strip()
    return repr(text if len(text) <= 200 else text[:197] + "...") if text else ""

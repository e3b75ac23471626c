"""Generators that set out to escape their limits, and those that end without a word."""

from __future__ import annotations

import resource
from collections.abc import Callable

import pytest

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic, errors
from lehr.generate.engine.runs import Run
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox.authors import CallOutput, FoundGenerator
from lehr.generate.sandbox.denials import preload
from lehr.generate.sandbox.forks import run
from lehr.sdk.generator import Declaration, Reads, SourceFile

SHORT = SandboxLimits(cpu_seconds=1, wall_seconds=20.0, cpu_seconds_per_call=0.001)


@pytest.fixture(autouse=True)
def without_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lehr.generate.sandbox.meter.GRACE_SECONDS", 0.2)


FORGE = """
import os, signal
import msgspec
from lehr.base.diagnostics import Diagnostic
from lehr.generate.sandbox.authors import CallOutput
from lehr.sdk.generator import *

signal.setitimer(signal.ITIMER_PROF, 0)
found = []
for descriptor in range(3, 4096):
    try:
        os.write(descriptor, b"")
        found.append(descriptor)
    except OSError:
        pass

def forge(answer):
    signal.setitimer(signal.ITIMER_PROF, 0)
    body = msgspec.msgpack.encode(answer)
    for descriptor in found:
        os.write(descriptor, len(body).to_bytes(4, "big") + body)

@for_each_file("services/*.yaml")
def made(file):
"""


def called(
    body: str, calls: int = 1, limits: SandboxLimits | None = None
) -> tuple[list[CallOutput], Diagnostic | None]:
    preload()
    code = {"g.py": (FORGE + body).encode()}
    found = FoundGenerator("made", Declaration(Reads.FILE, "services/*.yaml"), 24)
    answers: list[CallOutput] = []
    arguments = [SourceFile(f"services/{number}.yaml", b"") for number in range(calls)]
    problem = Run(limits or SHORT, SystemClock()).call(
        Generator("g.py", found, ("g.py",)), arguments, code, answers.append
    )
    return answers, problem


def test_frames_that_nobody_asked_for_buy_no_time() -> None:
    # Its time is not what ends it, however busy the machine is.
    answers, problem = called("    while True:\n        forge(CallOutput())\n", limits=SandboxLimits())
    assert answers == [CallOutput()]
    assert problem is not None
    assert problem.code == "GEN026"


def test_one_frame_now_and_then_does_not_buy_time_without_end() -> None:
    body = "    while True:\n        for _ in range(3_000_000): pass\n        forge(CallOutput())\n"
    answers, problem = called(body, 100_000)
    assert len(answers) < 1000
    assert problem is not None
    assert problem.code == "GEN024"  # of its calls, or the kernel's where nobody looks in time
    assert "time" in problem.what


def test_who_cancels_the_timer_is_ended_from_outside() -> None:
    _, problem = called("    signal.setitimer(signal.ITIMER_PROF, 0)\n    while True: pass\n    yield")
    assert problem is not None
    assert problem.code == "GEN024"


def test_who_prints_without_end_is_ended_all_the_same() -> None:
    _, problem = called(
        "    signal.setitimer(signal.ITIMER_PROF, 0)\n    while True: os.write(1, b'x' * 65536)\n    yield"
    )
    assert problem is not None
    assert problem.code == "GEN024"


def test_what_ends_badly_after_its_last_answer_has_a_problem() -> None:
    answers, problem = called("    forge(CallOutput())\n    os._exit(3)\n    yield")
    assert len(answers) == 1
    assert problem is not None
    assert "exit code 3" in problem.what


def test_the_kernel_limits_processor_time_when_nobody_looks() -> None:
    def work(send: Callable[[bytes], None]) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
        send(f"{soft} {hard}".encode())

    frames: list[bytes] = []
    preload()
    limits = SandboxLimits(answer_bytes=1_000_000)
    assert run(work, limits, SystemClock(), frames.append).clean
    assert frames == [b"15 15"]  # 10, 0.1 for the call, 2 for what it may answer, and the grace


@pytest.mark.parametrize(
    "error",
    [
        "UnreadableFileError(())",
        "UnreadableFileError([Diagnostic(code='GEN028', what='a word', severity=Severity.WARNING)])",
        "UnreadableFileError(['no diagnostic'])",
        "type('Sly', (UnreadableFileError,), {'diagnostics': property(lambda self: 1 / 0)})(())",
        "SystemExit(0)",
        "KeyboardInterrupt()",
        "GeneratorExit()",
        "StopIteration()",
        "BaseExceptionGroup('', [ValueError()])",
        "type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()",
    ],
)
def test_whatever_is_raised_there_is_an_error_that_names_the_generator(error: str) -> None:
    body = f"    from lehr.base.diagnostics import Severity\n    raise {error}\n    yield\n"
    answers, problem = called(body)
    said = [item for answer in answers for item in answer.diagnostics]
    found = errors(said if problem is None else [problem, *said])
    assert found, error
    assert found[0].at is not None
    assert found[0].at.file == "g.py"


def test_an_answer_that_a_limit_ended_says_so() -> None:
    answers, problem = called("    forge(CallOutput(repeatable=False))\n    yield", 2)
    assert answers == []
    assert problem is not None
    assert problem.code == "GEN026"

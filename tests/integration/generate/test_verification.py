"""Generators that isolation does not stop from making something else of the same input are found out."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic, errors
from lehr.generate.engine.build import Build
from lehr.generate.engine.client import GenerationWorker
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Run
from lehr.generate.engine.worker import LazyForker
from lehr.generate.outcome.protocol import Built, Changed, SandboxLimits
from lehr.generate.sandbox import forks
from lehr.generate.sandbox.denials import preload
from lehr.sdk.generation import Generated
from lehr.testing.samples import registry
from tests.snapshots import MemorySnapshot

Interrupted = Callable[[], contextlib.AbstractContextManager[None]]
Files = dict[str, str | bytes]

HEAD = "from lehr.sdk.generator import *\n"


@pytest.fixture(scope="module")
def interpreter() -> Iterator[tuple[LazyForker, Interrupted]]:
    """Another interpreter, and what makes it believe that there is something else to do."""
    preload()
    read, write = os.pipe()
    elsewhere = LazyForker(SandboxLimits(), SystemClock(), read, Chance(4), pause=0.0)
    while not elsewhere.ready():
        os.sched_yield()

    @contextlib.contextmanager
    def interrupted() -> Iterator[None]:
        os.write(write, b"x")
        yield
        os.read(read, 1)

    yield elsewhere, interrupted
    elsewhere.close()
    os.close(read)
    os.close(write)


class Worker:
    """What a worker does, step by step.

    Attributes:
        again: files that were read to verify something.
    """

    def __init__(self, files: Files, elsewhere: LazyForker, memo: Path | None = None) -> None:
        self.again: list[str] = []
        self._files = files
        self._memo = Memo(memo)
        run = Run(SandboxLimits(), SystemClock(), forks.run, forks.run)
        self._build = Build(registry(), self._fetch, run, self._memo, elsewhere)

    def _fetch(self, paths: list[str]) -> Iterator[bytes]:
        for path in paths:
            content = self._files[path]
            yield content if isinstance(content, bytes) else content.encode()

    def answer(self, **changed: str) -> Built:
        """One conversation, and what is done after it."""
        self._files |= {f"generators/{name}.py": HEAD + text for name, text in changed.items()}
        built = self._build.build(Changed(tuple(MemorySnapshot(self._files).files().values()), ()))
        self._rest()
        if built.again:
            self.again += built.again
            self._build.verify(tuple(self._fetch(list(built.again))))
            self._rest()
        return built

    def _rest(self) -> None:
        for _ in self._build.idle():
            pass

    def problems(self, answers: int = 6) -> tuple[Diagnostic, ...]:
        """Of the last of several answers."""
        return [self.answer() for _ in range(answers)][-1].diagnostics

    def end(self) -> None:
        self._memo.close()


def files(code: str) -> Files:
    names = {f"services/{name}.yaml": name for name in "abcdefgh"}
    return {"lehr.yaml": "partition: test\n", "generators/g.py": HEAD + code, **names}


EACH = (
    '@for_each_file("services/*.yaml")\ndef f(file):\n'
    '    yield asset(file.text(), "sample.Policy", {"text": %s})\n'
)
ALL = (
    '@for_all_files("services/*.yaml")\ndef f(files):\n'
    '    yield asset("all", "sample.Policy", {"text": %s})\n'
)
OF_ASSETS = (
    '@for_each_file("services/*.yaml")\ndef e(file):\n    yield asset(file.text(), "sample.Service", {})\n'
    '@for_each_asset("sample.Service")\ndef f(service):\n'
    '    yield annotate(service.id, "lehr.Owner", {"team": %s})\n'
)
SLY = {
    "clock": "import threading\n" + EACH % "str(threading._time())",
    "address": EACH % "hex(id(object()))",
    "order of addresses": ALL % "' '.join(f.text() for f in sorted(files, key=id))",
    "order of a set": ALL % "' '.join({f.text() for f in files})",
    "company": "N = []\n" + EACH % "str(N.append(1) or len(N))",
    "an annotation's hash": OF_ASSETS % "str(hash(service.id))",
}


@pytest.mark.parametrize("how", SLY)
def test_a_generator_that_depends_on_more_than_its_input_is_found_out(
    how: str, interpreter: tuple[LazyForker, object]
) -> None:
    worker = Worker(files(SLY[how]), interpreter[0])
    assert worker.answer().diagnostics == ()
    problems = {item.code: item for item in worker.problems(12)}
    assert list(problems) == ["GEN037"]
    problem = problems["GEN037"]
    assert problem.subject == "generators/g.py:f"
    assert problem.at is not None
    assert problem.at.file == "generators/g.py"
    assert ("/payload/text" in problem.why) or ("/team" in problem.why), problem.why
    assert errors([problem])


HONEST = {
    "each file": EACH % "file.path",
    "all files": ALL % "' '.join(sorted({f.text() for f in files}))",
    "assets": OF_ASSETS % "service.id",
    "order of yields": ALL.replace('"all"', "name").replace(
        "    yield", "    for name in {'x', 'y', 'z'}: yield"
    )
    % "name",
    "failure": '@for_each_file("services/*.yaml")\ndef f(file):\n    raise ValueError(hex(id(file)))\n',
}


@pytest.mark.parametrize("how", HONEST)
def test_one_that_depends_on_nothing_else_is_left_in_peace(
    how: str, interpreter: tuple[LazyForker, object]
) -> None:
    worker = Worker(files(HONEST[how]), interpreter[0])
    assert {item.code for item in worker.problems(8)} <= {"GEN022"}
    assert set(worker.again) == (
        set() if how == "failure" else {path for path in files("") if path.startswith("services")}
    )


def test_each_of_many_generators_has_its_turn(interpreter: tuple[LazyForker, object]) -> None:
    names = "abcdefgh"
    read_one = (
        '@for_each_file("services/%s.yaml")\ndef f(file):\n    yield asset("%s", "sample.Service", {})\n'
    )
    modules = {f"generators/{name}.py": HEAD + read_one % (name, name) for name in names}
    worker = Worker({**files(""), **modules}, interpreter[0])
    worker.answer()  # the first answer is never verified, and the second chooses what the third asks for
    assert worker.problems(1 + len(names)) == ()
    assert sorted(worker.again) == [f"services/{name}.yaml" for name in names]


def test_the_doubt_stays_over_restarts_and_goes_with_other_code(
    tmp_path: Path, interpreter: tuple[LazyForker, object]
) -> None:
    worker = Worker(files(SLY["clock"]), interpreter[0], tmp_path / "memo")
    [doubt] = worker.problems()
    worker.end()
    again = Worker(files(SLY["clock"]), interpreter[0], tmp_path / "memo")
    assert again.answer().diagnostics == (doubt,)
    assert again.answer(g=EACH % "'fixed'").diagnostics == ()
    assert again.answer(g=SLY["clock"]).diagnostics == (doubt,)
    again.end()


def test_a_change_that_comes_in_ends_the_verification(
    interpreter: tuple[LazyForker, Interrupted],
) -> None:
    elsewhere, interrupted = interpreter
    worker = Worker(files(SLY["clock"]), elsewhere)
    with interrupted():
        assert worker.problems() == ()
    assert [item.code for item in worker.problems()] == ["GEN037"]


def test_a_worker_finds_out_and_tells_with_a_later_answer() -> None:
    async def main() -> Generated:
        worker = GenerationWorker("lehr.testing.samples:registry", Inline())
        pause = 0.01
        try:
            for turn in itertools.count():
                generated = await worker.generate(
                    MemorySnapshot({**files(SLY["address"]), "turn": str(turn)})
                )
                if generated.diagnostics:
                    break
                # A request ends the verification that is under way, which takes longer on a busy machine.
                await asyncio.sleep(pause)
                pause *= 1.1
            return generated
        finally:
            await worker.close()

    [problem] = asyncio.run(main()).diagnostics
    assert problem.code == "GEN037"

"""Whether the suite finds a mutation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec

import lehr
from lehr.base.clock import Clock
from lehr.testing.sim.mutants import player
from lehr.testing.sim.mutants.mutation import REPOSITORY, Mutation
from lehr.testing.sim.mutants.patch import PatchError
from lehr.testing.sim.suite import scratch

SEEDS = 1000
"""Histories that are tried by default: as many as the tests play."""

LONGEST = 20.0
"""Seconds that a case may compute; most take a tenth of one."""

SHARES = {"hello": 24, "shakespeare": 96}
"""Scenarios whose fault plans are played, each in so many cases: few enough to end soon after a finding."""

_PACKAGE = Path(lehr.__file__).parent
_SCENARIOS = REPOSITORY / "tests" / "simulation" / "scenarios"
_KINDS = {"seed": "histories", "scenario": "scenarios", "plans": "scenarios", "test": "tests"}
_ENDED_BY: dict[int, str] = {signal.SIGVTALRM: "computes for ever", signal.SIGALRM: "does not continue"}
_LAST_WORDS = 3


class MutationResult(msgspec.Struct, frozen=True):
    """Result for a mutation.

    Attributes:
        case: the first that goes wrong, such as `seed 17`; None if none does.
        violations: what is wrong, one line each.
        tried: how many cases were played.
        seconds: that it took.
        trouble: why it could not be judged; empty if it could.
    """

    mutation: str
    bug: str
    case: str | None
    violations: tuple[str, ...]
    tried: int
    seconds: float
    trouble: str = ""

    @property
    def found(self) -> bool:
        return self.case is not None

    @property
    def by(self) -> str:
        """What kind of case it takes: `histories`, `scenarios`, or `tests`; empty if none finds it."""
        return "" if self.case is None else _KINDS[self.case.partition(" ")[0]]


def cases(seeds: range = range(SEEDS)) -> list[str]:
    """All cases: the histories of `seeds`; where the sources are, the scenarios; the fault plans."""
    return [
        *(f"seed {seed}" for seed in seeds),
        *(f"scenario {path}" for path in sorted(_SCENARIOS.glob("*.txt"))),
        *(f"plans {name} {part}/{parts}" for name, parts in SHARES.items() for part in range(parts)),
    ]


def hinted(mutation: Mutation) -> list[str]:
    """The case that found a mutation last, where it can be played here."""
    kind, _, argument = mutation.found.partition(" ")
    if kind == "scenario":
        path = _SCENARIOS / f"{argument}.txt"
        return [f"scenario {path}"] if path.is_file() else []
    if kind == "test" and not _SCENARIOS.is_dir():
        return []
    return [mutation.found] if kind in _KINDS and argument else []


def hint(case: str) -> str:
    """How a case is written into the header of the mutation that it has found."""
    kind, _, argument = case.partition(" ")
    return f"scenario {Path(argument).stem}" if kind == "scenario" else case


async def sound(played: Sequence[str], clock: Clock, jobs: int) -> list[str]:
    """The cases `played`, without scenarios that go wrong without any mutation: they would find all.

    Random histories are taken to be sound.
    """
    scenarios = [case for case in played if case.startswith("scenario ")]
    with copied() as folder:
        hunt = _Hunt(folder, scenarios, LONGEST, to_the_end=True)
        await hunt.all(jobs)
    wrong = {scenarios[number] for number in hunt.broken}
    return [case for case in played if case not in wrong]


async def judge(
    mutation: Mutation,
    played: Sequence[str],
    clock: Clock,
    jobs: int = 1,
    longest: float = LONGEST,
    *,
    from_scratch: bool = False,
) -> MutationResult:
    """Play what found `mutation` last, then the cases `played` in `jobs` processes, until one goes wrong.

    Of several, the finding names the first, so that it is the same each time.

    Args:
        from_scratch: play what found it last only after those of `played`, unless it lies outside of them.
        longest: seconds that a case may compute; one that takes longer goes wrong.

    Raises:
        PatchError: the mutation does not fit, or the changed program cannot be imported.
    """
    began = clock.monotonic()
    tried = 0
    case: str | None = None
    violations: tuple[str, ...] = ()
    with mutated(mutation) as folder:
        last = hinted(mutation)
        for cases_of in (played, last) if from_scratch and not mutation.outside else (last, played):
            hunt = _Hunt(folder, cases_of, longest)
            await hunt.all(jobs)
            tried += hunt.tried
            if hunt.broken:
                first = min(hunt.broken)
                case, violations = cases_of[first], hunt.broken[first]
                break
    seconds = round(clock.monotonic() - began, 1)
    return MutationResult(mutation.name, mutation.bug, case, violations, tried, seconds)


@contextlib.contextmanager
def mutated(mutation: Mutation) -> Iterator[Path]:
    """A folder with a copy of the package that has the bug.

    Raises:
        PatchError: the mutation does not fit.
    """
    with copied() as folder:
        for path in mutation.paths:
            for compiled in (folder / path).parent.glob(f"__pycache__/{Path(path).stem}.*"):
                compiled.unlink()
        mutation.apply(folder)
        yield folder


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """A folder with a copy of the package."""
    with scratch() as folder:
        # Including compiled files, which are valid while a file's time is: most files stay as they
        # are.
        shutil.copytree(_PACKAGE, folder / _PACKAGE.name)
        yield folder


def environment(folder: Path) -> dict[str, str]:
    """Variables of a process that runs the copy in `folder`, and leaves nothing elsewhere if it is killed."""
    return {**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(folder)}


class _Hunt:
    """Several processes that play against one copy, until one of them finds something.

    Attributes:
        broken: violations by the case's number.
        tried: cases that were begun.
    """

    def __init__(
        self, folder: Path, played: Sequence[str], longest: float, *, to_the_end: bool = False
    ) -> None:
        """Play in the copy in `folder`; `to_the_end`: continue after a failure."""
        self.broken: dict[int, tuple[str, ...]] = {}
        self.tried = 0
        self._folder = folder
        self._played = played
        self._longest = longest
        self._to_the_end = to_the_end

    async def all(self, jobs: int) -> None:
        """Play everything in `jobs` processes."""
        numbers = range(len(self._played))
        await asyncio.gather(*(self.play(numbers[first::jobs]) for first in range(min(jobs, len(numbers)))))

    async def play(self, numbers: Sequence[int]) -> None:
        """Play the cases of these numbers, and stop where an earlier one has gone wrong."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", player.__name__, str(self._longest), str(REPOSITORY)),
            cwd=self._folder,
            env=environment(self._folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        complaints = asyncio.create_task(_whole(process.stderr))
        try:
            under_way = await self._listen(process, numbers)
        except _Over:
            return
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            output = await complaints
        if under_way is None:
            raise PatchError("the changed program cannot be imported", code="SIM115", why=output)
        code = process.returncode or 0
        if code or under_way != numbers[-1]:
            how = _ENDED_BY.get(-code) or f"ends the process: {output or code}"
            self.broken[under_way] = (f"I7: it {how}",)

    async def _listen(self, process: asyncio.subprocess.Process, numbers: Sequence[int]) -> int | None:
        """Read the process's output to its end; returns the case that it began last, None for nothing.

        Raises:
            _Over: its next case is of no interest any more.
        """
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(self._played[number] for number in numbers).encode())
        process.stdin.close()
        under_way: int | None = None
        async for text in process.stdout:
            if text.strip() == player.READY:
                under_way = numbers[0]
                continue
            line = msgspec.json.decode(text, type=player.Line)
            under_way = numbers[line.number]
            if line.violations is None:
                if not self._to_the_end and under_way > min(self.broken, default=under_way):
                    raise _Over
                self.tried += 1
            elif line.violations:
                self.broken[under_way] = line.violations
                if not self._to_the_end:
                    raise _Over
        await process.wait()
        return under_way


class _Over(Exception):  # noqa: N818 - not an error
    """Nothing more can be found here."""


async def _whole(stream: asyncio.StreamReader | None) -> str:
    """The last words of a process."""
    assert stream is not None
    lines = (await stream.read()).decode(errors="replace").strip().splitlines()
    return "; ".join(line.strip() for line in lines[-_LAST_WORDS:])


async def judge_all(
    mutations: Sequence[Mutation],
    played: Sequence[str],
    clock: Clock,
    jobs: int,
    *,
    from_scratch: bool = False,
) -> AsyncIterator[MutationResult]:
    """Judge many, `jobs` at a time, in whatever order they end."""
    free = asyncio.Semaphore(jobs)

    async def one(mutation: Mutation) -> MutationResult:
        async with free:
            try:
                return await judge(mutation, played, clock, from_scratch=from_scratch)
            except PatchError as error:
                return MutationResult(mutation.name, mutation.bug, None, (), 0, 0.0, str(error))

    tasks = [asyncio.create_task(one(mutation)) for mutation in mutations]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def show(mutation: Mutation, case: str) -> None:
    """Narrate on stdout what happens in `case` against `mutation`.

    Raises:
        PatchError: the mutation does not fit.
    """
    kind, _, argument = case.partition(" ")
    scenario, _, name = argument.partition(":")
    arguments = {
        "seed": ["show", *argument.split()],
        "scenario": ["play", argument],
        "plan": ["plans", scenario, "--only", name, "--show"],
        "test": [],
    }[kind]
    with mutated(mutation) as folder:
        command = [sys.executable, "-m", "lehr", "sim", *arguments] if arguments else player.testing(argument)
        where = folder if arguments else REPOSITORY
        subprocess.run(command, cwd=where, env=environment(folder), check=False)

"""Whatever a fork answers, however it ends: the worker lives on, and each refusal has a reason."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.clock import Clock, SystemClock
from lehr.base.diagnostics import Diagnostic, Position, Severity, errors
from lehr.generate.engine.build import Build
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.memory import Memory
from lehr.generate.engine.runs import Run
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.protocol import LENGTH_BYTES, Built, SandboxLimits, frame
from lehr.generate.sandbox.authors import CallOutput, FoundGenerator, Module, Record
from lehr.generate.sandbox.forks import RunResult, Take, Work
from lehr.generate.sandbox.meter import Overrun
from lehr.publish.problem_positions import with_excerpts
from lehr.sdk.generator import Declaration, Reads, SourceFile
from lehr.testing.samples import registry
from tests.snapshots import MemorySnapshot

PATH = "generators/g.py"
FILES = {"lehr.yaml": "partition: test\n", PATH: "x = 1\n", "services/a.yaml": "a", "services/b.yaml": "b"}

numbers = st.integers(-(2**63), 2**63 - 1)
texts = st.one_of(
    st.text(max_size=5), st.sampled_from(["a", "sample.Service", "../x", "\n", "\0", PATH, "a=b", "="])
)
positions = st.none() | st.builds(Position, st.one_of(texts, st.sampled_from(list(FILES))), numbers, numbers)
diagnostics = st.builds(
    Diagnostic,
    code=texts,
    what=texts,
    why=texts,
    fix=texts,
    subject=texts,
    at=positions,
    severity=st.sampled_from(Severity),
    confidential=st.booleans(),
)
assets = st.fixed_dictionaries(
    {"id": texts, "type": texts},
    optional={
        "payload": st.dictionaries(texts, texts | numbers, max_size=2),
        "addons": st.just({}),
        "x": texts,
    },
)
bodies = st.binary(max_size=5) | assets.map(msgspec.json.encode) | st.just(b"[" * 5000)
records = st.builds(Record, texts, bodies, st.none() | texts, numbers)
answers = st.builds(
    CallOutput,
    st.lists(records, max_size=2).map(tuple),
    st.lists(diagnostics, max_size=2).map(tuple),
    st.booleans(),
)
declarations = st.builds(
    Declaration,
    st.sampled_from(Reads),
    texts | st.just("services/*.yaml"),
    st.lists(texts, max_size=2).map(tuple),
)
modules = st.builds(
    Module,
    st.lists(st.builds(FoundGenerator, texts, declarations, numbers | st.just(1)), max_size=2).map(tuple),
    st.lists(diagnostics, max_size=1).map(tuple),
    st.lists(st.just(PATH) | texts, max_size=2).map(tuple),
)
honest = Module((FoundGenerator("g", Declaration(Reads.FILE, "services/*.yaml"), 1),), (), (PATH,))
frames = st.binary(max_size=20) | st.one_of(answers, modules, st.just(honest)).map(msgspec.msgpack.encode)
endings = st.builds(
    RunResult, st.binary(max_size=20), st.sampled_from(Overrun), st.sampled_from([0, 1, 70, 71, -9, -31])
) | st.just(RunResult(b"", Overrun.NOTHING, 0))


class Fork:
    """Says what hypothesis thought of, over and over."""

    def __init__(self, said: list[bytes], ended: RunResult) -> None:
        self._said = said
        self._ended = ended

    def __call__(self, work: Work, limits: SandboxLimits, clock: Clock, take: Take) -> RunResult:
        for body in self._said[: limits.calls]:
            take(body)
        return self._ended


@given(st.lists(frames | answers.map(msgspec.msgpack.encode), max_size=4), endings)
def test_whatever_a_fork_answers_nothing_is_refused_without_a_reason(
    said: list[bytes], ended: RunResult
) -> None:
    run = Run(SandboxLimits(), SystemClock(), Fork(said, ended))
    taken: list[CallOutput] = []
    arguments = [SourceFile(path, b"") for path in ("services/a.yaml", "services/b.yaml")]
    generator = Generator(PATH, honest.generators[0], honest.uses)
    problem = run.call(generator, arguments, {PATH: b""}, taken.append)
    if problem is not None:
        assert errors([problem])
        return
    stopped = bool(taken) and not taken[-1].repeatable
    assert run.interrupted or len(taken) == 2 or (stopped and errors(taken[-1].diagnostics))
    assert ended.clean or ended.overran is Overrun.INTERRUPTED or stopped


@given(st.lists(frames, min_size=1, max_size=3), endings, st.lists(frames, max_size=3), endings)
def test_whatever_a_fork_answers_the_worker_goes_on(
    described: list[bytes], as_described: RunResult, said: list[bytes], ended: RunResult
) -> None:
    fork, other = Fork(said, ended), Fork(described, as_described)

    def fetch(paths: list[str]) -> Iterator[bytes]:
        yield from (FILES[path].encode() for path in paths)

    build = Build(registry(), fetch, Run(SandboxLimits(), SystemClock(), fork, fork, other), Memo())
    snapshot = MemorySnapshot(dict(FILES))
    memory = Memory()
    told = memory.changed(snapshot)
    built = msgspec.msgpack.decode(frame(build.build(told))[LENGTH_BYTES:], type=Built)
    if not built.overtaken:
        assert built.partition == "test"
        generated = memory.take(snapshot, told, built)
        with_excerpts(generated.diagnostics, snapshot)

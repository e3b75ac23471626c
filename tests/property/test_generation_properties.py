"""An incremental build equals a clean build (I11), whatever was edited in whatever order."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import errors
from lehr.generate.engine.build import Build
from lehr.generate.engine.client import GenerationWorker
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.memory import Memory
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox import forks
from lehr.generate.sandbox.denials import preload
from lehr.sdk.generation import Generated
from lehr.testing.samples import registry
from tests.snapshots import MemorySnapshot

HEAD = "from lehr.sdk.generator import *\n"

VARIANTS: dict[str, list[str]] = {
    "lehr.yaml": [
        "partition: p\n",
        "partition: p\nassets: ['other/*.yaml', 'assets/*.yaml']\n",
        "partition: p\ngenerators: [generators/a.py]\n",
        "partition: [\n",
    ],
    "assets/a.yaml": [
        "{id: a, type: sample.Service}\n",
        "- {id: a, type: sample.Service, payload: {replicas: 2}}\n- {id: b, type: sample.Policy}\n",
        "{id: c, type: sample.Service, addons: {lehr.Owner: {team: own}}}\n",
        "id: [\n",
    ],
    "assets/b.yaml": [
        "\n{id: b, type: sample.Service}\n",
        "{id: a, type: sample.Service}\n",
        "{id: b, type: nothing}\n",
    ],
    "other/c.yaml": ["{id: c, type: sample.Service}\n", "{id: d, type: sample.Policy}\n"],
    "services/x.yaml": ["x\n", "a\n", "y\n"],
    "services/y.yaml": ["y\n", "x\n", "[\n"],
    "generators/a.py": [
        HEAD
        + "@for_each_file('services/*.yaml')\ndef f(file):\n"
        + "    yield asset('svc-' + file.yaml(), 'sample.Service', {})\n",
        HEAD
        + "import _lib\n@for_each_file('services/*.yaml')\ndef f(file):\n"
        + "    yield asset(_lib.name(file.yaml()), 'sample.Service', {})\n",
        HEAD
        + "@for_all_files('services/*.yaml')\ndef f(files):\n"
        + "    yield asset('all', 'sample.Service', {'command': [file.yaml() for file in files]})\n",
        "1 / 0\n",
    ],
    "generators/b.py": [
        HEAD
        + "@for_each_asset('sample.Service', makes='sample.Route')\ndef g(s):\n"
        + "    yield asset('route/' + s.id, 'sample.Route', {'path': '/', 'service': s.id})\n"
        + "    yield annotate(s.id, 'lehr.Owner', {'team': 'x'})\n",
        HEAD
        + "@for_all_assets('sample.Service', makes='sample.Policy')\ndef g(all):\n"
        + "    yield asset('sum', 'sample.Policy', {'text': ' '.join(s.id for s in all)})\n",
        HEAD
        + "@for_each_asset(['sample.S*', 'sample.Policy'], ids=['a', 'svc-*'])\ndef g(s):\n"
        + "    yield annotate(s.id, 'lehr.Owner', {'team': s.type})\n",
        HEAD
        + "@for_each_asset('sample.Service')\ndef g(s):\n"
        + "    if s.id == 'a': raise ValueError('not a')\n    yield from ()\n",
    ],
    "generators/_lib.py": [
        "def name(text): return 'lib-' + text\n",
        "def name(text): return 'bil-' + text\n",
    ],
}

edits = st.sampled_from(sorted(VARIANTS)).flatmap(
    lambda path: st.tuples(st.just(path), st.one_of(st.none(), st.integers(0, len(VARIANTS[path]) - 1)))
)


class Shared:
    runner: asyncio.Runner


@pytest.fixture(scope="module", autouse=True)
def _shared() -> Iterator[None]:
    with asyncio.Runner() as Shared.runner:
        yield


async def build(snapshots: list[dict[str, str]]) -> Generated:
    """What a new worker says of the last snapshot, after having seen the others."""
    worker = GenerationWorker("lehr.testing.samples:registry", Inline())
    try:
        made = [await worker.generate(MemorySnapshot(files)) for files in snapshots]
        return made[-1]
    finally:
        await worker.close()


@example([[("generators/a.py", 2)]])  # one name, another shape: the old items have to go
@settings(max_examples=20)
@given(st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=8))
def test_an_incremental_build_equals_a_clean_build(steps: list[list[tuple[str, int | None]]]) -> None:
    files = {path: variants[0] for path, variants in VARIANTS.items()}
    snapshots = [dict(files)]
    for step in steps:
        for path, variant in step:
            files.pop(path, None)
            if variant is not None:
                files[path] = VARIANTS[path][variant]
        snapshots.append(dict(files))
    incremental = Shared.runner.run(build(snapshots))
    clean = Shared.runner.run(build(snapshots[-1:]))
    assert_equal(incremental, clean, files)


def assert_equal(incremental: Generated, clean: Generated, files: dict[str, str]) -> None:
    assert incremental.diagnostics == clean.diagnostics
    assert (incremental.partition, incremental.generators) == (clean.partition, clean.generators)
    if not errors(clean.diagnostics):
        # With where each comes from: equality of assets includes it, their digests do not.
        assert dict(incremental.assets) == dict(clean.assets)
        made_of = {asset.made_by.item for asset in clean.assets.values() if asset.made_by is not None}
        assert made_of <= {"", *files, *clean.assets}


class Process:
    """What a worker does and its parent remembers, from start to end."""

    def __init__(self, memo: Path | None) -> None:
        preload()
        self._memo = Memo(memo)
        self._memory = Memory()
        self._files: dict[str, str] = {}
        run = Run(SandboxLimits(), SystemClock(), forks.run, forks.run)
        self._build = Build(registry(), self._fetch, run, self._memo)

    def _fetch(self, paths: list[str]) -> Iterator[bytes]:
        yield from (self._files[path].encode() for path in paths)

    def generate(self, files: dict[str, str], idle: int) -> Generated:
        """With time to write down some of it."""
        self._files = dict(files)
        snapshot = MemorySnapshot(self._files)
        told = self._memory.changed(snapshot)
        generated = self._memory.take(snapshot, told, self._build.build(told))
        for _ in zip(range(idle), self._build.idle(), strict=False):
            pass
        return generated

    def end(self) -> None:
        self._memo.close()


def damage(memo: Path) -> None:
    """Have every third row hold what another one holds, and every fifth nothing that can be read."""
    with sqlite3.connect(memo) as database:
        database.execute(
            "UPDATE output SET content = (SELECT content FROM output ORDER BY id LIMIT 1) WHERE id % 3 = 0"
        )
        database.execute("UPDATE output SET content = x'00' WHERE id % 5 = 0")


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.lists(edits, max_size=4),
            st.sampled_from(("goes on", "is started again", "is started again on a damaged file")),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_earlier_processes_have_kept_a_build_equals_a_clean_build(
    steps: list[tuple[list[tuple[str, int | None]], str, int]],
) -> None:
    files = {path: variants[0] for path, variants in VARIANTS.items()}
    with tempfile.TemporaryDirectory() as folder:
        memo = Path(folder) / "memo"
        process = Process(memo)
        process.generate(files, 1)
        for step, then, idle in steps:
            if then != "goes on":
                process.end()
                if then != "is started again":
                    damage(memo)
                process = Process(memo)
            for path, variant in step:
                files.pop(path, None)
                if variant is not None:
                    files[path] = VARIANTS[path][variant]
            generated = process.generate(files, idle)
        process.end()
    clean = Process(None)
    assert_equal(generated, clean.generate(files, 0), files)

"""An incremental build equals a clean build (I11), whatever was edited in whatever order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lehr.base.blocking import Inline
from lehr.base.diagnostics import errors
from lehr.generate.client import GenerationWorker
from lehr.sdk.generation import Generated
from lehr.testing.samples import MemorySnapshot

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
@settings(max_examples=20, deadline=None)
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
    assert incremental.diagnostics == clean.diagnostics
    assert (incremental.partition, incremental.generators) == (clean.partition, clean.generators)
    if not errors(clean.diagnostics):
        # With where each comes from: equality of assets includes it, their digests do not.
        assert dict(incremental.assets) == dict(clean.assets)
        made_of = {asset.made_by.item for asset in clean.assets.values() if asset.made_by is not None}
        assert made_of <= {"", *files, *clean.assets}

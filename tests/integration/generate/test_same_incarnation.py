"""The same commit gives the same incarnation, wherever and by whatever process it is made."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from lehr import wiring
from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.model.asset import Partition
from lehr.model.attempt import Publication
from lehr.model.incarnation import Incarnation
from lehr.publish.publisher import Publisher
from lehr.sdk.runtime import Runtime
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("test")
GENERATORS = """
from lehr.sdk.generator import *

@for_each_file("services/*.yaml")
def each(file):
    for part in {"config", "page", "script", "style"}:
        path = f"out/{file.text()}/{part}"
        yield asset(f"{file.text()}/{part}", "lehr.File", {"path": path, "content": file.path})

@for_all_files("services/*.yaml")
def whole(files):
    text = "".join(sorted(file.text() for file in files))
    yield asset("whole", "lehr.File", {"path": "out/whole", "content": text})

@for_each_asset("lehr.File", ids="*/page")
def owners(page):
    yield annotate(page.id, "lehr.Owner", {"team": page.id.partition("/")[0]})
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def committed(folder: Path) -> None:
    (folder / "generators").mkdir(parents=True)
    (folder / "services").mkdir()
    (folder / "lehr.yaml").write_text("partition: test\n")
    (folder / "generators/g.py").write_text(GENERATORS)
    for name in ("a", "b", "c"):
        (folder / f"services/{name}.yaml").write_text(name)
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "all")


async def published(repository: Path, state: Path, environment: dict[str, str]) -> Incarnation:
    """The incarnation that a new process with a state of its own makes of the repository."""
    deployment = wiring.Deployment(location=str(repository), state=state, base=state, kind="git")
    generation = wiring.generation(environment, state)
    store = SqliteStore(state / wiring.STATE_FILE)

    async def ask(write: Any) -> object:
        [answer] = store.commit([write])
        return answer

    publisher = Publisher(
        Runtime(PARTITION, store, wiring.registry(), SystemClock(), Chance(), Inline()),
        wiring.source(deployment),
        generation,
        wiring.generation,
        ask,
        Inline(),
    )
    try:
        attempt = await publisher.refresh()
        assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics
        newest = store.intent.newest(PARTITION)
        assert newest is not None
        return newest
    finally:
        await generation.close()
        store.close()


def test_folder_process_hash_seed_and_memo_do_not_count(tmp_path: Path) -> None:
    here, away = tmp_path / "here", tmp_path / "far/away"
    committed(here)
    git(tmp_path, "clone", str(here), str(away))
    states = [tmp_path / name for name in ("first", "second", "third")]
    for state in states:
        state.mkdir()
    other = {"PYTHONHASHSEED": "4711", "PYTHONMALLOC": "malloc"}
    first = asyncio.run(published(here, states[0], {}))
    second = asyncio.run(published(away, states[1], other))
    (states[1] / "generate").rename(states[2] / "generate")
    third = asyncio.run(published(here, states[2], other))
    for incarnation in (second, third):
        assert (incarnation.digest, incarnation.generators) == (first.digest, first.generators)
        assert [item.revision for item in incarnation.sources] == [item.revision for item in first.sources]

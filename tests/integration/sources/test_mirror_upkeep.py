"""Mirrors stay small, and nothing that an incarnation was made from is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.control.mirror_upkeep import Tidying, tidy_up
from lehr.model.incarnation import SourceRevision
from lehr.sources import DirectorySource, forget, pack
from lehr.testing.virtual import VirtualClock, run


def state_with(folder: Path, revisions: int) -> tuple[DirectorySource, list[SourceRevision]]:
    """A directory of which so many revisions were kept."""
    workspace = folder / "workspace"
    workspace.mkdir()
    source = DirectorySource(workspace, folder / "state" / "sources" / "a.git", clock=SystemClock())
    kept = []
    for number in range(revisions):
        (workspace / "a.yaml").write_text(f"a: {number}\n" * 50)
        revision = source.newest().revision
        source.keep(revision)
        kept.append(revision)
    return source, kept


def size(folder: Path) -> int:
    """Bytes on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_packing_makes_mirrors_small_while_others_read(tmp_path: Path) -> None:
    source, kept = state_with(tmp_path, 120)
    before = size(tmp_path / "state")
    problems: list[Exception] = []
    ended = threading.Event()

    def read() -> None:
        reader = DirectorySource(
            tmp_path / "workspace", tmp_path / "state" / "sources" / "a.git", clock=SystemClock()
        )
        while not ended.is_set():
            for number, revision in enumerate(kept):
                try:
                    assert reader.at(revision).read("a.yaml") == f"a: {number}\n".encode() * 50
                except Exception as error:
                    problems.append(error)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        pack(tmp_path / "state", most_loose=10)
    finally:
        ended.set()
        reading.join()
    assert not problems
    assert size(tmp_path / "state") * 5 < before
    assert source.at(kept[0]).read("a.yaml") == b"a: 0\n" * 50
    source.keep(kept[-1])


def test_what_no_incarnation_was_made_from_is_forgotten(tmp_path: Path) -> None:
    _source, kept = state_with(tmp_path, 6)
    mirror = tmp_path / "state" / "sources" / "a.git"
    assert forget(tmp_path / "state", [item.revision for item in kept[3:]]) == 3
    pack(tmp_path / "state", most_loose=0)
    assert forget(tmp_path / "state", [item.revision for item in kept[4:]]) == 1  # that was packed
    again = DirectorySource(tmp_path / "workspace", mirror, clock=SystemClock())
    assert [again._archive.kept(item) is not None for item in kept] == [False] * 4 + [True] * 2


def test_nothing_is_forgotten_while_something_is_published_or_the_store_is_empty() -> None:
    done: list[Any] = []
    header = SimpleNamespace(sources=(SourceRevision("git:a", "1"),))
    headers = [header]
    intent = SimpleNamespace(partitions=lambda: ["a"], incarnations=lambda name, limit: list(headers))

    async def main() -> None:
        clock, publishing = VirtualClock(), asyncio.Lock()

        def forgets(kept: Collection[str]) -> int:
            done.append(kept)
            return 0

        tidying = Tidying(forgets, lambda: done.append("pack"), Inline())
        store: Any = SimpleNamespace(intent=intent)
        task = asyncio.create_task(tidy_up(tidying, store, Inline(), publishing, clock))
        async with publishing:
            await clock.sleep(1000)
            assert done == []
            headers.append(SimpleNamespace(sources=(SourceRevision("git:a", "2"),)))
        await clock.sleep(1)
        assert done == [frozenset({"1", "2"}), "pack"]
        headers.clear()
        await clock.sleep(3600)
        assert done == [frozenset({"1", "2"}), "pack", "pack"]
        task.cancel()

    run(main, seed=1)

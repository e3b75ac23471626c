"""Rules of the hints that `lehr.File` gives, with real inotify."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Blocking, Inline
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.diff import Diff
from lehr.model.types import Registry
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.plugin import FilePlugin
from lehr.testing.plugins import FixedReader, push_of, target_of

PATIENCE = 5.0  # seconds; a hint that comes later fails the test


class Scene:
    """A plugin that watches, and what it hints."""

    def __init__(self, base: Path, blocking: Blocking | None = None) -> None:
        self.base = base
        self.plugin = FilePlugin(base, blocking or Inline(), fsync=False)
        self.hints = self.plugin.watch()

    def asset(self, path: str) -> Asset:
        return make_asset(AssetId(path), FILE, File(path=path, content="x"), {})

    async def diff(self, path: str) -> None:
        asset = self.asset(path)
        await self.plugin.diff(target_of(asset), FixedReader([asset], Registry(TYPES)))

    async def diff_many(self, *paths: str) -> None:
        assets = [self.asset(path) for path in paths]
        requests = [(target_of(asset), FixedReader([asset], Registry(TYPES))) for asset in assets]
        async for _index, diff in self.plugin.diff_many(requests):
            assert isinstance(diff, Diff)

    async def push(self, path: str) -> None:
        asset = self.asset(path)
        target = target_of(asset)
        await self.plugin.push(target, FixedReader([asset], Registry(TYPES)), push_of(target))

    async def hint(self) -> str:
        return (await asyncio.wait_for(anext(self.hints), PATIENCE)).id

    async def no_hint(self) -> None:
        """What the kernel has said until now is read in one turn of the loop."""
        task = asyncio.ensure_future(anext(self.hints))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})


def play(
    base: Path,
    act: Callable[[Scene], Coroutine[Any, Any, None]],
    *paths: str,
    blocking: Blocking | None = None,
) -> None:
    """Look at `paths`, apply them, and play `act` with no hint outstanding."""

    async def main() -> None:
        scene = Scene(base, blocking)
        for path in paths:
            await scene.push(path)
            await scene.diff(path)
        # What was looked at before the watch began is hinted at once.
        assert {await scene.hint() for _ in paths} == set(paths)
        for path in paths:
            await scene.diff(path)
        await act(scene)
        await scene.plugin.close()
        await scene.plugin.close()

    asyncio.run(main())


def edit(path: Path) -> None:
    path.write_text("edited")


def replace(path: Path) -> None:
    path.with_name("other").write_text("edited")
    path.with_name("other").rename(path)


def change_mode(path: Path) -> None:
    path.chmod(0o600)


def move_away(path: Path) -> None:
    path.rename(path.with_name("away"))


def remove_directory(path: Path) -> None:
    shutil.rmtree(path.parent)


def move_directory(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize(
    "disturb", [edit, replace, change_mode, Path.unlink, move_away, remove_directory, move_directory]
)
def test_what_changes_a_file_is_hinted(disturb: Callable[[Path], None], tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        disturb(tmp_path / "d" / "a")
        assert await scene.hint() == "d/a"

    play(tmp_path, act, "d/a")


def test_only_the_file_that_changed_is_hinted(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        edit(tmp_path / "stranger")
        edit(tmp_path / "b")
        assert await scene.hint() == "b"
        await scene.no_hint()

    play(tmp_path, act, "a", "b")


def test_a_directory_that_was_made_anew_is_watched_again(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for _ in range(3):
            shutil.rmtree(tmp_path / "d")
            assert await scene.hint() == "d/a"
            await scene.push("d/a")
            await scene.diff("d/a")
            edit(tmp_path / "d" / "a")
            assert await scene.hint() == "d/a"
            await scene.diff("d/a")

    play(tmp_path, act, "d/a")


def test_a_missing_directory_is_awaited(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.diff("x/y/z")
        (tmp_path / "x").mkdir()
        assert await scene.hint() == "x/y/z"

    play(tmp_path, act, "a")


def test_files_that_were_compared_together_are_watched(tmp_path: Path) -> None:
    async def main() -> None:
        scene = Scene(tmp_path)
        (tmp_path / "d").mkdir()
        first = asyncio.ensure_future(scene.hint())
        await asyncio.sleep(0)
        await scene.diff_many("d/a", "d/b")
        (tmp_path / "d/b").write_text("y")
        assert await first == "d/b"
        await scene.plugin.close()

    asyncio.run(main())


def test_two_assets_with_one_file_are_both_hinted(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        await scene.diff(str(tmp_path / "a"))
        edit(tmp_path / "a")
        assert {await scene.hint(), await scene.hint()} == {"a", str(tmp_path / "a")}

    play(tmp_path, act, "a")


def test_a_directory_reached_by_two_names_is_hinted_for_both(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / "d")

    async def act(scene: Scene) -> None:
        edit(tmp_path / "d" / "a")
        assert {await scene.hint(), await scene.hint()} == {"d/a", "alias/a"}

    play(tmp_path, act, "d/a", "alias/a")


def test_when_the_kernel_lost_events_everything_is_hinted(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    busy, stranger = tmp_path / "busy", tmp_path / "stranger"

    async def act(scene: Scene) -> None:
        stranger.touch()
        for number in range(most + 10):  # in turns, since equal neighbours are merged
            os.utime(busy if number % 2 else stranger)
        while await scene.hint() != "quiet":
            pass

    play(tmp_path, act, "busy", "quiet")


def test_a_watch_can_be_started_again(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        shutil.rmtree(tmp_path / "d")
        assert await scene.hint() == "d/a"
        task = asyncio.ensure_future(anext(scene.hints))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        scene.hints = scene.plugin.watch()
        assert await scene.hint() == "d/a"
        await scene.push("d/a")
        await scene.diff("d/a")
        edit(tmp_path / "d" / "a")
        assert await scene.hint() == "d/a"

    play(tmp_path, act, "d/a")


def test_keys_name_the_partition(tmp_path: Path) -> None:
    async def main() -> None:
        scene = Scene(tmp_path)
        await scene.diff("a")
        assert await anext(scene.hints) == AssetKey(Partition("test"), AssetId("a"))
        await scene.plugin.close()

    asyncio.run(main())


class Lingering(Inline):
    """The kernel reports the events of a call before its result arrives."""

    async def run(self, call, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        result = call(*args, **kwargs)
        for _ in range(5):
            await asyncio.sleep(0)
        return result


def test_what_a_push_does_is_not_hinted_but_what_follows_is(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        edit(tmp_path / "a")
        assert await scene.hint() == "a"
        hint = asyncio.ensure_future(scene.hint())
        await scene.push("a")
        await asyncio.sleep(0)
        assert not hint.done()
        edit(tmp_path / "a")
        assert await hint == "a"

    play(tmp_path, act, "a", blocking=Lingering())

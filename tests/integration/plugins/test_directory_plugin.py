"""Rules of the plugin `lehr.Directory`, on a real file system."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Change, Diff, Goal
from lehr.model.operation import Result
from lehr.model.types import Registry
from lehr.plugins.file.directories import DirectoryPlugin
from lehr.plugins.file.payload import DIRECTORY, TYPES, Directory
from lehr.sdk.protected import Protected
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles
from tests.integration.plugins.test_file_plugin import nothing_given_away

REGISTRY = Registry(TYPES)


def asset_of(directory: Directory) -> Asset:
    return make_asset(AssetId("a"), DIRECTORY, directory, {})


def make_plugin(base: Path, blocking: Blocking | None = None) -> DirectoryPlugin:
    protected = Protected({base / "state": "the state folder"})
    return DirectoryPlugin(base, blocking or Inline(), fsync=False, protected=protected)


def diff(base: Path, directory: Directory, goal: Goal = Goal.PRESENT) -> Diff:
    asset = asset_of(directory)
    return asyncio.run(make_plugin(base).diff(target_of(asset, goal), FixedReader([asset], REGISTRY)))


def push(base: Path, directory: Directory, goal: Goal = Goal.PRESENT) -> None:
    asset = asset_of(directory)
    target = target_of(asset, goal)
    reader = FixedReader([asset], REGISTRY)
    outcome = asyncio.run(make_plugin(base).push(target, reader, push_of(target)))
    assert outcome.result is Result.DONE
    assert diff(base, directory, goal).empty


def tree(root: Path) -> dict[str, object]:
    return {str(path): path.lstat().st_mode for path in sorted(root.rglob("*"))}


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("directory", 2)], ids=["inline", "threads"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, blocking: Callable[[], Blocking], tmp_path: Path) -> None:
    path = tmp_path / "var" / "app"
    subject = Subject(
        make=lambda: make_plugin(tmp_path, blocking()),
        registry=REGISTRY,
        asset=asset_of(Directory(path="var/app", mode="0750")),
        changed=asset_of(Directory(path=str(path), mode="1777")),
        disturb=lambda: path.chmod(0o700),
        observe=lambda: tree(tmp_path),
        troubles=(lambda: troubles.file_at(path), lambda: troubles.file_at(path.parent)),
    )
    asyncio.run(rule(subject))


def test_a_directory_is_made_with_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        push(tmp_path, Directory(path="a", mode="2775"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o2775


def test_another_mode_is_drift_and_entries_stay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    (tmp_path / "a" / "precious").write_text("x")
    assert diff(tmp_path, Directory(path="a")).changes == (Change("mode", "0755", "0700"),)
    push(tmp_path, Directory(path="a"))
    assert (tmp_path / "a" / "precious").read_text() == "x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give directories away")
def test_owner_and_group_are_set_and_seen(tmp_path: Path) -> None:
    directory = Directory(path="a", owner="12345", group="daemon", mode="2750")
    push(tmp_path, directory)
    status = (tmp_path / "a").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (12345, 0o2750)
    os.chown(tmp_path / "a", 0, 0)
    assert {"owner", "group"} <= {change.path for change in diff(tmp_path, directory).changes}


def test_an_owner_that_may_not_be_given_stalls(tmp_path: Path) -> None:
    with nothing_given_away(), raises("FIL126", StalledError):
        push(tmp_path, Directory(path="a", owner="12345"))


@pytest.mark.parametrize(
    ("directory", "code"),
    [
        (Directory(path="a", owner="no-such-user"), "FIL105"),
        (Directory(path="a", group="no-such-group"), "FIL106"),
    ],
    ids=["owner", "group"],
)
def test_an_owner_that_does_not_exist_stalls_before_anything_is_made(
    directory: Directory, code: str, tmp_path: Path
) -> None:
    with raises(code, StalledError):
        push(tmp_path, directory)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("goal", [Goal.PRESENT, Goal.ABSENT])
@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_nothing_but_a_directory_is_touched(kind: str, goal: Goal, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    if kind == "file":
        (tmp_path / "a").touch()
    else:
        (tmp_path / "a").symlink_to("elsewhere")
    before = tree(tmp_path)
    with raises("FIL120", StalledError, match=f"a is a {kind}"):
        push(tmp_path, Directory(path="a"), goal)
    assert tree(tmp_path) == before


def test_a_turndown_removes_only_an_empty_directory(tmp_path: Path) -> None:
    push(tmp_path, Directory(path="a"))
    (tmp_path / "a" / "precious").touch()
    with raises("FIL121", TransientError, match="it has precious"):
        push(tmp_path, Directory(path="a"), Goal.ABSENT)
    (tmp_path / "a" / "precious").unlink()
    push(tmp_path, Directory(path="a"), Goal.ABSENT)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["state/a", "state/new/a", "link/a", "state"])
def test_nothing_is_changed_in_a_protected_folder(path: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("state")
    before = tree(tmp_path)
    with raises("FIL109", StalledError):
        push(tmp_path, Directory(path=path))
    assert tree(tmp_path) == before


# --- exclusive ---------------------------------------------------------------------


class Exclusive:
    """An exclusive directory `a` in which `kept` is declared, and one plugin that looks at it and pushes."""

    def __init__(self, base: Path) -> None:
        self.path = base / "a"
        self._asset = asset_of(Directory(path="a", exclusive=True, declared=("kept",)))
        self._plugin = make_plugin(base)
        self._target = target_of(self._asset)
        self._reader = FixedReader([self._asset], REGISTRY)
        self.path.mkdir(mode=0o755)
        for name in ("kept", ".kept.lehr-tmp", "kept.lehr-fenced"):
            (self.path / name).touch()

    def diff(self) -> Diff:
        return asyncio.run(self._plugin.diff(self._target, self._reader))

    def found(self) -> dict[str, object]:
        return {change.path: change.observed["type"] for change in self.diff().changes}

    def push(self) -> None:
        asyncio.run(self._plugin.push(self._target, self._reader, push_of(self._target)))

    def names(self) -> set[str]:
        return {name for name in os.listdir(self.path) if "kept" not in name}


def test_what_is_not_declared_inside_is_named_and_its_removal_needs_approval(tmp_path: Path) -> None:
    exclusive = Exclusive(tmp_path)
    assert exclusive.diff().empty
    (exclusive.path / "stray").write_text("x")
    (exclusive.path / "link").symlink_to("/etc")
    (exclusive.path / "empty").mkdir()
    assert exclusive.diff().effects.destructive
    assert exclusive.found() == {
        "inside/empty": "directory",
        "inside/link": "symlink",
        "inside/stray": "file",
    }
    exclusive.push()
    assert exclusive.names() == set()
    assert (exclusive.path / "kept").exists()
    assert exclusive.diff().empty
    assert os.path.isdir("/etc")


def test_a_directory_that_is_not_exclusive_keeps_what_is_in_it(tmp_path: Path) -> None:
    push(tmp_path, Directory(path="a"))
    (tmp_path / "a" / "stray").touch()
    assert diff(tmp_path, Directory(path="a")).empty


@pytest.mark.parametrize("change", ["new", "edited", "replaced"])
def test_only_what_the_approved_diff_showed_is_removed(change: str, tmp_path: Path) -> None:
    exclusive = Exclusive(tmp_path)
    (exclusive.path / "stray").write_text("x")
    before = exclusive.diff()
    if change == "new":
        (exclusive.path / "precious").touch()
    elif change == "edited":
        (exclusive.path / "stray").write_text("y")
    else:
        (exclusive.path / "stray").unlink()
        (exclusive.path / "stray").symlink_to("/etc")
    names = exclusive.names()
    with raises("FIL124", TransientError):
        exclusive.push()
    assert exclusive.names() == names
    assert exclusive.diff().digest() != before.digest()
    exclusive.push()
    assert exclusive.names() == set()


def test_a_write_between_listing_and_removal_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exclusive = Exclusive(tmp_path)
    (exclusive.path / "a").touch()
    (exclusive.path / "b").touch()
    exclusive.diff()
    unlink = os.unlink

    def write_and_unlink(name: str, *, dir_fd: int) -> None:
        (exclusive.path / "b").write_text("in use")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", write_and_unlink)
    with raises("FIL124", TransientError, match="a/b has changed"):
        exclusive.push()
    assert exclusive.names() == {"b"}


def test_a_push_without_a_look_removes_nothing(tmp_path: Path) -> None:
    exclusive = Exclusive(tmp_path)
    (exclusive.path / "stray").touch()
    with raises("FIL124", TransientError):
        exclusive.push()
    assert exclusive.names() == {"stray"}


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_pipes_and_directories_with_content_are_never_removed(kind: str, tmp_path: Path) -> None:
    exclusive = Exclusive(tmp_path)
    (exclusive.path / "a").touch()
    if kind == "fifo":
        os.mkfifo(exclusive.path / "x")
    else:
        (exclusive.path / "x" / "y").mkdir(parents=True)
    exclusive.diff()
    with raises("FIL125", StalledError, match=f"a/x is a {kind}"):
        exclusive.push()
    assert exclusive.names() == {"a", "x"}


def test_an_exclusive_directory_behind_a_link_is_not_listed(tmp_path: Path) -> None:
    exclusive = Exclusive(tmp_path)
    exclusive.path.rename(tmp_path / "real")
    (tmp_path / "real" / "stray").touch()
    exclusive.path.symlink_to("real")
    assert exclusive.diff().changes == (Change("type", "directory", "symlink"),)
    with raises("FIL120", StalledError):
        exclusive.push()
    assert (tmp_path / "real" / "stray").exists()


def test_of_very_many_entries_the_first_are_named_and_all_are_approved(tmp_path: Path) -> None:
    exclusive = Exclusive(tmp_path)
    for number in range(150):
        (exclusive.path / f"{number:03}").touch()
    first = exclusive.diff()
    assert [change.path for change in first.changes[-2:]] == ["inside/099", "inside/*"]
    (exclusive.path / "149").write_text("x")
    assert exclusive.diff().digest() != first.digest()
    exclusive.push()
    assert exclusive.names() == set()


def test_an_entry_that_appears_in_an_exclusive_directory_wakes_its_asset(tmp_path: Path) -> None:
    push(tmp_path, Directory(path="a", exclusive=True))
    wakes(tmp_path, Directory(path="a", exclusive=True), Goal.PRESENT, (tmp_path / "a" / "stray").touch)


def test_a_directory_that_becomes_empty_wakes_its_turndown(tmp_path: Path) -> None:
    stray = tmp_path / "a" / "stray"
    stray.parent.mkdir()
    stray.touch()
    wakes(tmp_path, Directory(path="a"), Goal.ABSENT, stray.unlink)


def wakes(base: Path, directory: Directory, goal: Goal, act: Callable[[], object]) -> None:
    """`act` wakes the asset, whose directory was compared before."""
    asset = asset_of(directory)
    target, reader = target_of(asset, goal), FixedReader([asset], REGISTRY)

    async def scene() -> None:
        plugin = make_plugin(base)
        first = asyncio.ensure_future(anext(plugin.watch()))
        await asyncio.sleep(0)
        await plugin.diff(target, reader)
        act()
        assert await asyncio.wait_for(first, 20) == target.key
        await plugin.close()

    asyncio.run(scene())

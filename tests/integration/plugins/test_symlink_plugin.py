"""Rules of the plugin `lehr.Symlink`, on a real file system."""

from __future__ import annotations

import asyncio
import grp
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Change, Diff, Goal
from lehr.model.operation import Result
from lehr.model.types import Registry
from lehr.plugins.file.payload import FILE, SYMLINK, TYPES, File, Symlink
from lehr.plugins.file.symlinks import SymlinkPlugin
from lehr.sdk.protected import Protected
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles
from tests.integration.plugins.test_file_plugin import nothing_given_away

REGISTRY = Registry(TYPES)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give entries away")


def asset_of(link: Symlink) -> Asset:
    return make_asset(AssetId("a"), SYMLINK, link, {})


def to(target: str) -> Symlink:
    return Symlink(path="a", target=target)


def tree(root: Path) -> dict[str, object]:
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


def make_plugin(base: Path, blocking: Blocking | None = None) -> SymlinkPlugin:
    protected = Protected({base / "state": "the state folder"})
    return SymlinkPlugin(base, blocking or Inline(), fsync=False, protected=protected)


def diff(base: Path, link: Symlink, goal: Goal = Goal.PRESENT) -> Diff:
    asset = asset_of(link)
    return asyncio.run(make_plugin(base).diff(target_of(asset, goal), FixedReader([asset], REGISTRY)))


def push(base: Path, link: Symlink, goal: Goal = Goal.PRESENT) -> None:
    asset = asset_of(link)
    target = target_of(asset, goal)
    reader = FixedReader([asset], REGISTRY)
    outcome = asyncio.run(make_plugin(base).push(target, reader, push_of(target)))
    assert outcome.result is Result.DONE
    assert diff(base, link, goal).empty


def unlink_and_link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("symlink", 2)], ids=["inline", "threads"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, blocking: Callable[[], Blocking], tmp_path: Path) -> None:
    path = tmp_path / "sites" / "shop"
    subject = Subject(
        make=lambda: make_plugin(tmp_path, blocking()),
        registry=REGISTRY,
        asset=asset_of(Symlink(path="sites/shop", target="../available/shop")),
        changed=asset_of(Symlink(path=str(path), target="/srv/shop")),
        disturb=path.unlink,
        observe=lambda: tree(tmp_path),
        troubles=(lambda: troubles.directory_at(path), lambda: troubles.file_at(path.parent)),
    )
    asyncio.run(rule(subject))


def test_a_link_is_made_as_written_even_if_it_leads_nowhere(tmp_path: Path) -> None:
    assert diff(tmp_path, to("../nowhere")).changes == (Change("target", "../nowhere", None),)
    push(tmp_path, to("../nowhere"))
    assert os.readlink(tmp_path / "a") == "../nowhere"


def test_another_target_is_drift_and_is_replaced_without_following(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").symlink_to("folder")
    assert diff(tmp_path, to("b")).changes == (Change("target", "b", "folder"),)
    push(tmp_path, to("b"))
    assert tree(tmp_path / "folder") == {}
    assert sorted(os.listdir(tmp_path)) == ["a", "folder"]


@pytest.mark.parametrize("goal", [Goal.PRESENT, Goal.FENCED, Goal.ABSENT])
@pytest.mark.parametrize("make", [Path.touch, Path.mkdir], ids=["file", "directory"])
@pytest.mark.parametrize("name", ["a", "a.lehr-fenced"])
def test_only_links_are_replaced_moved_or_removed(
    name: str, make: Callable[[Path], None], goal: Goal, tmp_path: Path
) -> None:
    make(tmp_path / name)
    (tmp_path / "b").write_text("target")
    if name == "a.lehr-fenced":
        (tmp_path / "a").symlink_to("b")
    before = tree(tmp_path)
    with raises("FIL117", StalledError, match=f"{name} is a"):
        push(tmp_path, to("b"), goal)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("goal", [Goal.FENCED, Goal.ABSENT])
def test_a_turndown_removes_only_the_link_that_intent_declares(goal: Goal, tmp_path: Path) -> None:
    push(tmp_path, to("b"))
    unlink_and_link(tmp_path / "a", "theirs")
    with raises("FIL118", StalledError, match="links to theirs, not to b"):
        push(tmp_path, to("b"), goal)
    assert os.readlink(tmp_path / "a") == "theirs"


def test_a_turndown_leaves_the_target(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("precious")
    push(tmp_path, to("b"))
    push(tmp_path, to("b"), Goal.FENCED)
    assert sorted(os.listdir(tmp_path)) == ["a.lehr-fenced", "b"]
    push(tmp_path, to("b"))
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    push(tmp_path, to("b"), Goal.FENCED)
    push(tmp_path, to("b"), Goal.ABSENT)
    assert os.listdir(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "precious"


def test_what_a_crashed_push_left_is_a_difference_and_cleaned(tmp_path: Path) -> None:
    push(tmp_path, to("b"))
    (tmp_path / ".a.lehr-tmp").symlink_to("c")
    assert [change.path for change in diff(tmp_path, to("b")).changes] == ["temporary"]
    push(tmp_path, to("b"))
    assert os.listdir(tmp_path) == ["a"]


@needs_root
def test_owner_and_group_of_the_link_are_set_and_seen_and_its_target_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    link = Symlink(path="a", target="b", owner="12345", group="daemon")
    push(tmp_path, to("b"))
    assert diff(tmp_path, link).changes == (
        Change("owner", "12345", "root"),
        Change("group", "daemon", "root"),
    )
    push(tmp_path, link)
    status = (tmp_path / "a").lstat()
    assert (status.st_uid, status.st_gid) == (12345, grp.getgrnam("daemon").gr_gid)
    assert (tmp_path / "b").stat().st_uid == 0


@needs_root
def test_an_owner_that_intent_does_not_name_is_kept(tmp_path: Path) -> None:
    push(tmp_path, Symlink(path="a", target="b", owner="12345"))
    push(tmp_path, to("c"))
    assert (tmp_path / "a").lstat().st_uid == 12345


def test_an_owner_that_may_not_be_given_stalls(tmp_path: Path) -> None:
    with nothing_given_away(), raises("FIL126", StalledError):
        push(tmp_path, Symlink(path="a", target="b", owner="12345"))
    assert tree(tmp_path) == {}


def test_an_owner_that_does_not_exist_stalls_before_anything_is_made(tmp_path: Path) -> None:
    with raises("FIL105", StalledError):
        push(tmp_path, Symlink(path="a", target="b", owner="no-such-user"))
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("path", ["state/a", "state/new/a", "link/a"])
def test_no_link_is_made_in_a_protected_folder(path: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "link").symlink_to("state")
    with raises("FIL109", StalledError):
        push(tmp_path, Symlink(path=path, target="/etc/passwd"))
    assert os.listdir(tmp_path / "state") == []


def test_a_missing_folder_stalls_if_it_must_not_be_made(tmp_path: Path) -> None:
    with raises("FIL108", StalledError):
        push(tmp_path, Symlink(path="x/a", target="b", make_parents=False))


def test_a_file_and_a_link_cannot_share_a_path() -> None:
    file = make_asset(AssetId("f"), FILE, File(path="a", content=""), {})
    assert REGISTRY.claims(file) == REGISTRY.claims(asset_of(to("b"))) == ("file:a",)


def test_a_replaced_link_wakes_its_asset(tmp_path: Path) -> None:
    asset = asset_of(to("b"))
    target, reader = target_of(asset), FixedReader([asset], REGISTRY)

    async def scene() -> None:
        plugin = make_plugin(tmp_path)
        await plugin.push(target, reader, push_of(target))
        first = asyncio.ensure_future(anext(plugin.watch()))
        await asyncio.sleep(0)
        await plugin.diff(target, reader)
        unlink_and_link(tmp_path / "a", "theirs")
        assert await asyncio.wait_for(first, 20) == target.key
        await plugin.close()

    asyncio.run(scene())

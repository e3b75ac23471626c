"""Rules of the plugin `lehr.File`, on a real file system."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import resource
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.short_calls import ShortCalls
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Change, Diff, Goal
from lehr.model.operation import DONE, Progress, Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.file import disk
from lehr.plugins.file.disk import NewFile
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.plugin import FilePlugin
from lehr.sdk.protected import Protected
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles

REGISTRY = Registry(TYPES)
SECRET = "hunter2-hunter2"


def asset_of(file: File, id: str = "motd") -> Asset:
    return make_asset(AssetId(id), FILE, file, {})


def file_at(path: Path | str, content: str = "hello\n", mode: str = "0644") -> File:
    return File(path=str(path), content=content, mode=mode)


def tree(root: Path) -> dict[str, object]:
    """Everything under `root` but times and inode numbers."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), content)
    return found


def edit(path: Path) -> None:
    path.write_text(f"edited {SECRET}\n")


def make_plugin(base: Path, blocking: Blocking | None = None) -> FilePlugin:
    return FilePlugin(base, blocking or Inline(), fsync=False)


def diff(base: Path, file: File, goal: Goal = Goal.PRESENT) -> Diff:
    asset = asset_of(file)
    return asyncio.run(make_plugin(base).diff(target_of(asset, goal), FixedReader([asset], REGISTRY)))


def push(base: Path, file: File, goal: Goal = Goal.PRESENT) -> None:
    asset = asset_of(file)
    target = target_of(asset, goal)
    reader = FixedReader([asset], REGISTRY)
    outcome = asyncio.run(make_plugin(base).push(target, reader, push_of(target)))
    assert outcome.result is Result.DONE
    assert diff(base, file, goal).empty


def paths(found: Diff) -> list[str]:
    return [change.path for change in found.changes]


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("file", 2)], ids=["inline", "threads"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, blocking: Callable[[], Blocking], tmp_path: Path) -> None:
    path = tmp_path / "etc" / "app.conf"
    subject = Subject(
        make=lambda: make_plugin(tmp_path, blocking()),
        registry=REGISTRY,
        asset=asset_of(file_at("etc/app.conf", f"password={SECRET}\n", "0600")),
        changed=asset_of(file_at(path, f"password={SECRET}\nport=1\n", "0640")),
        disturb=lambda: edit(path),
        observe=lambda: tree(tmp_path),
        secret=SECRET,
        troubles=(lambda: troubles.directory_at(path), lambda: troubles.file_at(path.parent)),
        query=("etc/*",),
    )
    asyncio.run(rule(subject))


def secret_file(path: Path | str, name: str) -> File:
    return File(path=str(path), content_secret=Secret(f"env:{name}"), mode="0600")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract_with_secret_content(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "token"
    secrets = FixedSecrets({"env:A": SECRET, "env:B": f"{SECRET}, another"})
    subject = Subject(
        make=lambda: FilePlugin(tmp_path, Inline(), fsync=False, secrets=secrets),
        registry=REGISTRY,
        asset=asset_of(secret_file("token", "A")),
        changed=asset_of(secret_file("token", "B")),
        disturb=lambda: edit(path),
        observe=lambda: tree(tmp_path),
        secret=SECRET,
        troubles=(lambda: troubles.directory_at(path), lambda: without(secrets, "env:A")),
    )
    asyncio.run(rule(subject))


@contextmanager
def without(secrets: FixedSecrets, name: str) -> Iterator[None]:
    kept = secrets.values.pop(name)
    try:
        yield
    finally:
        secrets.values[name] = kept


def test_a_diff_of_secret_content_tells_neither_size_nor_digest(tmp_path: Path) -> None:
    secrets = FixedSecrets({"env:A": SECRET})
    plugin = FilePlugin(tmp_path, Inline(), fsync=False, secrets=secrets)
    asset = asset_of(secret_file("a", "A"))

    def changes() -> tuple[Change, ...]:
        return asyncio.run(plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))).changes

    assert changes() == (Change("content", {"secret": "env:A"}, None),)
    (tmp_path / "a").write_text("something else")
    (tmp_path / "a").chmod(0o600)
    assert changes() == (Change("content", {"secret": "env:A"}, "something else (secret)"),)
    (tmp_path / "a").write_text(SECRET)
    assert changes() == ()
    secrets.values["env:A"] = "rotated"
    assert [change.path for change in changes()] == ["content"]


def test_a_secret_is_not_asked_for_to_take_its_file_away(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(SECRET)
    push(tmp_path, secret_file("a", "GONE"), Goal.ABSENT)
    assert not (tmp_path / "a").exists()


def test_a_diff_tells_size_digest_and_line_but_no_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    (tmp_path / "a").chmod(0o600)
    found = diff(tmp_path, file_at("a", "one\n2\nthree\n"))
    content, mode = found.changes
    assert content.observed["line"] == 2
    assert content.intended["size"] == 12
    assert content.intended["digest"] != content.observed["digest"]
    assert mode == Change("mode", "0644", "0600")


@pytest.mark.parametrize(
    ("observed", "line"), [("", 1), ("a\nb", 3), ("a\nb\n", 3), ("a\nb\nc\nd", 4)], ids=repr
)
def test_the_line_is_the_first_that_differs(observed: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(observed)
    found = diff(tmp_path, file_at("f", "a\nb\nc"))
    assert next(change for change in found.changes if change.path == "content").observed["line"] == line


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(1 << 40)
    (change,) = (item for item in diff(tmp_path, file_at("big")).changes if item.path == "content")
    assert change.observed == {"size": 1 << 40, "digest": None, "line": 1}
    push(tmp_path, file_at("big"))


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    data = bytes(range(256))
    push(tmp_path, File(path="bytes", content_base64=data))
    assert (tmp_path / "bytes").read_bytes() == data


def test_a_symlink_is_replaced_and_never_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("hello\n")
    (tmp_path / "link").symlink_to(victim)
    assert diff(tmp_path, file_at("link")).changes == (Change("type", "file", "symlink"),)
    push(tmp_path, file_at("link", "new\n"))
    assert victim.read_text() == "hello\n"
    assert not (tmp_path / "link").is_symlink()


def test_a_dangling_symlink_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    push(tmp_path, file_at("link"))
    assert not (tmp_path / "nowhere").exists()


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.mkdir()
    (path / "precious").touch()


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("goal", [Goal.PRESENT, Goal.FENCED, Goal.ABSENT])
@pytest.mark.parametrize("make", [make_fifo, make_directory, make_socket])
def test_what_is_no_file_neither_blocks_nor_is_touched(
    make: Callable[[Path], None], goal: Goal, tmp_path: Path
) -> None:
    make(tmp_path / "x")
    before = tree(tmp_path)
    assert paths(diff(tmp_path, file_at("x"), goal)) == ["type"]
    with raises("FIL107", StalledError):
        push(tmp_path, file_at("x"), goal)
    assert tree(tmp_path) == before


def test_parents_are_made_unless_intent_says_not(tmp_path: Path) -> None:
    push(tmp_path, file_at("a/b/c"))
    with raises("FIL108", StalledError):
        push(tmp_path, File(path="x/y", content="", make_parents=False))
    assert not (tmp_path / "x").exists()


def test_a_file_where_a_directory_should_be_stalls(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("file")
    with raises("FIL104", StalledError, match="not a directory"):
        push(tmp_path, file_at("a/b"))
    assert diff(tmp_path, file_at("a/b"), Goal.ABSENT).empty


def test_what_a_crashed_push_left_is_a_difference_and_cleaned(tmp_path: Path) -> None:
    push(tmp_path, file_at("a"))
    left = tmp_path / ".a.lehr-tmp"
    left.write_text("half")
    left.chmod(0o400)
    for goal in (Goal.PRESENT, Goal.ABSENT):
        assert "temporary" in paths(diff(tmp_path, file_at("a"), goal))
    push(tmp_path, file_at("a"))
    assert os.listdir(tmp_path) == ["a"]


def test_a_leftover_is_never_written_into(tmp_path: Path) -> None:
    """Somebody else may hold it open, and read what we would write."""
    left = tmp_path / ".a.lehr-tmp"
    left.touch()
    with left.open() as spy:
        push(tmp_path, file_at("a", SECRET))
        assert spy.read() == ""


def test_a_symlink_in_place_of_the_temporary_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / ".a.lehr-tmp").symlink_to(victim)
    push(tmp_path, file_at("a"))
    assert victim.read_text() == "keep"


def test_a_push_under_way_elsewhere_is_not_disturbed(tmp_path: Path) -> None:
    """Its temporary file is locked as long as its process lives."""
    other = os.open(tmp_path / ".a.lehr-tmp", os.O_WRONLY | os.O_CREAT)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with raises("FIL104", TransientError, match="another push"):
            push(tmp_path, file_at("a"))
        assert (tmp_path / ".a.lehr-tmp").exists()
    finally:
        os.close(other)
    push(tmp_path, file_at("a"))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    push(tmp_path, file_at("a", "old"))
    with largest_file(1000), raises("FIL104", TransientError, match="File too large"):
        push(tmp_path, file_at("a", "new" * 1000))
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_said_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(tmp_path, file_at("a", "old"))
    real = os.write
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        monkeypatch.setattr("os.write", lambda _, data: real(full, data))
        with raises("FIL104", TransientError, match=r"No space left .*free space"):
            push(tmp_path, file_at("a", "new"))
    finally:
        os.close(full)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, StalledError),
        (errno.EROFS, StalledError),
        (errno.EDQUOT, TransientError),
        (errno.EIO, TransientError),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else value.__name__,
)
def test_the_systems_errors_are_translated(
    number: int, kind: type[LehrError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.rename", refuse)
    with raises("FIL104", kind, match=os.strerror(number)):
        push(tmp_path, file_at("a"))
    assert os.listdir(tmp_path) == []


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may do anything: be somebody else for a while."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_directory_that_may_not_be_written_stalls(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with unprivileged(), raises("FIL104", StalledError, match="permissions"):
        push(tmp_path, file_at("closed/a"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_and_group_are_set_and_seen(tmp_path: Path) -> None:
    file = File(path="a", content="x", owner="12345", group="daemon", mode="4755")
    push(tmp_path, file)
    status = (tmp_path / "a").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (12345, 0o4755)
    os.chown(tmp_path / "a", 0, 0)
    assert {"owner", "group"} <= set(paths(diff(tmp_path, file)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_owner_that_intent_does_not_name_is_kept(tmp_path: Path) -> None:
    push(tmp_path, file_at("a", "old"))
    os.chown(tmp_path / "a", 12345, 12346)
    push(tmp_path, file_at("a", "new"))
    status = (tmp_path / "a").stat()
    assert (status.st_uid, status.st_gid) == (12345, 12346)


@contextmanager
def nothing_given_away() -> Iterator[None]:
    """As for a user who is not root."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fchown", refuse)
        patch.setattr(os, "lchown", refuse)
        yield


def test_an_owner_that_may_not_be_given_stalls(tmp_path: Path) -> None:
    with nothing_given_away(), raises("FIL126", StalledError, match="run Lehr as root"):
        push(tmp_path, File(path="a", content="x", owner="12345"))
    assert os.listdir(tmp_path) == []


def test_an_owner_that_does_not_exist_stalls(tmp_path: Path) -> None:
    with raises("FIL105", StalledError, match="no-such-user"):
        push(tmp_path, File(path="a", content="x", owner="no-such-user"))
    assert os.listdir(tmp_path) == []


def test_fenced_is_aside_and_present_brings_it_back(tmp_path: Path) -> None:
    push(tmp_path, file_at("a", "text"))
    push(tmp_path, file_at("a", "text"), Goal.FENCED)
    assert os.listdir(tmp_path) == ["a.lehr-fenced"]
    assert (tmp_path / "a.lehr-fenced").read_text() == "text"
    push(tmp_path, file_at("a", "text"))
    assert os.listdir(tmp_path) == ["a"]


def test_absent_removes_edited_and_fenced_files_too(tmp_path: Path) -> None:
    push(tmp_path, file_at("a"))
    push(tmp_path, file_at("a"), Goal.FENCED)
    (tmp_path / "a").write_text("edited")
    push(tmp_path, file_at("a"), Goal.ABSENT)
    assert os.listdir(tmp_path) == []


def test_a_push_with_nothing_to_do_keeps_the_inode(tmp_path: Path) -> None:
    push(tmp_path, file_at("a"))
    before = (tmp_path / "a").stat()
    push(tmp_path, file_at("a"))
    after = (tmp_path / "a").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_with_fsync_the_push_ends_done(tmp_path: Path) -> None:
    async def scene() -> None:
        plugin = FilePlugin(tmp_path, Inline())
        asset = asset_of(file_at("d/a"))
        target = target_of(asset)
        await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target))
        assert (await plugin.diff(target, FixedReader([asset], REGISTRY))).empty
        await plugin.close()

    asyncio.run(scene())


def test_status_is_running_while_a_cancelled_push_is_still_writing(tmp_path: Path) -> None:
    """The gate stands for a disk that hangs: its thread cannot be cancelled."""

    async def scene() -> None:
        gate = asyncio.Event()

        class Gated(Inline):
            async def run(self, call, /, *args, **kwargs):  # type: ignore[no-untyped-def]
                await gate.wait()
                return call(*args, **kwargs)

        plugin = make_plugin(tmp_path, Gated())
        asset = asset_of(file_at("a"))
        target = target_of(asset)
        under_way = push_of(target)
        task = asyncio.create_task(plugin.push(target, FixedReader([asset], REGISTRY), under_way))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await plugin.status(under_way.operation) is Progress.RUNNING
        gate.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        assert await plugin.status(under_way.operation) is Progress.ENDED
        assert (tmp_path / "a").exists()
        await plugin.close()

    asyncio.run(scene())


# --- pushes in one folder -------------------------------------------------------------


def push_all(plugin: FilePlugin, files: list[File], goal: Goal = Goal.PRESENT) -> list[object]:
    """Push files at the same time; returns the outcome or error of each."""

    async def main() -> list[object]:
        async def one(number: int, file: File) -> object:
            asset = asset_of(file, f"a{number}")
            target = target_of(asset, goal)
            return await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target))

        try:
            return await asyncio.gather(*(one(*it) for it in enumerate(files)), return_exceptions=True)
        finally:
            await plugin.close()

    return asyncio.run(main())


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("file", 4)], ids=["inline", "threads"])
def test_files_that_are_pushed_together_are_as_intended(
    blocking: Callable[[], Blocking], tmp_path: Path
) -> None:
    for name in ("f1", "f2.lehr-fenced", ".f3.lehr-tmp"):
        (tmp_path / name).write_text("old")
    files = [file_at(f"f{number}", f"{number}\n", f"06{number:02o}") for number in range(50)]
    files += [file_at(f"new/{number}", f"{number}\n") for number in range(5)]
    assert push_all(FilePlugin(tmp_path, blocking()), files) == [DONE] * 55
    assert all(diff(tmp_path, file).empty for file in files)
    assert len(tree(tmp_path)) == 56
    assert push_all(FilePlugin(tmp_path, blocking()), files, Goal.FENCED) == [DONE] * 55
    assert all(diff(tmp_path, file, Goal.FENCED).empty for file in files)
    assert push_all(FilePlugin(tmp_path, blocking()), files, Goal.ABSENT) == [DONE] * 55
    assert os.listdir(tmp_path) == ["new"]
    assert not os.listdir(tmp_path / "new")


def test_an_error_ends_only_the_push_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    sync = NewFile.sync

    def sync_but_one(new: NewFile) -> None:
        if new.path.endswith("/c"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(new)

    monkeypatch.setattr(NewFile, "sync", sync_but_one)
    plugin = FilePlugin(tmp_path, Threads("file", 4))
    directory, done, broken, last = push_all(plugin, [file_at(name) for name in "abcd"])
    assert (done, last) == (DONE, DONE)
    assert isinstance(directory, StalledError)
    assert isinstance(broken, TransientError)
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "d"]


def test_a_folder_that_cannot_be_synced_fails_all_pushes_that_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(tmp_path, file_at("same"))
    synced = []

    def fail(path: str) -> None:
        synced.append(path)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(disk, "sync_directory", fail)
    files = [file_at(name) for name in ("same", *"abcdef")]
    same, *changed = push_all(FilePlugin(tmp_path, Threads("file", 4)), files)
    assert same == DONE
    assert [type(error) for error in changed] == [TransientError] * 6
    assert len(synced) < 6, "an error that the kernel reports once must reach all"


def test_pushes_in_a_folder_that_hangs_delay_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    hold = disk.hold

    def hold_slowly(folder: str) -> int:
        if folder.endswith("slow"):
            assert answers.wait(10)
        return hold(folder)

    monkeypatch.setattr(disk, "hold", hold_slowly)

    async def main() -> None:
        plugin = FilePlugin(tmp_path, Threads("file", 4), looking=ShortCalls("file looks", 4))
        assets = [asset_of(file_at(path), path) for path in ("slow/a", "slow/b", "quick/a", "quick/b")]
        pushes = [
            asyncio.create_task(plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)))
            for asset in assets
            for target in [target_of(asset)]
        ]
        try:
            assert await asyncio.wait_for(asyncio.gather(*pushes[2:]), 10) == [DONE, DONE]
            assert not any(push.done() for push in pushes[:2])
        finally:
            answers.set()
        assert await asyncio.gather(*pushes[:2]) == [DONE, DONE]
        await plugin.close()

    asyncio.run(main())


# --- folders in which nothing is changed ----------------------------------------------


def protecting(base: Path, *folders: Path) -> FilePlugin:
    protected = Protected(dict.fromkeys(folders, "the state folder"))
    return FilePlugin(base, Inline(), fsync=False, protected=protected)


@pytest.mark.parametrize("goal", [Goal.PRESENT, Goal.FENCED, Goal.ABSENT])
@pytest.mark.parametrize("path", ["state/lock", "link/lock", "repository/.git/config"])
def test_nothing_is_changed_in_a_protected_folder(tmp_path: Path, path: str, goal: Goal) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to("state")
    for file in ("state/lock", "repository/.git/config"):
        (tmp_path / file).write_text("ours")
    before, asset = tree(tmp_path), asset_of(file_at(path))
    target = target_of(asset, goal)
    with raises("FIL109", StalledError, match="is in the"):
        asyncio.run(
            protecting(tmp_path, tmp_path / "state").push(
                target, FixedReader([asset], REGISTRY), push_of(target)
            )
        )
    assert tree(tmp_path) == before


def test_no_folder_is_made_in_a_protected_one(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    asset = asset_of(file_at("state/a/b/c"))
    target = target_of(asset, Goal.PRESENT)
    plugin = protecting(tmp_path, tmp_path / "state")
    with raises("FIL109", StalledError):
        asyncio.run(plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)))
    assert os.listdir(tmp_path / "state") == []


def test_a_link_that_changes_during_a_push_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("state", "production"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to("production")
    look = disk.look

    def swap_and_look(path: str, *, as_blob: bool = False) -> disk.DiskEntry | None:
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to("state")
        return look(path, as_blob=as_blob)

    monkeypatch.setattr(disk, "look", swap_and_look)
    asset = asset_of(file_at("link/lock"))
    target = target_of(asset, Goal.PRESENT)
    plugin = protecting(tmp_path, tmp_path / "state")
    asyncio.run(plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)))
    assert os.listdir(tmp_path / "state") == []
    assert os.listdir(tmp_path / "production") == ["lock"]


@pytest.mark.parametrize("change", [-1000, -1, 0, 1, 1000])
def test_a_file_is_read_whole_though_its_size_changes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    before, after = b"x" * 5000, b"y" * (5000 + change)
    path = tmp_path / "file"
    path.write_bytes(before)
    status = os.fstat

    def look_and_change(descriptor: int) -> os.stat_result:
        found = status(descriptor)
        path.write_bytes(after)
        return found

    monkeypatch.setattr(os, "fstat", look_and_change)
    found = disk.look(str(path))
    assert found is not None
    assert found.data == after


def test_a_file_that_is_slow_to_read_delays_no_other_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [file_at(tmp_path / f"f{number:02}") for number in range(40)]
    slow, answers = threading.Event(), threading.Event()
    look = disk.look

    def look_slowly(path: str, *, as_blob: bool) -> disk.DiskEntry | None:
        if path.endswith("f03"):
            slow.set()
            assert answers.wait(10)
        return look(path, as_blob=as_blob)

    monkeypatch.setattr(disk, "look", look_slowly)
    assets = [asset_of(file, f"a{number:02}") for number, file in enumerate(files)]
    requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]

    async def main() -> list[int]:
        plugin = make_plugin(tmp_path, Threads("file", 4))
        found: list[int] = []
        try:
            async for index, diff in plugin.diff_many(requests):
                assert isinstance(diff, Diff)
                found.append(index)
                if len(found) == len(files) - 1:
                    assert slow.is_set()
                    answers.set()
        finally:
            answers.set()
            await plugin.close()
        return found

    found = asyncio.run(main())
    assert found[-1] == 3
    assert sorted(found) == list(range(40))

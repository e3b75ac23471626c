"""Rules of `source` of `lehr.File`: the content is a file of the workspace, by its digest."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pygit2
import pytest

from lehr.base.blocking import Inline
from lehr.base.digest import short
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Change, Diff
from lehr.model.types import Registry
from lehr.model.workspace_file import MOST_BYTES, WorkspaceFile
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.plugin import FilePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles

REGISTRY = Registry(TYPES)
BINARY = bytes(range(256)) * 8192
"""2 MiB: more than an asset can hold."""


class Kept:
    """Contents by digest, as mirrors keep them."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def file(self, content: bytes, path: str = "a", mode: str = "0644") -> File:
        digest = str(pygit2.hash(content))
        self.contents[digest] = content
        return File(path=path, source=WorkspaceFile("files/a", digest, len(content)), mode=mode)

    def read(self, path: str, digest: str) -> bytes | None:
        assert path == "files/a"
        return self.contents.get(digest)

    def plugin(self, base: Path) -> FilePlugin:
        return FilePlugin(base, Inline(), fsync=False, contents=self.read)

    def diff(self, base: Path, file: File) -> Diff:
        asset = asset_of(file)
        return asyncio.run(self.plugin(base).diff(target_of(asset), FixedReader([asset], REGISTRY)))

    def push(self, base: Path, file: File) -> None:
        asset = asset_of(file)
        target = target_of(asset)
        asyncio.run(self.plugin(base).push(target, FixedReader([asset], REGISTRY), push_of(target)))
        assert self.diff(base, file).empty


def asset_of(file: File) -> Asset:
    return make_asset(AssetId("a"), FILE, file, {})


def edit(path: Path) -> None:
    path.write_text("edited")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    kept, path = Kept(), tmp_path / "etc" / "app.conf"
    subject = Subject(
        make=lambda: kept.plugin(tmp_path),
        registry=REGISTRY,
        asset=asset_of(kept.file(b"one\0", "etc/app.conf")),
        changed=asset_of(kept.file(b"two\0", str(path))),
        disturb=lambda: edit(path),
        observe=lambda: {item.name: item.is_file() and item.read_bytes() for item in tmp_path.rglob("*")},
        troubles=(lambda: troubles.directory_at(path), lambda: troubles.file_at(path.parent)),
        query=("etc/*",),
    )
    asyncio.run(rule(subject))


@pytest.mark.parametrize("size", [0, 1, len(BINARY), MOST_BYTES])
def test_any_bytes_up_to_the_limit_arrive_unchanged(size: int, tmp_path: Path) -> None:
    content, kept = (BINARY * (size // len(BINARY) + 1))[:size], Kept()
    kept.push(tmp_path, kept.file(content))
    assert (tmp_path / "a").read_bytes() == content


@pytest.mark.parametrize("place", [0, 1 << 20, len(BINARY) - 1])
def test_a_change_of_one_byte_anywhere_is_drift_even_if_size_and_time_are_the_same(
    place: int, tmp_path: Path
) -> None:
    kept = Kept()
    file = kept.file(BINARY)
    kept.push(tmp_path, file)
    status = (tmp_path / "a").stat()
    with (tmp_path / "a").open("r+b") as stream:
        stream.seek(place)
        stream.write(b"!")
    os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    [change] = kept.diff(tmp_path, file).changes
    assert change.path == "content"
    kept.push(tmp_path, file)
    assert (tmp_path / "a").read_bytes() == BINARY


def test_a_diff_names_sizes_digests_and_the_line_of_text_but_no_content(tmp_path: Path) -> None:
    kept = Kept()
    file = kept.file(b"one\ntwo\n")
    (tmp_path / "a").write_bytes(b"one\n2\n")
    digests = [short(str(pygit2.hash(content))) for content in (b"one\ntwo\n", b"one\n2\n")]
    wanted = {"size": 8, "digest": digests[0], "file": "files/a"}
    observed = {"size": 6, "digest": digests[1]}
    assert kept.diff(tmp_path, file).changes == (Change("content", wanted, observed | {"line": 2}),)
    kept.contents.clear()
    assert kept.diff(tmp_path, file).changes == (Change("content", wanted, observed),)
    (tmp_path / "a").write_bytes(b"one\0")
    assert "line" not in str(kept.diff(tmp_path, file))


def test_content_that_was_not_kept_stalls_and_leaves_the_old_file(tmp_path: Path) -> None:
    kept = Kept()
    kept.push(tmp_path, kept.file(b"old"))
    new = kept.file(b"new")
    kept.contents.clear()
    with raises("FIL122", StalledError, match="files/a"):
        kept.push(tmp_path, new)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_that_is_as_intended_needs_no_content(tmp_path: Path) -> None:
    kept = Kept()
    file = kept.file(BINARY)
    kept.push(tmp_path, file)
    kept.contents.clear()
    kept.push(tmp_path, file)


def test_a_huge_file_in_production_is_not_read_whole(tmp_path: Path) -> None:
    kept = Kept()
    file = kept.file(b"small")
    with (tmp_path / "a").open("wb") as huge:
        huge.truncate(1 << 40)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [change] = kept.diff(tmp_path, file).changes
    assert change.observed == {"size": 1 << 40, "digest": None}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000

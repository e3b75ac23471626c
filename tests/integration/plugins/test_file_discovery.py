"""What `lehr.File` drafts of files that are there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, Partition, id_problem, make_asset
from lehr.model.types import Registry
from lehr.plugins.file import discovery
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.plugin import FilePlugin
from lehr.sdk.plugin import Found
from lehr.testing.plugins import FixedReader, target_of
from tests.codes import raises


def found(base: Path, *query: str) -> dict[str, Found]:
    """Drafts by path; each without an obstacle differs in nothing."""

    async def main() -> dict[str, Found]:
        plugin = FilePlugin(base, Inline(), fsync=False)
        drafts = [item async for item in plugin.discover(query, Partition("test"))]
        for draft in drafts:
            assert id_problem(draft.id) is None
            if not draft.obstacle:
                asset = make_asset(AssetId(draft.id), FILE, msgspec.convert(draft.payload, File), {})
                reader = FixedReader([asset], Registry(TYPES))
                assert (await plugin.diff(target_of(asset), reader)).empty
        assert len({draft.id for draft in drafts}) == len(drafts)
        return {draft.payload["path"]: draft for draft in drafts}

    return asyncio.run(main())


def test_a_path_is_as_it_was_asked_for_and_defaults_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "motd").write_text("hello\n")
    (tmp_path / "etc" / "motd").chmod(0o644)
    assert found(tmp_path, "./etc/motd")["etc/motd"].payload == {"path": "etc/motd", "content": "hello\n"}
    absolute = str(tmp_path / "etc" / "motd")
    assert found(tmp_path / "etc", absolute)[absolute].payload["path"] == absolute


def test_patterns_match_files_alone_and_none_twice(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/1.conf", "a/b/2.conf", "a/b/.hidden.conf", "a/other"):
        (tmp_path / name).write_text(name)
    drafts = found(tmp_path, "**/*.conf", "a/*")
    assert {path for path, draft in drafts.items() if not draft.obstacle} == {
        "a/1.conf",
        "a/b/2.conf",
        "a/other",
    }


def test_what_patterns_pass_over_is_named_with_the_way_to_adopt_it(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git" / "objects").mkdir(parents=True)
    for name in ("a/shown", "a/.env", "a/.git/config", "a/.git/objects/1"):
        (tmp_path / name).write_text(name)
    drafts = found(tmp_path, "a/**")
    assert {path: draft.obstacle for path, draft in drafts.items() if draft.obstacle} == {
        "a/.env": discovery.HIDDEN,
        "a/.git": discovery.HIDDEN,
    }
    assert "'a/.git/**'" in drafts["a/.git"].notes[0]
    assert not found(tmp_path, "a/.env")["a/.env"].obstacle, "whoever names it wants it"


def test_a_file_behind_a_link_is_drafted_once_where_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("x")
    (tmp_path / "link").symlink_to("real")
    drafts = found(tmp_path, "**")
    assert not drafts["real/x"].obstacle
    assert drafts["link"].obstacle == discovery.LINK
    assert drafts["link"].notes == ("it leads to real",)
    assert drafts["link/x"].obstacle == discovery.TWICE
    assert not found(tmp_path, "link/x")["link/x"].obstacle, "it is not drafted twice"


def test_what_is_no_text_is_kept_byte_by_byte(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"\xff\x00binary")
    (tmp_path / "bell").write_bytes(b"ding \x07\n")
    assert all("content_base64" in draft.payload for draft in found(tmp_path, "*").values())


def test_a_mode_that_differs_from_the_default_is_said(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("x")
    (tmp_path / "key").chmod(0o600)
    draft = found(tmp_path, "key")["key"]
    assert draft.payload["mode"] == "0600"
    assert "only its owner" in draft.notes[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_owner_who_is_somebody_else_is_said(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("x")
    os.chown(tmp_path / "page", 12_345, 12_346)
    payload = found(tmp_path, "page")["page"].payload
    assert (payload["owner"], payload["group"]) == ("12345", "12346")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.symlink_to("nowhere"), "symbolic link"),
        (os.mkfifo, "fifo"),
        (lambda path: path.write_bytes(b"x" * 200_000), "200,000 bytes"),
        (lambda path: (path.write_text("x"), path.with_name(".x.lehr-tmp").touch()), "would remove"),
    ],
)
def test_what_cannot_be_taken_over_says_why(make: Callable[[Path], object], why: str, tmp_path: Path) -> None:
    make(tmp_path / "x")
    assert why in found(tmp_path, "x*")["x"].obstacle


def test_a_question_that_finds_nothing_or_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    with raises("FIL102", StalledError, match="nothing"):
        found(tmp_path, "nothing*")
    with raises("FIL101", StalledError):
        found(tmp_path, "d")
    for name in "ab":
        (tmp_path / name).touch()
    monkeypatch.setattr(discovery, "MOST_FILES", 1)
    with raises("FIL103", StalledError):
        found(tmp_path, "*")


def test_names_that_ids_cannot_hold_get_ids_of_their_own(tmp_path: Path) -> None:
    for name in ("a b", "a-b", "ä", ".x"):
        (tmp_path / name).touch()
    drafts = found(tmp_path, "a*", "ä", ".x")
    assert [drafts[name].id for name in ("a b", "a-b", "ä", ".x")] == [
        "file/a-b",
        "file/a-b-2",
        "file",
        "file/x",
    ]
